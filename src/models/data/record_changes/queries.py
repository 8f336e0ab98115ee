"""Reading the history of records."""

from typing import Any

from sqlalchemy import FromClause, Select, select, union_all

from models.core.base import Id
from models.core.pagination import PageRequest
from models.data.record_changes.rows import ChangeRow
from models.data.record_changes.rules import changed_keys
from models.data.record_changes.shapes import RecordChangeShape, RecordHistory
from models.data.record_changes.tables import record_change
from runtime.database import UnitOfWork, columns_of

CHANGE = record_change.c
"""The columns of the changes that are written."""


def changes_with(unwritten: Select[Any]) -> FromClause:
    """All changes: the written ones, and others with the same columns in the same order."""
    return union_all(select(record_change), unwritten).subquery("change")


async def list_changes(
    work: UnitOfWork, changes: FromClause, workspace_id: Id, record_id: Id, page: PageRequest
) -> RecordHistory:
    """The changes of a record, newest first."""
    statement = select(changes).where(
        changes.c.workspace_id == workspace_id, changes.c.record_id == record_id
    )
    shown = await page.descending(work, statement, changes.c.id, of=ChangeRow)
    return RecordHistory(changes=[_shape(row) for row in shown.items], cursor=shown.cursor)


def _shape(row: ChangeRow) -> RecordChangeShape:
    return RecordChangeShape.model_validate(
        {
            **columns_of(row),
            "omitted_keys": row.omitted_keys or [],
            "changed_keys": changed_keys(row.before, row.after, row.omitted_keys),
        }
    )
