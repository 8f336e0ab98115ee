"""Access rules: scopes, roles, item levels and the caller they add up to."""
