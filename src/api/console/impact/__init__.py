"""Pages: the impact of a change."""
