"""Records as lines of COPY: new ones of a database, which differ in id, title and values only."""

from datetime import datetime

from models.core.access.rules import Actor
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
    "creation_principal_type",
    "creation_run_id",
    "id",
    "title",
    "data",
)
_UUID = LENGTH.pack(16)


def lead_of(actor: Actor, database_id: Id, now: datetime) -> bytes:
    """The begin of every line: all that new records of a database have in common."""
    writer = actor.user_id, actor.user_id
    written_by = actor.principal.type.value, actor.principal.run_id
    common = (actor.workspace_id, database_id, False, *writer, now, now, *written_by)
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
