"""Tables of operations over runs and of their runs, as durable work, and their retention."""

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from models.automation.run_operations import rules
from models.core.base import Id
from models.core.lifecycle.commands import WorkTable, indexes_of_work
from models.core.purging import MAX_ROWS, purge
from runtime.database import UnitOfWork
from runtime.ids import least_id
from runtime.postgresql.schema import Timestamp, one_of, same_workspace, table_of
from runtime.temporal.families import Family


class RunOperation(SQLModel, table=True):
    """One operation over runs of a workspace.

    `selection` is the filter or the source of its runs, `parameters` what is done to each. Runs
    are written down as results first; `total` is null until all are. Those up to the position
    `treated` have an outcome. `execution` counts the times it went on after a pause.
    """

    __tablename__ = "run_operation"
    __table_args__ = (
        sa.UniqueConstraint("workspace_id", "id"),
        sa.ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),
        one_of("action", rules.OperationAction),
        one_of("status", rules.OperationStatus),
        *indexes_of_work("run_operation", rules.OPEN_OPERATION),
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id
    actor_user_id: Id
    action: str
    status: str
    selection: dict[str, Any] = Field(sa_type=JSONB)
    parameters: dict[str, Any] = Field(sa_type=JSONB)
    rate: float | None = None
    undoes_id: Id | None = None
    execution: int
    selected: int
    total: int | None = None
    treated: int
    succeeded: int
    skipped: int
    failed: int
    paced_until: datetime | None = Field(default=None, sa_type=Timestamp)
    error: str | None = None
    created_at: datetime = Field(sa_type=Timestamp)
    dispatched_at: datetime | None = Field(default=None, sa_type=Timestamp)
    started_at: datetime | None = Field(default=None, sa_type=Timestamp)
    completed_at: datetime | None = Field(default=None, sa_type=Timestamp)


class RunOperationResult(SQLModel, table=True):
    """One run of an operation, in the order in which they are treated; without outcome until then.

    `run_id` refers to nothing: a client may name any id, and runs are purged on their own.
    """

    __tablename__ = "run_operation_result"
    __table_args__ = (
        same_workspace("operation_id", "run_operation.id"),
        sa.UniqueConstraint("operation_id", "run_id"),
        one_of("outcome", rules.RunOutcome),
        sa.Index(
            "ix_run_operation_result_outcome",
            *("operation_id", "outcome", "position"),
            postgresql_where=sa.text("outcome IN ('skipped', 'failed')"),
        ),
    )

    operation_id: Id = Field(primary_key=True)
    position: int = Field(primary_key=True)
    workspace_id: Id
    run_id: Id
    outcome: str | None = None
    reason: str | None = None
    new_run_id: Id | None = None


run_operation = table_of(RunOperation)
run_operation_result = table_of(RunOperationResult)

RUN_OPERATIONS = WorkTable(run_operation, rules.OPERATION_LIFECYCLE, family=Family.RUN_OPERATION)

_operation = run_operation.c


async def purge_operations(work: UnitOfWork, before: datetime, limit: int = MAX_ROWS) -> int:
    """Remove operations that ended before a moment, or were paused since they were older.

    Returns the number of removed rows, at most `limit`; call it until that is 0.
    """
    old = (
        sa.select(_operation.id)
        .where(
            # Accepted before it ended: the oldest ids are all that is looked at.
            _operation.id < least_id(before),
            _operation.status.not_in(rules.OPEN_OPERATION),
            sa.or_(
                _operation.completed_at < before,
                _operation.status == rules.OperationStatus.PAUSED,
            ),
        )
        .order_by(_operation.id)
    )
    return await purge(work, run_operation, old, limit)
