"""A whole workspace as one file: written by exports, read by imports."""
