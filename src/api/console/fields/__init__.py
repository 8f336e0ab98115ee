"""Pages of the fields of a database."""
