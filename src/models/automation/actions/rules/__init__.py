"""The things an action can do, and the problems of its config."""
