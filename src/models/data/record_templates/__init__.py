"""Record templates: what a new record of a database begins with."""
