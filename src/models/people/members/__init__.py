"""Members: who belongs to a workspace, and as what."""
