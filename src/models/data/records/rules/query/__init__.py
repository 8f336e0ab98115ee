"""Queries compiled to SQL.

`query` reads a query into its parts: `filters` (compiled by `predicates`, evaluated over values at
hand by `memory`), `ordering`, `grouping`, `aggregation`. `extraction` says how a value leaves the
record table. `entries` and `routes` say how the side index answers what it can.
"""
