"""Pages that make and change the views of a database."""
