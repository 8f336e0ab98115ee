"""Mounts: resources of providers with a place in the tree of items, kept in step with them."""
