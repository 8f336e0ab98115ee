"""Records: rows of a database whose values are typed by its fields (interface.md#record).

The API and automations call `commands` and `queries`.
"""
