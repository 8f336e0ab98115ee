"""Secrets of a workspace: named values that nodes send out and nobody reads back."""
