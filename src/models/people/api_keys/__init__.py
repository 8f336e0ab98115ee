"""Workspace API keys: secrets that carry scopes (interface, API key)."""
