"""The first page of a workspace."""
