"""Records: typed rows of a database, written strictly and queried by filter tree."""
