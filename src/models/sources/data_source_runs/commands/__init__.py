"""Accepting runs and carrying them out: staging rows, comparing them, applying them."""
