"""Duplicating on the wire (interface, Duplicate database)."""

from models.core.base import Input


class DuplicateDatabase(Input):
    """Body of duplicate database; without `includeRecords` the copy is empty."""

    include_records: bool = False
