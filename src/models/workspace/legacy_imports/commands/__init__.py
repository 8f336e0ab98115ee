"""What changes legacy import runs."""
