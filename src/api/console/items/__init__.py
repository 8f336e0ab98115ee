"""Pages of the tree of a workspace."""
