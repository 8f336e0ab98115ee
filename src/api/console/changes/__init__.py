"""Change sets as pages: planned, reviewed, applied."""
