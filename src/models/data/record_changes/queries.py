"""Writing and reading the history of records, and its shapes."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import ColumnElement, FromClause, Insert, Select, insert, select, union_all

from models.core.access.rules import PrincipalType
from models.core.base import Id, JsonObject, Moment, Nullable, Shape
from models.core.pagination import PageRequest
from models.data.record_changes.rules import ChangeKind, changed_keys
from models.data.record_changes.tables import ChangeRow, record_change
from runtime.database import UnitOfWork, columns_of


class RecordChangeShape(Shape):
    """One change: `before` and `after` hold the values of the keys it changed.

    A key missing on one side had no value there; the values of `omittedKeys` were too long to
    keep. `runId` is the automation run that wrote, if one did.
    """

    id: Id
    kind: ChangeKind
    at: Moment
    actor_user_id: Id | None
    principal_type: PrincipalType
    run_id: Id | None
    changed_keys: list[str]
    omitted_keys: list[str]
    before: JsonObject | None
    after: JsonObject | None


class RecordHistory(Shape):
    changes: list[RecordChangeShape]
    cursor: Nullable[str]


def recording(values: Mapping[str, ColumnElement[Any]], *conditions: ColumnElement[bool]) -> Insert:
    """The insertion of changes with these values, for the statement that makes them."""
    return insert(record_change).from_select(
        list(values), select(*values.values()).where(*conditions)
    )


def recording_rows(changes: Select[Any]) -> Insert:
    """The insertion of changes that have the columns of the table, in their order."""
    return insert(record_change).from_select(record_change.c.keys(), changes)


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
