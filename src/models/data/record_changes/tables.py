"""The table of changes of records, and the type of its rows."""

from datetime import datetime
from typing import Any, Protocol

from sqlalchemy import ARRAY, Index, Text, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from models.core.base import Id
from models.data.record_changes.rules import ChangeKind
from runtime.postgresql.schema import BELONGS_TO, Timestamp, one_of, table_of


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
        Index("ix_record_change_workspace_id_record_id_id", "workspace_id", "record_id", "id"),
        {"info": {BELONGS_TO: {"record": ("workspace_id", "record_id")}}},
    )

    id: Id = Field(primary_key=True, sa_column_kwargs={"server_default": text("uuidv7()")})
    workspace_id: Id
    database_id: Id
    record_id: Id
    kind: str
    actor_user_id: Id | None = None
    principal_type: str
    run_id: Id | None = None
    before: dict[str, Any] | None = Field(default=None, sa_type=JSONB)
    after: dict[str, Any] | None = Field(default=None, sa_type=JSONB)
    omitted_keys: list[str] | None = Field(default=None, sa_type=ARRAY(Text))
    at: datetime = Field(sa_type=Timestamp)
    written_at: datetime | None = Field(default=None, sa_type=Timestamp)


record_change = table_of(RecordChange)


class ChangeRow(Protocol):
    """A change of a record."""

    id: Id
    record_id: Id
    kind: str
    actor_user_id: Id | None
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    omitted_keys: list[str] | None
    at: datetime
