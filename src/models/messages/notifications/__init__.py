"""Notifications: what one member is told about."""
