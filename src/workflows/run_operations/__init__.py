"""The workflow of operations over runs."""
