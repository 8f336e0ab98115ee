"""Pages of a record: its values, comments and history."""
