"""Records: rows of a database whose values are typed by its fields (interface, Record; C5).

`commands.records` and `queries.records` are what the API and automations call.
"""
