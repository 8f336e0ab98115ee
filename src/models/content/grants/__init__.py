"""Grants: what one member may do with one item and what is below it (decisions C4)."""
