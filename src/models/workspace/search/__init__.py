"""Search: finding the items and records of a workspace by their titles."""
