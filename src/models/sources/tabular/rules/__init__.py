"""The cells and columns of foreign rows. Pure."""
