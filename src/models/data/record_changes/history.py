"""The history of a record: its table, written and read."""

from collections.abc import Callable, Mapping
from datetime import datetime
from types import SimpleNamespace
from typing import Any, Protocol

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from models.core.access.rules import PrincipalType
from models.core.base import Id, JsonObject, Moment, Nullable, Shape
from models.core.pagination import PageRequest
from models.data.record_changes.rules import ChangeKind, changed_keys
from runtime.database import UnitOfWork, columns_of
from runtime.postgresql.schema import BELONGS_TO, Timestamp, one_of, partial_index, table_of


class RecordChange(SQLModel, table=True):
    """A change of a record, written by the transaction that made it and never again.

    A creation may be written by the first change that follows, at `written_at` (ADR 0117).

    Ids come from the database's clock while the record is locked, so the ids of one record sort as
    its changes were made. It refers to records without a constraint: one more look per row would be
    paid by every writer.
    """

    __tablename__ = "record_change"
    __table_args__ = (
        one_of("kind", ChangeKind),
        sa.Index("ix_record_change_workspace_id_record_id_id", "workspace_id", "record_id", "id"),
        # People write most changes: what a run or an undo wrote is found among few.
        partial_index("ix_record_change_run_id", "run_id", "record_id", where="run_id IS NOT NULL"),
        partial_index(
            "ix_record_change_undo_id", "undo_id", "record_id", where="undo_id IS NOT NULL"
        ),
        {"info": {BELONGS_TO: {"record": ("workspace_id", "record_id")}}},
    )

    id: Id = Field(primary_key=True, sa_column_kwargs={"server_default": sa.text("uuidv7()")})
    workspace_id: Id
    database_id: Id
    record_id: Id
    kind: str
    actor_user_id: Id | None = None
    principal_type: str
    run_id: Id | None = None
    before: dict[str, Any] | None = Field(default=None, sa_type=JSONB)
    after: dict[str, Any] | None = Field(default=None, sa_type=JSONB)
    omitted_keys: list[str] | None = Field(default=None, sa_type=sa.ARRAY(sa.Text))
    at: datetime = Field(sa_type=Timestamp)
    written_at: datetime | None = Field(default=None, sa_type=Timestamp)
    undo_id: Id | None = None
    node_id: str | None = None


record_change = table_of(RecordChange)


class ChangeRow(Protocol):
    """A change of a record."""

    id: Id
    record_id: Id
    kind: str
    actor_user_id: Id | None
    run_id: Id | None
    undo_id: Id | None
    node_id: str | None
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    omitted_keys: list[str] | None
    at: datetime


class RecordChangeShape(Shape):
    """One change: `before` and `after` hold the values of the keys it changed.

    A key missing on one side had no value there; the values of `omittedKeys` were too long to keep.
    `runId` is the automation run that made the change, if any, and `nodeId` the node of it, where
    you see its automation; `undoId` the undo of a run that did.
    """

    id: Id
    kind: ChangeKind
    at: Moment
    actor_user_id: Id | None
    principal_type: PrincipalType
    run_id: Id | None
    undo_id: Id | None
    node_id: str | None
    changed_keys: list[str]
    omitted_keys: list[str]
    before: JsonObject | None
    after: JsonObject | None


class RecordHistory(Shape):
    changes: list[RecordChangeShape]
    cursor: Nullable[str]


def recording(
    values: Mapping[str, sa.ColumnElement[Any]], *conditions: sa.ColumnElement[bool]
) -> sa.Insert:
    """The insertion of changes with these values, for the statement that makes them."""
    return sa.insert(record_change).from_select(
        list(values), sa.select(*values.values()).where(*conditions)
    )


def recording_rows(changes: sa.Select[Any]) -> sa.Insert:
    """The insertion of changes that have the columns of the table, in their order."""
    return sa.insert(record_change).from_select(record_change.c.keys(), changes)


CHANGE = record_change.c
"""The columns of the changes that are written."""


def changes_with(unwritten: sa.Select[Any]) -> sa.FromClause:
    """All changes: the written ones, and others with the same columns in the same order."""
    return sa.union_all(sa.select(record_change), unwritten).subquery("change")


KeysAt = Callable[[datetime], Mapping[str, str]]
"""Takes a moment; gives the present key of each field that had another key then, by that key."""


def with_present_keys(row: ChangeRow, keys_at: KeysAt) -> ChangeRow:
    """A change by the keys that its fields have now."""
    keys = keys_at(row.at)
    if not keys:
        return row

    def renamed(values: JsonObject | None) -> JsonObject | None:
        return values and {keys.get(key, key): value for key, value in values.items()}

    omitted = row.omitted_keys and [keys.get(key, key) for key in row.omitted_keys]
    values = {"before": renamed(row.before), "after": renamed(row.after), "omitted_keys": omitted}
    return SimpleNamespace(**{**columns_of(row), **values})


async def list_changes(
    work: UnitOfWork,
    changes: sa.FromClause,
    workspace_id: Id,
    record_id: Id,
    page: PageRequest,
    keys_at: KeysAt,
) -> RecordHistory:
    """The changes of a record, newest first."""
    statement = sa.select(changes).where(
        changes.c.workspace_id == workspace_id, changes.c.record_id == record_id
    )
    shown = await page.descending(work, statement, changes.c.id, of=ChangeRow)
    own = [change_shape(with_present_keys(row, keys_at)) for row in shown.items]
    return RecordHistory(changes=own, cursor=shown.cursor)


def change_shape(row: ChangeRow) -> RecordChangeShape:
    """A change on the wire."""
    return RecordChangeShape.model_validate(
        {
            **{name: getattr(row, name, None) for name in RecordChangeShape.model_fields},
            "omitted_keys": row.omitted_keys or [],
            "changed_keys": changed_keys(row.before, row.after, row.omitted_keys),
        }
    )
