"""Limits of the calls that a workspace makes of a host, or through a connection (ADR 0099)."""
