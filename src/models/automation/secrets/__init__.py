"""Secrets of a workspace: named values that nodes send and the API never returns."""
