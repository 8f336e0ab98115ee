"""What happens in a workspace, as far as those who read the log of it may see it."""
