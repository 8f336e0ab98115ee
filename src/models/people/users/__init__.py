"""Users, as their identity providers describe them."""
