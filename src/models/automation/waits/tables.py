"""Tables of waiting nodes, and of events kept for nodes that begin to wait later."""

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, ForeignKeyConstraint, Index
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from models.core.base import Id
from runtime.postgresql.schema import Timestamp, partial_index, same_workspace, table_of


class RunWait(SQLModel, table=True):
    """A node that waits for a response. Without `workflow_id`, it does not wait yet.

    `workflow_id` is the execution that hosts the node. `terms` are the parameters that
    decide on responses. `responses` are those received, oldest first. Once `outcome` is set, the
    row does not change.
    """

    __tablename__ = "run_wait"
    __table_args__ = (
        same_workspace("run_id", "automation_run.id"),
        CheckConstraint("kind IN ('approval', 'wait_event')", name="kind"),
        CheckConstraint("outcome IN ('approved', 'rejected', 'always', 'timeout')", name="outcome"),
        CheckConstraint("(outcome IS NULL) = (resolved_at IS NULL)", name="resolved"),
        partial_index(
            "ix_run_wait_event_key",
            "workspace_id",
            "event_key",
            where="event_key IS NOT NULL AND outcome IS NULL",
        ),
        partial_index(
            "ix_run_wait_pending_approval",
            "workspace_id",
            "created_at",
            where="kind = 'approval' AND outcome IS NULL",
        ),
    )

    run_id: Id = Field(primary_key=True)
    node_id: str = Field(primary_key=True)
    scope_key: str = Field(primary_key=True)
    workspace_id: Id
    kind: str
    workflow_id: str | None = None
    event_key: str | None = None
    terms: dict[str, Any] = Field(sa_type=JSONB)
    responses: list[dict[str, Any]] = Field(sa_type=JSONB)
    outcome: str | None = None
    output: dict[str, Any] | None = Field(default=None, sa_type=JSONB(none_as_null=True))
    event_id: Id | None = None
    """The event that resolved it."""
    created_at: datetime = Field(sa_type=Timestamp)
    resolved_at: datetime | None = Field(default=None, sa_type=Timestamp)


class AutomationEvent(SQLModel, table=True):
    """A published event, kept for the runs that were open then: they may wait for it later."""

    __tablename__ = "automation_event"
    __table_args__ = (
        ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),
        Index("ix_automation_event_event_key", "workspace_id", "event_key", "id"),
        Index("ix_automation_event_created_at", "workspace_id", "created_at"),
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id
    event_key: str
    data: dict[str, Any] = Field(sa_type=JSONB)
    user_id: Id | None = None
    created_at: datetime = Field(sa_type=Timestamp)


run_wait = table_of(RunWait)
automation_event = table_of(AutomationEvent)
