"""The master secrets that a database was written under, and the change from one to the next."""
