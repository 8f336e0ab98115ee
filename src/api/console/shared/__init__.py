"""Pages on which visitors read what a share link opens."""
