"""Reading tables from files of every format. Used by the reading process alone."""
