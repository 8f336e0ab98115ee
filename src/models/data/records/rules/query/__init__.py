"""Queries compiled to SQL.

`plan` reads a query into its parts: conditions, order, groups and figures. `filters` reads the
conditions and evaluates them over values at hand; `sql` compiles them, and says how a value leaves
the record table. `ordering` has the order and the entries of the side index. `routes` says how the
index answers what it can, and asks for groups and figures.
"""
