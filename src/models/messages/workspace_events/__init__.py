"""The log of a workspace: what happened in it, in order, for whoever follows it."""
