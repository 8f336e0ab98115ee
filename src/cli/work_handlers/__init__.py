"""The handlers of durable work, and what a worker derives from them."""
