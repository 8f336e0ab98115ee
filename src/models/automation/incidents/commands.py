"""Assigning, muting, closing and reopening incidents, and retrying their runs."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from models.automation.incidents.closing import close, of_opening, unresolved
from models.automation.incidents.queries import RetryIncident, UpdateIncident, load
from models.automation.incidents.rules import CloseReason
from models.automation.incidents.tables import incident
from models.automation.run_operations import queries as run_operation_queries
from models.automation.run_operations.commands import accept_operation, preview_operation
from models.automation.run_operations.rules import MAX_IDS, OperationAction
from models.core.access.rules import Actor
from models.core.base import Id
from models.people.members import strangers
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, NotFoundError


class NothingToRetryError(ConflictError):
    """Every run of the incident was retried with success, or is gone."""

    def __init__(self) -> None:
        super().__init__("The incident has no runs left to retry.")


async def update_incident(
    work: UnitOfWork, actor: Actor, incident_id: Id, body: UpdateIncident
) -> None:
    """Assign, mute or annotate an incident. Raises NotFoundError, also for one who is no member."""
    row = await load(work, actor, incident_id)
    values: dict[str, Any] = {
        name: getattr(body, name)
        for name in body.model_fields_set
        if name == "assignee_user_id" or getattr(body, name) is not None
    }
    assignee = values.get("assignee_user_id")
    if assignee is not None and await strangers(work, actor.workspace_id, [assignee]):
        raise NotFoundError("user")
    if values:
        await work.execute(sa.update(incident).where(incident.c.id == row.id).values(values))


async def close_incident(work: UnitOfWork, actor: Actor, incident_id: Id) -> None:
    """Close an incident; a closed one stays as it is. Raises NotFoundError."""
    row = await load(work, actor, incident_id)
    if row.closed_at is None:
        await close(work, row, CloseReason.PERSON, actor)


async def reopen_incident(work: UnitOfWork, actor: Actor, incident_id: Id) -> None:
    """Open a closed incident again, with the runs it had; an open one stays as it is.

    Raises NotFoundError.
    """
    row = await load(work, actor, incident_id)
    if row.closed_at is None:
        return
    values = {
        **dict.fromkeys(("closed_at", "close_reason", "closed_by_user_id")),
        # Its next closing is notified again, and follows from runs from now on.
        "openings": row.openings + 1,
        "watched_since": work.now,
        "checked_at": work.now,
    }
    await work.execute(sa.update(incident).where(incident.c.id == row.id).values(values))


async def preview_retry(
    work: UnitOfWork, actor: Actor, incident_id: Id, body: RetryIncident, **bounds: int
) -> run_operation_queries.RunOperationPreview:
    """The preview of a retry. Raises NotFoundError and NothingToRetryError."""
    operation = await _retry_of(work, actor, incident_id, body)
    return await preview_operation(work, actor, operation, **bounds)


async def retry_incident(
    work: UnitOfWork, actor: Actor, incident_id: Id, operation_id: Id, body: RetryIncident
) -> None:
    """Accept the operation that retries the unresolved runs of an incident.

    Raises NotFoundError, NothingToRetryError and TooMuchOpenError.
    """
    operation = await _retry_of(work, actor, incident_id, body)
    await accept_operation(work, actor, operation_id, operation)


async def _retry_of(
    work: UnitOfWork, actor: Actor, incident_id: Id, body: RetryIncident
) -> run_operation_queries.CreateRunOperation:
    row = await load(work, actor, incident_id)
    statement = unresolved(row.id, of_opening(row), MAX_IDS)
    run_ids: Sequence[Id] = [one.run_id for one in await work.rows(statement)]
    if not run_ids:
        raise NothingToRetryError
    retry = run_operation_queries.BulkRetry.model_validate(
        {"from": body.from_, "version": body.version}
    )
    return run_operation_queries.CreateRunOperation.model_validate(
        {"action": OperationAction.RETRY, "runIds": run_ids, "retry": retry, "rate": body.rate}
    )
