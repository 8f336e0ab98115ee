"""Previews: what a config would bring in, read by a worker and forgotten after the answer."""

from models.core.access.rules import Actor
from models.core.base import Id
from models.messages.jobs.commands import accept_job, forget_job
from models.messages.jobs.queries import find_job
from models.messages.jobs.rules import OPEN_JOB, JobStatus
from models.sources.data_sources.commands import checked_config
from models.sources.data_sources.shapes import DataSourcePreview, PreviewDataSource
from runtime.database import UnitOfWork
from runtime.errors import InProgressError, UpstreamError, ValidationError
from runtime.families import Family

MAX_ROWS = 50


async def accept_preview(
    work: UnitOfWork, actor: Actor, preview_id: Id, body: PreviewDataSource
) -> None:
    """Accept the job that reads the first rows. Raises what creating a data source raises."""
    config = await checked_config(work, actor, body.kind, body.config)
    await accept_job(
        work,
        actor,
        Family.DATA_SOURCE_PREVIEW,
        preview_id,
        preview_id,
        summary=f"Preview · {body.kind}",
        input={"kind": body.kind.value, "config": config, "limit": min(body.limit, MAX_ROWS)},
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
        if job.error is None:
            raise UpstreamError("The source could not be read. Try again.")
        raise ValidationError.at("config", job.error)
    if last:
        raise InProgressError("The source takes long to answer. Try again.")
    return None


async def forget_preview(work: UnitOfWork, actor: Actor, preview_id: Id) -> None:
    """Remove what a preview read."""
    await forget_job(work, actor.workspace_id, preview_id)
