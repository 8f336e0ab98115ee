"""The outcome of the exchange of a code, for whoever waits for it."""

from models.core.access.rules import Actor
from models.core.base import Id
from models.messages.jobs.queries import find_job
from models.messages.jobs.rules import OPEN_JOB, JobStatus
from models.sources.connections.queries import get_connection
from models.sources.connections.shapes import ConnectionDetail
from runtime.database import UnitOfWork
from runtime.errors import InProgressError, UpstreamError, ValidationError
from runtime.families import Family


async def exchange_outcome(
    work: UnitOfWork, actor: Actor, job_id: Id, *, last: bool
) -> ConnectionDetail | None:
    """The connection that a code became; None while the provider is asked.

    Raises ValidationError for a code that is not accepted, UpstreamError when the provider does
    not answer, InProgressError when this is the last time to ask.
    """
    found = await find_job(work, actor.workspace_id, Family.OAUTH_EXCHANGE, job_id)
    if found.status == JobStatus.SUCCEEDED and found.result is not None:
        return await get_connection(work, actor, Id(found.result["connectionId"]))
    if found.status not in OPEN_JOB:
        message = found.error or "The provider gave no token. Start again."
        refused = found.error_code == ValidationError.code
        raise ValidationError(message) if refused else UpstreamError(message)
    if last:
        raise InProgressError("The provider takes long to answer. The connection may still appear.")
    return None
