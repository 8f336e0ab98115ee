"""Statistics of runs as a page."""
