"""Links between records: one row a link, whichever side shows it.

`sides` says how a relation field reads the rows, `conditions` asks them in SQL, `changes` works out
what becomes of them when lists are written, `written_relations` reads what a write says of them.
"""
