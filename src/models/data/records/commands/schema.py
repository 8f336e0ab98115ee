"""The schema that types a record about to be written."""

from sqlalchemy import Uuid, bindparam, select

from models.core.base import Id
from models.data.fields.locks import share_schema_soon, sharing
from models.data.fields.queries import load_schema
from models.data.fields.rules.fields import Schema
from models.data.records.tables import record
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError
from runtime.prepared_statement import PreparedStatement

_SHARED = PreparedStatement(
    select(record.c.database_id, sharing(record.c.database_id)).where(
        record.c.workspace_id == bindparam("workspace_id", type_=Uuid),
        record.c.id == bindparam("record_id", type_=Uuid),
    )
)


async def share_schema_of(work: UnitOfWork, workspace_id: Id, record_id: Id) -> Schema:
    """The schema of a record, in the trash or not, which stays as it is until the end.

    Raises `NotFoundError`, also when its database is in the trash, and `FieldsChangingError`. The
    fields are read by a statement of their own: one that waited for the lock would still see what
    was there before.
    """
    found = await _SHARED.first(work, {"workspace_id": workspace_id, "record_id": record_id})
    if found is None:
        raise NotFoundError("record")
    if not found.shared:
        await share_schema_soon(work, found.database_id)
    return await load_schema(work, workspace_id, found.database_id, "record")
