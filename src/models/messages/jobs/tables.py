"""The table of jobs, and jobs as durable work."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKeyConstraint, Index, UniqueConstraint, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from models.core.base import Id
from models.core.lifecycle.commands import WorkTable
from models.messages.jobs.rules import (
    JOB_LIFECYCLE,
    OPEN_JOB,
    SEALED_INPUT,
    JobStatus,
    sealed_input_place,
)
from runtime.crypto import sealed
from runtime.postgresql.schema import Timestamp, listed, one_of, table_of
from runtime.temporal.families import Family


class Job(SQLModel, table=True):
    """One piece of long work on `subject_id`; `family` says what is done.

    `input` is what was asked for, with what is secret in it sealed. `progress` is where the next
    chunk begins, `result` what came out. From `dispatched_at` on it counts as under way.
    """

    __tablename__ = "job"
    __table_args__ = (
        UniqueConstraint("workspace_id", "id"),
        ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),
        one_of("status", JobStatus),
        Index("ix_job_workspace_id_family_subject_id", "workspace_id", "family", "subject_id"),
        Index(
            "ix_job_open_workspace_export",
            "workspace_id",
            unique=True,
            postgresql_where=text(
                f"family = '{Family.WORKSPACE_EXPORT}' AND status IN ({listed(OPEN_JOB)})"
            ),
        ),
        Index(
            "ix_job_open_line",
            *("workspace_id", "family"),
            postgresql_where=text(f"status IN ({listed(OPEN_JOB)})"),
        ),
        Index(
            "ix_job_dispatched",
            *("workspace_id", "family"),
            postgresql_where=text(f"dispatched_at IS NOT NULL AND status IN ({listed(OPEN_JOB)})"),
        ),
        Index("ix_job_open", "id", postgresql_where=text(f"status IN ({listed(OPEN_JOB)})")),
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id
    family: str
    subject_id: Id
    actor_user_id: Id
    status: str
    input: dict[str, Any] = Field(
        sa_type=JSONB,
        sa_column_kwargs=sealed(
            lambda row: sealed_input_place(row.id), member=SEALED_INPUT, short_lived=True
        ),
    )
    progress: dict[str, Any] = Field(sa_type=JSONB)
    result: dict[str, Any] | None = Field(default=None, sa_type=JSONB)
    error: str | None = None
    error_code: str | None = None
    created_at: datetime = Field(sa_type=Timestamp)
    dispatched_at: datetime | None = Field(default=None, sa_type=Timestamp)
    started_at: datetime | None = Field(default=None, sa_type=Timestamp)
    completed_at: datetime | None = Field(default=None, sa_type=Timestamp)


job = table_of(Job)

JOBS = WorkTable(job, JOB_LIFECYCLE, family=job.c.family)
