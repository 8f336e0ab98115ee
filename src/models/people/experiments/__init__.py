"""Experiments: variants of something, shared out among users, workspaces or devices."""
