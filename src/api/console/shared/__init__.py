"""Pages on which anybody reads what a share link opens."""
