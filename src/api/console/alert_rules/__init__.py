"""Alert rules as pages: what is watched, what fires now, and when it fired."""
