"""Release notices: what is new, and how far each user has read."""
