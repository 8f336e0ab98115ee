"""Reading the history of records."""

from datetime import datetime

from sqlalchemy import Select, select

from models.core.base import Id
from models.core.pagination import PageRequest
from models.data.record_changes.rules import changed_keys
from models.data.record_changes.shapes import RecordChangeShape, RecordHistory
from models.data.record_changes.tables import RecordChange, record_change
from runtime.database import UnitOfWork, columns_of

CHANGE = record_change.c
"""The columns of changes, for nouns that take back what they wrote."""


async def list_changes(
    work: UnitOfWork, workspace_id: Id, record_id: Id, page: PageRequest
) -> RecordHistory:
    """The changes of a record, newest first."""
    statement = select(record_change).where(
        record_change.c.workspace_id == workspace_id, record_change.c.record_id == record_id
    )
    shown = await page.descending(work, statement, record_change.c.id, of=RecordChange)
    return RecordHistory(changes=[_shape(row) for row in shown.items], cursor=shown.cursor)


def last_change(workspace_id: Id, record_id: Id) -> Select[Id | None, datetime]:
    """The last change of a record: when it was made (`at`), and by which run (`run_id`)."""
    return (
        select(record_change.c.run_id, record_change.c.at)
        .where(record_change.c.workspace_id == workspace_id, record_change.c.record_id == record_id)
        .order_by(record_change.c.id.desc())
        .limit(1)
    )


def _shape(row: RecordChange) -> RecordChangeShape:
    return RecordChangeShape.model_validate(
        {
            **columns_of(row),
            "omitted_keys": row.omitted_keys or [],
            "changed_keys": changed_keys(row.before, row.after, row.omitted_keys),
        }
    )
