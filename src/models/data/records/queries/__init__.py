"""Reading records.

`records` holds the queries themselves, `execution` the way a query takes to its records, `details`
the way from a row to a record on the wire. `links` and `linked_values` read over relations, and
`visibility` tells what an actor does not see of them.
"""
