"""Home layouts: what each member has on their first page of a workspace."""
