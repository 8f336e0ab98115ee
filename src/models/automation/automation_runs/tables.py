"""Tables of automation runs and node runs, as durable work, and their retention."""

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from models.automation.automation_runs.rules import ENDED_RUN, OPEN_RUN, RUN_LIFECYCLE
from models.core.base import Id
from models.core.lifecycle.commands import WorkTable
from models.core.purging import MAX_HEADS, MAX_ROWS, purge
from models.people.workspaces import every_workspace
from runtime.database import UnitOfWork
from runtime.postgresql.schema import Timestamp, listed, partial_index, same_workspace, table_of
from runtime.temporal.workflow_kinds import WorkflowKind

_KEY_ORDER = ("automation_id", "concurrency_key", "created_at", "id")
"""The order of the runs of a concurrency key."""
IS_OPEN = sa.text(f"status IN ({listed(OPEN_RUN)})")
IS_ENDED = sa.text(f"status IN ({listed(ENDED_RUN)})")
"""The predicates of partial indexes. A query repeats them as they stand here: PostgreSQL takes such
an index only for a condition that it can prove."""
IS_FAILED = sa.text("status IN ('failed', 'timed_out')")
NODE_FAILED = sa.text("node_run.status = 'failed'")
_ENDED_ORDER = ("status", "source", "created_at", "id")
"""The order of ended runs in a list by states and sources (`filters.newest`). Ended runs
alone: an entry is written once, and not with each change of the status."""


