"""What events are, who hears them, and when dates are reached. Pure."""
