"""Records: rows of a database whose values are typed by its fields (interface, Record; C5).

The API and automations call `commands` and `queries`.
"""
