"""What a noun says of its rows in a bundle: a whole workspace in one file."""
