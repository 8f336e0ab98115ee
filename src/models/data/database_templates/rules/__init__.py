"""What the shipped templates hold."""
