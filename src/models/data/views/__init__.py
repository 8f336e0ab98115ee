"""Views: how people look at the records of a database."""
