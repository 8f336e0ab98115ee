"""Previews: what a config would bring in, read by a worker and forgotten after the answer."""

from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from models.data.fields.queries import require_edit
from models.messages.jobs.commands import accept_job, forget_job
from models.messages.jobs.purge import purge_jobs
from models.messages.jobs.queries import find_job
from models.messages.jobs.rules import OPEN_JOB, JobStatus
from models.sources.data_sources.commands import check_fields, checked_config
from models.sources.data_sources.rules.configs import DataSourceKind, FieldMapping
from models.sources.data_sources.shapes import DataSourcePreview, PreviewDataSource
from runtime.database import UnitOfWork
from runtime.errors import InProgressError, InternalError, UpstreamError, ValidationError
from runtime.families import Family

MAX_ROWS = 50
LIFETIME = timedelta(hours=1)
"""The time for which a page can be read again that shows a preview."""


async def accept_preview(
    work: UnitOfWork,
    actor: Actor,
    preview_id: Id,
    body: PreviewDataSource,
    draft: JsonObject | None = None,
) -> None:
    """Accept the job that reads the first rows. Raises what creating a data source raises."""
    config = await checked_config(work, actor, body.kind, body.config)
    target = await checked_target(work, actor, body.fields, body.target_database_id)
    await accept_reading(
        work, actor, preview_id, Read(body.kind, config, body.limit, target), draft
    )


class Target(NamedTuple):
    """The fields that the rows of a preview are checked against; by default the suggested ones."""

    fields: Sequence[FieldMapping] = ()
    database_id: Id | None = None


class Read(NamedTuple):
    """A source whose config was checked, and what a preview of it reads."""

    kind: DataSourceKind
    config: JsonObject
    limit: int
    target: Target = Target()


async def checked_target(
    work: UnitOfWork, actor: Actor, fields: Sequence[FieldMapping], database_id: Id | None
) -> Target:
    """The target of a preview. Raises `NotFoundError`, `DeniedError`, `ValidationError`."""
    check_fields(fields, ())
    if database_id is not None:
        await require_edit(work, actor, database_id, "You may not add records here.")
    return Target(fields, database_id)


async def accept_reading(
    work: UnitOfWork, actor: Actor, preview_id: Id, read: Read, draft: JsonObject | None
) -> None:
    """Accept the job that reads the first rows of a source.

    A page finds its `draft`, what it was filled in with, beside the rows.
    """
    kind, config, limit, target = read
    await accept_job(
        work,
        actor,
        Family.DATA_SOURCE_PREVIEW,
        preview_id,
        preview_id,
        summary=f"Preview · {kind}",
        input={
            "kind": kind.value,
            "config": config,
            "limit": min(limit, MAX_ROWS),
            "fields": [one.to_json() for one in target.fields],
            "targetDatabaseId": None if target.database_id is None else str(target.database_id),
            "draft": draft or {},
        },
    )


async def preview_outcome(
    work: UnitOfWork, actor: Actor, preview_id: Id, *, last: bool
) -> DataSourcePreview | None:
    """The findings of a preview; None while it is read.

    Raises `ValidationError` for what cannot be fetched or read, `InProgressError` when this is the
    last time to ask.
    """
    job = await find_job(work, actor.workspace_id, Family.DATA_SOURCE_PREVIEW, preview_id)
    if job.status == JobStatus.SUCCEEDED:
        return DataSourcePreview.model_validate(job.result)
    if job.status not in OPEN_JOB:
        if job.error is None or job.error_code == InternalError.code:
            raise UpstreamError(job.error or "The source could not be read. Try again.")
        raise ValidationError.at("config", job.error)
    if last:
        raise InProgressError("The source takes long to answer. Try again.")
    return None


async def forget_preview(work: UnitOfWork, actor: Actor, preview_id: Id) -> None:
    """Remove what a preview read."""
    await forget_job(work, actor.workspace_id, preview_id)


async def purge_previews(work: UnitOfWork) -> int:
    """Remove a batch of previews that ended an hour ago. Gives how many rows were removed."""
    return await purge_jobs(work, work.now - LIFETIME, family=Family.DATA_SOURCE_PREVIEW)
