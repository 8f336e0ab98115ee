"""Typed data: databases and their fields, records, views, forms, templates, copies and exports.

Records are written in one place for every caller: the API, nodes of automations, forms, imports. A
write emits events; it does not know who listens.
"""
