"""Pages on which visitors answer a public form."""
