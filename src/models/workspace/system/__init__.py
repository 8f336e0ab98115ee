"""The state of the platform itself: what waits, for how long, and who works on it."""
