"""The kinds of durable work, one in each file, and what a worker derives from them."""
