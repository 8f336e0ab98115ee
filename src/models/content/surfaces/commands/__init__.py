"""Writing surfaces, their blocks and their comments."""
