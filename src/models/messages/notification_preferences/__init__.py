"""Notification preferences: by which channels a user wants to be told of what."""
