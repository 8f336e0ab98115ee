"""Pages on which anybody answers a public form."""
