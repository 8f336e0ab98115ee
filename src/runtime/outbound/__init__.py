"""Outbound HTTP for the whole platform; nothing else may open a connection to a user's URL."""
