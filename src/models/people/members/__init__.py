"""Members: the users of a workspace and their roles."""
