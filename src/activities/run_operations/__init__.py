"""The transactions of operations over runs."""
