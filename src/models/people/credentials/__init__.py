"""Credentials: the key or session of a request, and the user behind it."""
