"""The layout of record pages, and the conversion of fields. Pure."""
