"""Invitations: how people become members of a workspace."""
