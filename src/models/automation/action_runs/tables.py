"""Tables of action runs and their steps, as durable work, and their retention."""

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from models.automation.action_runs.rules import RUN_LIFECYCLE, ActionRunStatus, StepStatus
from models.core.base import Id
from models.core.lifecycle.commands import WorkTable, indexes_of_work
from models.core.purging import Retention
from runtime.postgresql.schema import Timestamp, one_of, partial_index, same_workspace, table_of
from runtime.temporal.workflow_kinds import WorkflowKind


class ActionRun(SQLModel, table=True):
    """One accepted run of an action. Its row is the gate every step passes.

    `kind` and `config` are the action's as they were when the run was accepted. A run that a node
    of an automation asked for names the node by `automation_run_id`, `node_id` and `scope_key`;
    the node's execution starts it as its child. `chain` names the automation runs that led here,
    oldest first.
    """

    __tablename__ = "action_run"
    __table_args__ = (
        sa.UniqueConstraint("workspace_id", "id"),
        same_workspace("action_id", "action.id"),
        one_of("status", ActionRunStatus),
        sa.Index("ix_action_run_action_id_started_at_id", "action_id", "started_at", "id"),
        *indexes_of_work("action_run", RUN_LIFECYCLE.open),
        partial_index(
            "ix_action_run_open_automation_run_id",
            "automation_run_id",
            where="status = 'started' AND automation_run_id IS NOT NULL",
        ),
        sa.Index("ix_action_run_completed_at", "completed_at"),
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id
    action_id: Id
    kind: str
    config: dict[str, Any] = Field(sa_type=JSONB)
    status: str
    input: dict[str, Any] = Field(sa_type=JSONB)
    result: dict[str, Any] | None = Field(default=None, sa_type=JSONB(none_as_null=True))
    error: str | None = None
    error_code: str | None = None
    automation_run_id: Id | None = None
    node_id: str | None = None
    scope_key: str | None = None
    chain: list[Id] = Field(
        sa_type=sa.ARRAY(sa.Uuid), sa_column_kwargs={"server_default": sa.text("'{}'")}
    )
    created_by_user_id: Id | None = None
    dispatched_at: datetime | None = Field(default=None, sa_type=Timestamp)
    started_at: datetime = Field(sa_type=Timestamp)
    completed_at: datetime | None = Field(default=None, sa_type=Timestamp)


class ActionStep(SQLModel, table=True):
    """One step of a run: unique, so that its effect on our own tables happens exactly once."""

    __tablename__ = "action_step"
    __table_args__ = (
        same_workspace("run_id", "action_run.id"),
        one_of("status", StepStatus),
    )

    run_id: Id = Field(primary_key=True)
    step_id: str = Field(primary_key=True)
    workspace_id: Id
    position: int
    kind: str
    status: str
    attempt: int
    result: dict[str, Any] | None = Field(default=None, sa_type=JSONB(none_as_null=True))
    error: str | None = None
    error_code: str | None = None
    started_at: datetime | None = Field(default=None, sa_type=Timestamp)
    completed_at: datetime | None = Field(default=None, sa_type=Timestamp)


action_run = table_of(ActionRun)
action_step = table_of(ActionStep)

ACTION_RUNS = WorkTable(
    action_run,
    RUN_LIFECYCLE,
    accepted_column="started_at",
    workflow_kind=WorkflowKind.ACTION_RUN,
)


purge_action_runs = Retention(
    action_run,
    action_run.c.completed_at,
    conditions=(action_run.c.status != ActionRunStatus.STARTED,),
)
"""Runs that have ended, with their steps."""
