"""The rules of fields: kinds, values, settings and options. Pure."""
