"""Reading limits with the state of their places."""

from datetime import datetime
from typing import Any, Protocol

from sqlalchemy import ColumnElement, Select, func, or_, select

from models.core.access.rules import Actor
from models.core.base import Id
from models.core.pagination import PageRequest
from models.sources.connections.queries import seen_connections
from models.sources.outbound_limits.shapes import OutboundLimitBody, OutboundLimitList
from models.sources.outbound_limits.tables import outbound_call, outbound_place
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError

_place, _call = outbound_place.c, outbound_call.c


class _Row(Protocol):
    id: Id
    workspace_id: Id
    host: str | None
    connection_id: Id | None
    per_second: float | None
    at_once: int | None
    next_at: datetime | None
    free_at: datetime | None
    paused_until: datetime | None
    paused_at: datetime | None
    resumed_at: datetime | None
    created_at: datetime
    updated_at: datetime
    waiting: int
    under_way: int
    now: datetime


async def list_limits(work: UnitOfWork, actor: Actor, page: PageRequest) -> OutboundLimitList:
    """The limits that the actor sees, the oldest first."""
    order = (_place.created_at, _place.id)
    listed = await page.ascending(work, _seen(actor), *order, of=_Row)
    return OutboundLimitList(limits=[_shown(row) for row in listed.items], cursor=listed.cursor)


async def get_limit(work: UnitOfWork, actor: Actor, limit_id: Id) -> OutboundLimitBody:
    """A limit that the actor sees. Raises NotFoundError."""
    row = await work.first(_seen(actor).where(_place.id == limit_id), of=_Row)
    if row is None:
        raise NotFoundError("limit")
    return _shown(row)


def limited_by(actor: Actor) -> tuple[ColumnElement[bool], ...]:
    """The conditions on places with a limit that an actor sees; connections may be others' own."""
    return (
        _place.workspace_id == actor.workspace_id,
        or_(_place.per_second.is_not(None), _place.at_once.is_not(None)),
        or_(_place.host.is_not(None), _place.connection_id.in_(seen_connections(actor))),
    )


def _seen(actor: Actor) -> Select[Any]:
    number = select(func.count()).where(
        _call.place_id == _place.id, _call.ends_at > func.clock_timestamp()
    )
    return select(
        outbound_place,
        number.where(~_call.gone).scalar_subquery().label("waiting"),
        number.where(_call.gone).scalar_subquery().label("under_way"),
        func.clock_timestamp().label("now"),
    ).where(*limited_by(actor))


def _shown(row: _Row) -> OutboundLimitBody:
    paused_until = row.paused_until if row.paused_until and row.paused_until > row.now else None
    is_stopped = row.paused_at is not None and row.resumed_at is None
    moments = [one for one in (row.next_at, row.free_at, paused_until) if one and one > row.now]
    return OutboundLimitBody(
        id=row.id,
        workspace_id=row.workspace_id,
        host=row.host,
        connection_id=row.connection_id,
        per_second=row.per_second,
        at_once=row.at_once,
        waiting=row.waiting,
        at_once_now=row.under_way,
        next_free_at=None if is_stopped else max(moments, default=None),
        paused_until=paused_until,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )
