"""What is said to a waiting node, and what it adds up to."""
