"""Who may do what: scopes, roles, item levels and the caller they add up to."""
