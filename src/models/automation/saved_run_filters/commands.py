"""Saving, changing and deleting filters."""

from typing import Any

from sqlalchemy import delete, func, insert, select, update

from models.automation.automation_runs.filter_checks import check_filter
from models.automation.saved_run_filters.queries import shape_of, visible
from models.automation.saved_run_filters.shapes import (
    MAX_FILTERS,
    CreateRunFilter,
    DeletedRunFilter,
    RunFilterShape,
    UpdateRunFilter,
)
from models.automation.saved_run_filters.tables import SavedRunFilter, saved_run_filter
from models.core.access.rules import Actor, Scope
from models.core.base import Id
from runtime.advisory_locks import lock_name
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, DeniedError, NotFoundError

_filter = saved_run_filter.c


async def create_filter(
    work: UnitOfWork, actor: Actor, filter_id: Id, body: CreateRunFilter
) -> RunFilterShape:
    """Save a filter, of the caller alone or shared.

    Raises ConflictError when there are too many, and DeniedError for a shared one of a caller who
    may not write automations.
    """
    owner = None if body.shared else actor.user_id
    if body.shared:
        _require_write(actor)
    await check_filter(work, actor, body.query)
    # Two requests at the same time must not both take the last place.
    place = f"run-filters/{actor.workspace_id}/{owner}"
    await lock_name(work, place)
    await work.execute(
        insert(saved_run_filter).values(
            id=filter_id,
            workspace_id=actor.workspace_id,
            owner_user_id=owner,
            automation_id=body.query.automation_id,
            label=body.label,
            query=body.query.wire,
            created_at=work.now,
            updated_at=work.now,
        )
    )
    count = select(func.count()).where(
        _filter.workspace_id == actor.workspace_id,
        _filter.owner_user_id.is_not_distinct_from(owner),
    )
    if await work.scalar(count) > MAX_FILTERS:
        raise ConflictError(f"There are {MAX_FILTERS} saved filters; delete some first.")
    return shape_of(await _load(work, actor, filter_id))


async def update_filter(
    work: UnitOfWork, actor: Actor, filter_id: Id, body: UpdateRunFilter
) -> RunFilterShape:
    """Give a filter another name or other parameters. Raises NotFoundError and DeniedError."""
    await _changeable(work, actor, filter_id)
    values: dict[str, Any] = {"updated_at": work.now}
    if body.label is not None:
        values["label"] = body.label
    if body.query is not None:
        await check_filter(work, actor, body.query)
        values |= {"query": body.query.wire, "automation_id": body.query.automation_id}
    await work.execute(update(saved_run_filter).where(*_this(actor, filter_id)).values(values))
    return shape_of(await _load(work, actor, filter_id))


async def delete_filter(work: UnitOfWork, actor: Actor, filter_id: Id) -> DeletedRunFilter:
    """Delete a filter. Raises NotFoundError and DeniedError."""
    await _changeable(work, actor, filter_id)
    await work.execute(delete(saved_run_filter).where(*_this(actor, filter_id)))
    return DeletedRunFilter(id=filter_id)


async def _changeable(work: UnitOfWork, actor: Actor, filter_id: Id) -> None:
    row = await _load(work, actor, filter_id)
    if row.owner_user_id is None:
        _require_write(actor)


async def _load(work: UnitOfWork, actor: Actor, filter_id: Id) -> SavedRunFilter:
    row = await work.first(visible(actor).where(_filter.id == filter_id), of=SavedRunFilter)
    if row is None:
        raise NotFoundError("filter")
    return row


def _this(actor: Actor, filter_id: Id) -> tuple[Any, ...]:
    return _filter.workspace_id == actor.workspace_id, _filter.id == filter_id


def _require_write(actor: Actor) -> None:
    if Scope.AUTOMATIONS_WRITE not in actor.scopes:
        raise DeniedError(f"A shared filter needs the scope {Scope.AUTOMATIONS_WRITE}.")
