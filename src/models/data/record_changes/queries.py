"""Reading the history of a record."""

from typing import Any

from sqlalchemy import select

from models.core.base import Id
from models.core.pagination import PageRequest
from models.data.record_changes.rules import changed_keys
from models.data.record_changes.shapes import RecordChangeShape, RecordHistory
from models.data.record_changes.tables import record_change
from runtime.database import UnitOfWork


async def list_changes(
    work: UnitOfWork, workspace_id: Id, record_id: Id, page: PageRequest
) -> RecordHistory:
    """The changes of a record, newest first."""
    statement = (
        select(record_change)
        .where(record_change.c.workspace_id == workspace_id, record_change.c.record_id == record_id)
        .order_by(record_change.c.id.desc())
        .limit(page.fetch)
    )
    if page.after is not None:
        statement = statement.where(record_change.c.id < page.after[0])
    shown = page.of(await work.rows(statement), lambda row: (row.id,))
    return RecordHistory(changes=[_shape(row) for row in shown.items], cursor=shown.cursor)


def _shape(row: Any) -> RecordChangeShape:
    return RecordChangeShape.model_validate(
        {
            **row._mapping,
            "omitted_keys": row.omitted_keys or [],
            "changed_keys": changed_keys(row.before, row.after, row.omitted_keys),
        }
    )
