"""Records as lines of COPY: new ones of a database, which differ in id, title and values only."""

from datetime import datetime

from models.core.base import Id
from runtime import copy_format
from runtime.copy_format import LENGTH, LENGTH_OF_JSON

COLUMNS = (
    "workspace_id",
    "database_id",
    "archived",
    "created_by_user_id",
    "updated_by_user_id",
    "created_at",
    "updated_at",
    "id",
    "title",
    "data",
)
_UUID = LENGTH.pack(16)


def lead_of(workspace_id: Id, database_id: Id, user_id: Id, now: datetime) -> bytes:
    """The begin of every line: all that new records of a database have in common."""
    common = (workspace_id, database_id, False, user_id, user_id, now, now)
    return (
        copy_format.columns(len(COLUMNS))
        + b"".join([copy_format.value(one) for one in common])
        + _UUID
    )


def copied_record(lead: bytes, record_id: int, title: str, values: bytes) -> bytes:
    """The line of a record; `values` is JSON."""
    written = title.encode()
    parts = (
        lead,
        record_id.to_bytes(16),
        LENGTH.pack(len(written)),
        written,
        LENGTH_OF_JSON.pack(len(values) + 1, 1),
        values,
    )
    return b"".join(parts)
