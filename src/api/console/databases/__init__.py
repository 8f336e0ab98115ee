"""Pages of a database: its records in the forms of its views, export, import."""
