"""Mounts: resources of other providers with a place in the tree of items."""
