"""The history of records: every change with who made it, and the values before and after."""
