"""Notifications: messages of the platform to single members of a workspace."""
