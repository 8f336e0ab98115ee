"""What a form asks, when it asks it, and what it takes for an answer. Pure."""
