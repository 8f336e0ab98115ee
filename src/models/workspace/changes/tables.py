"""The tables of change sets and of what dry runs write, and the lifecycle of change sets."""

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from models.core.base import Id
from models.core.lifecycle.commands import WorkTable
from models.workspace.changes.rules import CHANGE_LIFECYCLE, WAITING, ChangeSource, ChangeStatus
from runtime.crypto import sealed
from runtime.postgresql.schema import Timestamp, listed, one_of, table_of


def credentials_place(change_id: Id) -> str:
    """The place that the sealed credentials of a change set are bound to."""
    return f"change_set|{change_id}|sealed_credentials"


def request_place(change_id: Id) -> str:
    """The place that the sealed request of a change set is bound to."""
    return f"change_set|{change_id}|sealed_request"


class ChangeSet(SQLModel, table=True):
    """One change set: operations, or one request. `outcomes` stand in the order of `operations`.

    `names` are the ids of what its operations made, by the names others refer to. The credentials
    that stood in its operations are sealed, and deleted when it is closed; so is the request.
    `request` is that request as it is shown, `changes` are the ones that its dry run made,
    `own_changes` the ones among them that its author could read, and `digest` is made
    of the rows it would have changed (`dry_runs`).
    """

    __tablename__ = "change_set"
    __table_args__ = (
        sa.UniqueConstraint("workspace_id", "id"),
        sa.ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),
        one_of("status", ChangeStatus),
        one_of("source", ChangeSource),
        sa.CheckConstraint(
            "sealed_credentials IS NULL OR completed_at IS NULL", name="closed_without_credentials"
        ),
        sa.CheckConstraint(
            "sealed_request IS NULL OR completed_at IS NULL", name="closed_without_request"
        ),
        sa.Index("ix_change_set_workspace_id_created_at_id", "workspace_id", "created_at", "id"),
        sa.Index(
            "ix_change_set_expires_at",
            "expires_at",
            postgresql_where=sa.text(f"status IN ({listed(WAITING)})"),
        ),
        sa.Index("ix_change_set_completed_at", "completed_at"),
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id
    source: str
    title: str
    instruction: str | None = None
    status: str
    operations: list[dict[str, Any]] = Field(sa_type=JSONB)
    outcomes: list[dict[str, Any]] = Field(sa_type=JSONB)
    sealed_credentials: bytes | None = Field(
        default=None,
        sa_type=sa.LargeBinary,
        sa_column_kwargs=sealed(lambda row: credentials_place(row.id)),
    )
    request: dict[str, Any] | None = Field(default=None, sa_type=JSONB)
    sealed_request: bytes | None = Field(
        default=None,
        sa_type=sa.LargeBinary,
        sa_column_kwargs=sealed(lambda row: request_place(row.id)),
    )
    changes: dict[str, Any] | None = Field(default=None, sa_type=JSONB)
    own_changes: dict[str, Any] | None = Field(default=None, sa_type=JSONB)
    digest: str | None = None
    names: dict[str, Any] = Field(sa_type=JSONB)
    rejected_reason: str | None = None
    created_by_user_id: Id
    expires_at: datetime = Field(sa_type=Timestamp)
    created_at: datetime = Field(sa_type=Timestamp)
    updated_at: datetime = Field(sa_type=Timestamp)
    completed_at: datetime | None = Field(default=None, sa_type=Timestamp)


class DryRunChange(SQLModel, table=True):
    """A row that a dry run has written, before and after one statement; a trigger captures it.

    `source` is its table and `subject` its key there. Its item, which decides who sees it, follows
    from `place` and `place_id`. No row is ever committed, so there is neither WAL nor a retention.
    """

    __tablename__ = "dry_run_change"
    __table_args__ = ({"prefixes": ["UNLOGGED"]},)

    transaction_id: int = Field(sa_type=sa.BigInteger, primary_key=True)
    position: int = Field(
        sa_type=sa.BigInteger, sa_column_args=[sa.Identity(always=True)], primary_key=True
    )
    source: str
    subject: str
    workspace_id: Id | None = None
    place: str | None = None
    place_id: Id | None = None
    before: dict[str, Any] | None = Field(default=None, sa_type=JSONB)
    after: dict[str, Any] | None = Field(default=None, sa_type=JSONB)


change_set = table_of(ChangeSet)
dry_run_change = table_of(DryRunChange)

CHANGE_SETS = WorkTable(change_set, CHANGE_LIFECYCLE)
