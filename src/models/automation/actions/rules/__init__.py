"""What an action can do, and what is wrong with its config."""
