"""Notification preferences: by which channels a user wants to be notified of what."""
