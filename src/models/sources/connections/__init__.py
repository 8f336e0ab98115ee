"""Connections: what a workspace knows of a provider, and the credentials it signs in with."""
