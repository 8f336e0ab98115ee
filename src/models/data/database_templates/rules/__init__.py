"""The shipped templates. Pure."""
