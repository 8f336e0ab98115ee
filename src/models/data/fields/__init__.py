"""Fields: the kinds, values, settings and options in which records are typed."""