class AutomationRun(SQLModel, table=True):
    """One accepted run. Its row is the gate every node start passes: closed means nothing starts.

    `graph_checksum` freezes what is executed; `options` holds what the caller asked for beyond
    the payload (mocks, simulate, pinned outputs, where to start and stop). `chain` names the runs
    that led to this one, oldest first; `parent_run_id` is the one that starts and awaits it, or the
    action run that does if nothing led to that. A run with a `concurrency_key` shares its slots
    with the others of its automation and key; until it has one, `admitted_at` is null and nothing
    starts.
    """

    __tablename__ = "automation_run"
    __table_args__ = (
        sa.UniqueConstraint("workspace_id", "id"),
        same_workspace("automation_id", "automation.id"),
        sa.Index("ix_automation_run_automation_id_created_at", "automation_id", "created_at", "id"),
        sa.Index("ix_automation_run_workspace_id_created_at", "workspace_id", "created_at", "id"),
        sa.Index(
            "ix_automation_run_open",
            "workspace_id",
            "status",
            "id",
            postgresql_where=IS_OPEN,
        ),
        sa.Index(
            "ix_automation_run_ended", "workspace_id", *_ENDED_ORDER, postgresql_where=IS_ENDED
        ),
        sa.Index(
            "ix_automation_run_ended_of_automation",
            "automation_id",
            *_ENDED_ORDER,
            postgresql_where=IS_ENDED,
        ),
        sa.Index(
            "ix_automation_run_failed",
            "workspace_id",
            "completed_at",
            postgresql_where=IS_FAILED,
        ),
        sa.Index(
            "ix_automation_run_holding",
            *_KEY_ORDER,
            postgresql_where=sa.text(
                "concurrency_key IS NOT NULL AND admitted_at IS NOT NULL"
                " AND status IN ('queued', 'running', 'waiting')"
            ),
        ),
        sa.Index(
            "ix_automation_run_waiting",
            *_KEY_ORDER,
            postgresql_where=sa.text(
                "concurrency_key IS NOT NULL AND admitted_at IS NULL"
                " AND status IN ('queued', 'running', 'waiting')"
            ),
        ),
        sa.Index(
            "ix_automation_run_attributes",
            "attributes",
            postgresql_using="gin",
            postgresql_ops={"attributes": "jsonb_path_ops"},
            postgresql_where=sa.text("attributes IS NOT NULL"),
        ),
        partial_index(
            "ix_automation_run_parent", "parent_run_id", where="parent_run_id IS NOT NULL"
        ),
        partial_index(
            "ix_automation_run_replay_of_run_id",
            "replay_of_run_id",
            where="replay_of_run_id IS NOT NULL",
        ),
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id
    automation_id: Id
    automation_version_id: Id
    graph_checksum: str
    status: str
    source: str
    trigger_payload: dict[str, Any] = Field(sa_type=JSONB)
    options: dict[str, Any] = Field(sa_type=JSONB)
    attributes: dict[str, str] | None = Field(default=None, sa_type=JSONB(none_as_null=True))
    output: dict[str, Any] | None = Field(default=None, sa_type=JSONB(none_as_null=True))
    error: str | None = None
    start_node_id: str | None = None
    replay_of_run_id: Id | None = None
    parent_run_id: Id | None = None
    chain: list[Id] = Field(
        sa_type=sa.ARRAY(sa.Uuid), sa_column_kwargs={"server_default": sa.text("'{}'")}
    )
    concurrency_key: str | None = None
    admitted_at: datetime | None = Field(default=None, sa_type=Timestamp)
    created_by_user_id: Id | None = None
    created_at: datetime = Field(sa_type=Timestamp)
    started_at: datetime | None = Field(default=None, sa_type=Timestamp)
    completed_at: datetime | None = Field(default=None, sa_type=Timestamp)


class NodeRun(SQLModel, table=True):
    """One node in one scope of a run: unique, so that its effect happens exactly once."""

    __tablename__ = "node_run"
    __table_args__ = (
        same_workspace("run_id", "automation_run.id"),
        partial_index(
            "ix_node_run_failed", "run_id", "node_id", "error_code", where="status = 'failed'"
        ),
    )

    run_id: Id = Field(primary_key=True)
    node_id: str = Field(primary_key=True)
    scope_key: str = Field(primary_key=True)
    workspace_id: Id
    node_kind: str
    status: str
    attempt: int
    outcome: str | None = None
    case_key: str | None = None
    input: dict[str, Any] | None = Field(default=None, sa_type=JSONB(none_as_null=True))
    output: dict[str, Any] | None = Field(default=None, sa_type=JSONB(none_as_null=True))
    error: str | None = None
    error_code: str | None = None
    due_at: datetime | None = Field(default=None, sa_type=Timestamp)
    attempt_started_at: datetime | None = Field(default=None, sa_type=Timestamp)
    started_at: datetime | None = Field(default=None, sa_type=Timestamp)
    completed_at: datetime | None = Field(default=None, sa_type=Timestamp)


class NodeRunAttempt(SQLModel, table=True):
    """A failed attempt of a node, kept to show why it took several."""

    __tablename__ = "node_run_attempt"
    __table_args__ = (
        sa.ForeignKeyConstraint(
            ["run_id", "node_id", "scope_key"],
            ["node_run.run_id", "node_run.node_id", "node_run.scope_key"],
        ),
    )

    run_id: Id = Field(primary_key=True)
    node_id: str = Field(primary_key=True)
    scope_key: str = Field(primary_key=True)
    attempt: int = Field(primary_key=True)
    workspace_id: Id
    error: str
    error_code: str
    started_at: datetime = Field(sa_type=Timestamp)
    completed_at: datetime = Field(sa_type=Timestamp)


class SuspendedExecution(SQLModel, table=True):
    """An execution of a run that only waits; `child_keys` name the executions it waits for, if any.

    The chunks of a loop run one after the other under one key.
    """

    __tablename__ = "suspended_execution"
    __table_args__ = (
        same_workspace("run_id", "automation_run.id"),
        sa.Index("ix_suspended_execution_run_id", "run_id"),
    )

    execution_key: str = Field(primary_key=True)
    run_id: Id
    workspace_id: Id
    child_keys: list[str] = Field(sa_type=sa.ARRAY(sa.Text))


automation_run = table_of(AutomationRun)
node_run = table_of(NodeRun)
node_run_attempt = table_of(NodeRunAttempt)
suspended_execution = table_of(SuspendedExecution)

AUTOMATION_RUNS = WorkTable(
    automation_run, RUN_LIFECYCLE, workflow_kind=WorkflowKind.AUTOMATION_RUN
)

_run = automation_run.c


async def purge_runs(work: UnitOfWork, before: datetime, limit: int = MAX_ROWS) -> int:
    """Delete runs that ended before a moment, with their node runs. Versions stay.

    Returns the number of deleted rows, at most `limit`; call it until that is 0.
    """
    workspace = every_workspace()
    runs = (
        sa.select(_run.id)
        .where(
            _run.workspace_id == workspace.c.id,
            # A run is accepted before it ends: of each workspace only the oldest runs are read.
            _run.created_at < before,
            _run.completed_at < before,
            _run.status.not_in(OPEN_RUN),
        )
        .order_by(_run.created_at)
        .limit(MAX_HEADS)
        .correlate(workspace)
        .lateral("ended")
    )
    first = sa.select(runs.c.id).select_from(workspace.join(runs, sa.true())).limit(MAX_HEADS)
    old = sa.select(_run.id).where(_run.id.in_(first)).order_by(_run.created_at)
    return await purge(work, automation_run, old, limit)
