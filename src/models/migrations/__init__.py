"""The schema's history, and the functions that walk it."""
