"""Pages of the workspace itself: its settings, and what the caller is told in it."""
