"""Grants: what single members may do with single items (decisions C4)."""
