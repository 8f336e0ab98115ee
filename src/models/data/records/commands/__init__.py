"""Writing records.

`records` holds the commands themselves. Every one of them goes through `write`, which asks `plan`
what is to be written, stores it (`rows`, `links`, `link_rows`, `templates`), brings up to date what
is derived from it (`computed_values`, `index`) and emits the events of what changed.

Computed values: `computed_values` finds what follows from a change, level by level;
`computed_level` computes one level of one database; `recomputation_jobs` asks for the rest, and
takes it up in chunks.
"""
