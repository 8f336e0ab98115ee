"""What is decided about a call from its bytes alone."""
