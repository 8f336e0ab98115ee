"""Pages on which people read and write pages, notes, contents of records and dashboards."""
