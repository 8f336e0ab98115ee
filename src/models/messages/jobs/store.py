"""Jobs: their table as durable work, accepted, read, written by their executions, and purged."""

from collections.abc import Collection
from datetime import datetime
from typing import Any, Protocol

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from models.core.access.rules import Actor, Principal, PrincipalType
from models.core.base import Id, JsonObject
from models.core.lifecycle import commands as lifecycle
from models.core.purging import MAX_ROWS, purge
from models.messages.jobs import rules
from models.people.members import role_of
from runtime import errors
from runtime.crypto import sealed
from runtime.database import UnitOfWork
from runtime.ids import least_id
from runtime.postgresql.schema import Timestamp, listed, one_of, table_of
from runtime.postgresql.statements import PreparedStatement
from runtime.temporal.outbox import AWAITED, StartRequest
from runtime.temporal.workflow_kinds import WorkflowKind


class Job(SQLModel, table=True):
    """One piece of long work on `subject_id`; `workflow_kind` says what is done.

    `input` is what was asked for, with what is secret in it sealed. `progress` is where the next
    chunk begins, `result` what came out. From `dispatched_at` on it counts as under way.
    """

    __tablename__ = "job"
    __table_args__ = (
        sa.UniqueConstraint("workspace_id", "id"),
        sa.ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),
        one_of("status", rules.JobStatus),
        sa.Index(
            "ix_job_workspace_id_workflow_kind_subject_id",
            "workspace_id",
            "workflow_kind",
            "subject_id",
        ),
        sa.Index(
            "ix_job_open_workspace_export",
            "workspace_id",
            unique=True,
            postgresql_where=sa.text(
                f"workflow_kind = '{WorkflowKind.WORKSPACE_EXPORT}'"
                f" AND status IN ({listed(rules.OPEN_JOB)})"
            ),
        ),
        sa.Index(
            "ix_job_open_line",
            *("workspace_id", "workflow_kind"),
            postgresql_where=sa.text(f"status IN ({listed(rules.OPEN_JOB)})"),
        ),
        sa.Index(
            "ix_job_dispatched",
            *("workspace_id", "workflow_kind"),
            postgresql_where=sa.text(
                f"dispatched_at IS NOT NULL AND status IN ({listed(rules.OPEN_JOB)})"
            ),
        ),
        sa.Index(
            "ix_job_open", "id", postgresql_where=sa.text(f"status IN ({listed(rules.OPEN_JOB)})")
        ),
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id
    workflow_kind: str
    subject_id: Id
    actor_user_id: Id
    status: str
    input: dict[str, Any] = Field(
        sa_type=JSONB,
        sa_column_kwargs=sealed(
            lambda row: rules.sealed_input_place(row.id),
            member=rules.SEALED_INPUT,
            short_lived=True,
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

JOBS = lifecycle.WorkTable(job, rules.JOB_LIFECYCLE, workflow_kind=job.c.workflow_kind)


class JobRow(Protocol):
    """A job: `input` is what was asked for, `progress` where the next chunk begins."""

    id: Id
    workspace_id: Id
    workflow_kind: str
    subject_id: Id
    actor_user_id: Id
    status: str
    input: dict[str, Any]
    progress: dict[str, Any]
    result: dict[str, Any] | None
    error: str | None
    error_code: str | None
    created_at: datetime
    started_at: datetime | None
    completed_at: datetime | None


_JOB = PreparedStatement(
    sa.select(job).where(
        job.c.workspace_id == sa.bindparam("workspace_id", type_=sa.Uuid),
        job.c.id == sa.bindparam("id", type_=sa.Uuid),
        job.c.workflow_kind == sa.bindparam("workflow_kind"),
    ),
    JobRow,
)

JOB = job.c
"""The columns of jobs in `jobs_of`."""


def jobs_of(
    workspace_id: Id, workflow_kind: WorkflowKind, *columns: sa.ColumnElement[Any]
) -> sa.Select[Any]:
    """These columns of the jobs of a kind in a workspace, closed ones too."""
    return sa.select(*columns).where(
        job.c.workspace_id == workspace_id, job.c.workflow_kind == workflow_kind.value
    )


async def find_job(
    work: UnitOfWork, workspace_id: Id, workflow_kind: WorkflowKind, job_id: Id
) -> JobRow:
    """One job of a kind. Raises `NotFoundError`."""
    parameters = {"workspace_id": workspace_id, "id": job_id, "workflow_kind": workflow_kind.value}
    found = await _JOB.first(work, parameters)
    if found is None:
        raise errors.NotFoundError(workflow_kind.value.replace("-", " "))
    return found


async def own_job(
    work: UnitOfWork, actor: Actor, workflow_kind: WorkflowKind, job_id: Id
) -> JobRow:
    """One job that the actor has asked for. Raises `NotFoundError`, also for the job of another."""
    job = await find_job(work, actor.workspace_id, workflow_kind, job_id)
    if job.actor_user_id != actor.user_id:
        raise errors.NotFoundError(workflow_kind.value.replace("-", " "))
    return job


async def open_job(
    work: UnitOfWork, workspace_id: Id, workflow_kind: WorkflowKind
) -> JobRow | None:
    """The oldest open job of a kind of which a workspace has one at a time."""
    statement = jobs_of(workspace_id, workflow_kind, *JOB).where(JOBS.is_open)
    return await work.first(statement.order_by(job.c.id).limit(1), of=JobRow)


async def has_open_job(
    work: UnitOfWork, workspace_id: Id, workflow_kind: WorkflowKind, subject_id: Id
) -> bool:
    """True while a job of a kind on a subject is open."""
    statement = jobs_of(workspace_id, workflow_kind, job.c.id).where(job.c.subject_id == subject_id)
    return await work.scalar(statement.where(JOBS.is_open).limit(1)) is not None


async def succeeded_job(
    work: UnitOfWork,
    workspace_id: Id,
    workflow_kind: WorkflowKind,
    job_id: Id,
    *,
    failed: str,
    in_progress: str | None,
) -> JobRow | None:
    """A job that has succeeded, None while it is open.

    Raises `NotFoundError`, `ConflictError` with the job's error, or else `failed`, when it ended
    otherwise, and `InProgressError` with `in_progress`, when given, while it is open.
    """
    found = await find_job(work, workspace_id, workflow_kind, job_id)
    if found.status == rules.JobStatus.SUCCEEDED:
        return found
    if found.status not in rules.OPEN_JOB:
        raise errors.ConflictError(found.error or failed)
    if in_progress is not None:
        raise errors.InProgressError(in_progress)
    return None


async def job_actor(work: UnitOfWork, job: JobRow) -> Actor:
    """The asker of a job (its row), with the rights they have now; the job writes in their name.

    Raises `DeniedError` for one who left the workspace.
    """
    role = await role_of(work, job.workspace_id, job.actor_user_id)
    if role is None:
        raise errors.DeniedError("The requester is no longer a member of the workspace.")
    principal = Principal(type=PrincipalType.SYSTEM, id=job.id, user_id=job.actor_user_id)
    return Actor(
        principal=principal,
        workspace_id=job.workspace_id,
        role=role,
        scopes=principal.effective_scopes(role),
    )


def refusal_of(job: JobRow) -> errors.PlatformError | None:
    """The refusal of a job (its row), as it was raised; None for one that was lost."""
    for refusal in _REFUSALS:
        if refusal.code == job.error_code:
            made = refusal.__new__(refusal)  # some say their sentence themselves
            errors.PlatformError.__init__(made, job.error or "")
            return made
    return None


_REFUSALS: tuple[type[errors.PlatformError], ...] = (
    errors.ConflictError,
    errors.DeniedError,
    errors.InvalidError,
    errors.NotFoundError,
    errors.UnsupportedError,
    errors.UpstreamError,
    errors.ValidationError,
)


async def accept_job(
    work: UnitOfWork,
    actor: Actor,
    workflow_kind: WorkflowKind,
    job_id: Id,
    subject_id: Id,
    *,
    summary: str,
    input: JsonObject | None = None,  # noqa: A002  # the column's name
) -> bool:
    """Record a job and its start; False when a job of this id was accepted before.

    `summary` is shown to operators and holds no user data. Raises `TooMuchOpenError`.
    """
    if not await record_job(
        work, actor.workspace_id, actor.user_id, workflow_kind, job_id, subject_id, input
    ):
        return False
    await lifecycle.require_place(
        work, actor, JOBS, workflow_kind, JOBS.table.c.workflow_kind == workflow_kind.value
    )
    await start_job(work, workflow_kind, actor.workspace_id, job_id, subject_id, summary)
    return True


async def record_job(
    work: UnitOfWork,
    workspace_id: Id,
    user_id: Id,
    workflow_kind: WorkflowKind,
    job_id: Id,
    subject_id: Id,
    input: JsonObject | None = None,  # noqa: A002  # the column's name
) -> bool:
    """Record a job that the caller has executed; False when one of this id was accepted before."""
    row = {
        "id": job_id,
        "workspace_id": workspace_id,
        "workflow_kind": workflow_kind.value,
        "subject_id": subject_id,
        "actor_user_id": user_id,
        "input": input or {},
        "progress": {},
    }
    return await lifecycle.accept(work, JOBS, row)


def start_request(subject_id: Id, summary: str, source: str = "api") -> StartRequest:
    """The request that starts a job in Temporal; `summary` holds no user data."""
    return {
        "summary": summary,
        "resourceId": str(subject_id),
        "source": source,
        "weight": AWAITED,
    }


async def start_job(
    work: UnitOfWork,
    workflow_kind: WorkflowKind,
    workspace_id: Id,
    job_id: Id,
    subject_id: Id,
    summary: str,
    restarts: int = 0,
) -> None:
    """Have the execution of an accepted job started."""
    request = start_request(subject_id, summary)
    await lifecycle.start(work, workflow_kind, workspace_id, job_id, request, restarts)


async def hold_job(work: UnitOfWork, job_id: Id) -> JobRow | None:
    """The job, locked and marked as running; None when it is closed.

    Every chunk takes this lock first: a chunk executed twice at once waits, then continues from the
    progress of the other.
    """
    row = await lifecycle.hold(work, JOBS, job_id, of=JobRow)
    if row is not None and row.status == rules.JobStatus.QUEUED:
        await lifecycle.move(work, JOBS, job_id, rules.JobStatus.RUNNING, started_at=work.now)
    return row


async def record_progress(work: UnitOfWork, job_id: Id, progress: JsonObject) -> None:
    """Record where the next chunk of a held job begins."""
    await lifecycle.record_progress(work, JOBS, job_id, progress=progress)


async def forget_input(work: UnitOfWork, job_id: Id) -> None:
    """Remove what a held job was asked with, when that must not outlast it."""
    await lifecycle.record_progress(work, JOBS, job_id, input={})


async def record_failure(work: UnitOfWork, job_id: Id, error: str, error_code: str) -> None:
    """Record why a held job cannot continue; it is closed when its effects are reverted."""
    await lifecycle.record_progress(work, JOBS, job_id, error=error, error_code=error_code)


async def close_job(
    work: UnitOfWork, job_id: Id, status: rules.JobStatus, *, result: JsonObject | None = None
) -> bool:
    """End an open job for ever; False when it was closed before."""
    return bool(await lifecycle.finish(work, JOBS, [job_id], status, result=result))


async def cancel_job(work: UnitOfWork, job: JobRow) -> None:
    """Cancel an open job: at once before it begins, else when its effects are reverted."""
    this = JOBS.table.c.id == job.id, JOBS.table.c.status == rules.JobStatus.QUEUED
    cancelled = JOBS.moving(rules.JobStatus.CANCELLED).where(*this).values(completed_at=work.now)
    await work.execute(cancelled)
    work.answered.add(job.id)
    workflow_kind = WorkflowKind(job.workflow_kind)
    await lifecycle.cancel_executions(work, workflow_kind, job.workspace_id, [job.id])


async def forget_job(work: UnitOfWork, workspace_id: Id, job_id: Id) -> None:
    """Remove a job that has ended, whose result is not to be read later."""
    await work.execute(
        sa.delete(JOBS.table).where(
            JOBS.table.c.workspace_id == workspace_id, JOBS.table.c.id == job_id, ~JOBS.is_open
        )
    )


async def purge_jobs(
    work: UnitOfWork,
    before: datetime,
    limit: int = MAX_ROWS,
    *,
    workflow_kind: WorkflowKind | None = None,
) -> int:
    """Remove jobs that ended before a moment, of a kind or of all; what they did stays.

    Returns the number of removed rows, at most `limit`; call it until that is 0.
    """
    old = (
        sa.select(job.c.id)
        .where(
            # Accepted before it ended: the oldest ids are all that is looked at.
            job.c.id < least_id(before),
            job.c.status.not_in(rules.OPEN_JOB),
            job.c.completed_at < before,
            *([] if workflow_kind is None else [job.c.workflow_kind == workflow_kind.value]),
        )
        .order_by(job.c.id)
    )
    return await purge(work, job, old, limit)


async def open_jobs(work: UnitOfWork, job_ids: Collection[Id]) -> set[Id]:
    """The jobs among these that have not ended."""
    found = sa.select(job.c.id).where(job.c.id.in_(job_ids), job.c.status.in_(rules.OPEN_JOB))
    return {row.id for row in await work.rows(found)}
