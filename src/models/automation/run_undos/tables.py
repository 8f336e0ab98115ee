"""The table of undos of runs."""

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from models.core.base import Id
from runtime.postgresql.schema import Timestamp, same_workspace, table_of


class RunUndo(SQLModel, table=True):
    """One undo of a run, or of an earlier undo of it (`undoes_id`).

    The changes it made are in the histories of records. `stage` and `after_record_id` say how far
    it has come; `completed_at` is null until it, or its operation, has come to its end. `conflicts`
    holds the first of `conflict_count`. `operation_id` is the operation over runs that carries it
    out, if any.
    """

    __tablename__ = "run_undo"
    __table_args__ = (
        same_workspace("run_id", "automation_run.id"),
        sa.Index("ix_run_undo_run_id", "run_id", "id"),
        sa.Index(
            "ix_run_undo_operation_id",
            "operation_id",
            postgresql_where=sa.text("completed_at IS NULL AND operation_id IS NOT NULL"),
        ),
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id
    run_id: Id
    undoes_id: Id | None = None
    operation_id: Id | None = None
    actor_user_id: Id
    stage: str
    after_record_id: Id | None = None
    runs: int
    records: int
    reverted: int
    conflict_count: int
    conflicts: list[dict[str, Any]] = Field(sa_type=JSONB)
    created_at: datetime = Field(sa_type=Timestamp)
    completed_at: datetime | None = Field(default=None, sa_type=Timestamp)


run_undo = table_of(RunUndo)
