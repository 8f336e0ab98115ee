"""Pages on which people read and write pages, notes and the contents of records."""
