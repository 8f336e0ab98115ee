"""Setting, changing and removing limits; calls that wait are told at once."""

from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, and_, delete, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from models.core.access.rules import Actor
from models.core.base import Id
from models.core.revisions import next_updated_at
from models.sources.connections.queries import get_connection
from models.sources.outbound_limits.line import Line
from models.sources.outbound_limits.queries import get_limit, limited_by
from models.sources.outbound_limits.rules import MOST_LIMITS
from models.sources.outbound_limits.shapes import (
    CreateOutboundLimit,
    DeletedOutboundLimit,
    OutboundLimitBody,
    UpdateOutboundLimit,
)
from models.sources.outbound_limits.tables import OutboundPlace, outbound_call, outbound_place
from runtime.advisory_locks import lock_name
from runtime.callable_urls import canonical_host
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, NotFoundError, ValidationError
from runtime.ids import new_id

_place = outbound_place.c
_LIMITED = or_(_place.per_second.is_not(None), _place.at_once.is_not(None))
_NEEDS_ONE = "A limit has perSecond, atOnce or both."


async def create_limit(
    work: UnitOfWork, actor: Actor, body: CreateOutboundLimit
) -> OutboundLimitBody:
    """Limit the calls of a host or of a connection.

    Raises ValidationError, NotFoundError for a connection that the actor does not see, and
    ConflictError for a place that has a limit, or when there are too many.
    """
    place = await _named_place(work, actor, body)
    limits = {"per_second": body.per_second, "at_once": body.at_once}
    if body.per_second is None and body.at_once is None:
        raise ValidationError.at("perSecond", _NEEDS_ONE)
    # Two requests at the same time must not both take the last one.
    lock = f"outbound-limits/{actor.workspace_id}"
    await lock_name(work, lock)
    mine = (_place.workspace_id == actor.workspace_id, _LIMITED)
    if await work.scalar(select(func.count()).where(*mine)) >= MOST_LIMITS:
        raise ConflictError(f"The workspace has {MOST_LIMITS} limits; remove some first.")
    name = "host" if body.connection_id is None else "connection_id"
    # A pause that an answer asked for may be there already.
    statement = upsert(outbound_place).values(
        id=new_id(),
        workspace_id=actor.workspace_id,
        **place,
        **limits,
        created_at=work.now,
        updated_at=work.now,
    )
    limit_id = await work.scalar(
        statement.on_conflict_do_update(
            index_elements=["workspace_id", name],
            index_where=_place[name].is_not(None),
            set_={**limits, "created_at": work.now, "updated_at": work.now},
            where=~_LIMITED,
        ).returning(_place.id)
    )
    if limit_id is None:
        raise ConflictError("The place has a limit. Change that one.")
    return await get_limit(work, actor, limit_id)


async def update_limit(
    work: UnitOfWork,
    actor: Actor,
    limit_id: Id,
    body: UpdateOutboundLimit,
    expected_updated_at: datetime | None = None,
) -> OutboundLimitBody:
    """Change a limit; calls that wait ask again.

    Raises NotFoundError, ValidationError where no limit would be left, and ConflictError for one
    that is not any more what was read.
    """
    before = await _hold(work, actor, limit_id)
    if expected_updated_at not in {None, before.updated_at}:
        raise ConflictError("The limit was changed since it was read. Read it again.")
    changes = body.model_dump(exclude_unset=True)
    per_second = changes.get("per_second", before.per_second)
    at_once = changes.get("at_once", before.at_once)
    if per_second is None and at_once is None:
        raise ValidationError.at("perSecond", _NEEDS_ONE)
    longest = None if per_second is None else work.now + timedelta(seconds=1 / per_second)
    statement = (
        update(outbound_place)
        .where(_place.id == limit_id, _place.workspace_id == actor.workspace_id)
        .values(
            per_second=per_second,
            at_once=at_once,
            next_at=None,
            free_at=None if longest is None else func.least(_place.free_at, longest),
            updated_at=next_updated_at(_place.updated_at, work.now),
        )
        .returning(outbound_place)
    )
    row = await work.first(statement, of=OutboundPlace)
    assert row is not None, "it is held"
    await ask_anew(work, row)
    return await get_limit(work, actor, limit_id)


async def delete_limit(work: UnitOfWork, actor: Actor, limit_id: Id) -> DeletedOutboundLimit:
    """Remove a limit; calls that wait may go, unless their place is paused.

    Raises NotFoundError.
    """
    place = await _hold(work, actor, limit_id)
    await Line.of(work, place).call_all_back()
    is_limit = (_place.id == limit_id, _place.workspace_id == actor.workspace_id)
    put_off = and_(_place.paused_until > func.clock_timestamp(), _place.host.is_not(None))
    if place.paused_at is None:
        await work.execute(delete(outbound_call).where(outbound_call.c.place_id == limit_id))
    kept = await work.execute(
        update(outbound_place)
        .where(*is_limit, or_(put_off, _place.paused_at.is_not(None)))
        .values(per_second=None, at_once=None, next_at=None, free_at=None)
    )
    if not kept.rowcount:
        await work.execute(delete(outbound_place).where(*is_limit))
    return DeletedOutboundLimit(id=limit_id)


async def _named_place(
    work: UnitOfWork, actor: Actor, body: CreateOutboundLimit
) -> dict[str, object]:
    if (body.host is None) == (body.connection_id is None):
        raise ValidationError.at("host", "Name a host or a connection, and one of them only.")
    if body.connection_id is not None:
        await get_connection(work, actor, body.connection_id)
        return {"connection_id": body.connection_id}
    assert body.host is not None, "one of the two is there"
    try:
        return {"host": canonical_host(body.host)}
    except ValueError:
        message = "must be the name or the address of a host, without scheme and port."
        raise ValidationError.at("host", message) from None


async def _hold(work: UnitOfWork, actor: Actor, limit_id: Id) -> OutboundPlace:
    this: tuple[ColumnElement[bool], ...] = (*limited_by(actor), _place.id == limit_id)
    statement = select(outbound_place).where(*this).with_for_update()
    place = await work.first(statement, of=OutboundPlace)
    if place is None:
        raise NotFoundError("limit")
    return place


async def ask_anew(work: UnitOfWork, place: OutboundPlace) -> None:
    """Take back the moments that were given by the limits of before."""
    line = outbound_call.c
    not_gone = (line.place_id == place.id, ~line.gone, line.go_at.is_not(None))
    await work.execute(update(outbound_call).where(*not_gone).values(go_at=None))
    await Line.of(work, place).call_all_back()
