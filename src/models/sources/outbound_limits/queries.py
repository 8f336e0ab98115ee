"""Limits of outbound calls on the wire, the state of their places, and the work that waits."""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Annotated, Any, Protocol

import sqlalchemy as sa
from pydantic import Field

from models.core.access.rules import Actor
from models.core.base import Id, Input, InputId, JsonObject, Moment, Shape, example
from models.core.pagination import Listed, PageRequest
from models.core.pauses.rules import PauseCause
from models.core.pauses.store import WaitCause, WaitKind
from models.sources.connections.store import seen_connections
from models.sources.outbound_limits import rules
from models.sources.outbound_limits.tables import outbound_call, outbound_place
from models.sources.outbound_limits.turns import HAS_LINE
from runtime.clock import wire_timestamp
from runtime.database import UnitOfWork

PerSecond = Annotated[
    float,
    Field(ge=rules.LEAST_PER_SECOND, le=rules.MOST_PER_SECOND, allow_inf_nan=False, strict=False),
]
AtOnce = Annotated[int, Field(ge=1, le=rules.MOST_AT_ONCE)]


class CreateOutboundLimit(Input):
    """Body of create outbound limit: one place, by `host` or `connectionId`, and its limits.

    A host has no scheme and no port, and is found however a URL spells it.
    """

    model_config = example({"host": "api.example.com", "perSecond": 5, "atOnce": 2})

    host: Annotated[str, Field(min_length=1, max_length=300)] | None = None
    connection_id: InputId | None = None
    per_second: PerSecond | None = None
    at_once: AtOnce | None = None


class UpdateOutboundLimit(Input):
    """Body of update outbound limit; null takes one of the two limits away."""

    model_config = example({"perSecond": 0.5})

    per_second: PerSecond | None = None
    at_once: AtOnce | None = None


class ResumeConnection(Input):
    """Body of resume connection: `rate` calls a minute, or all at once without it."""

    model_config = example({"rate": 60})

    rate: Annotated[int, Field(ge=1, le=rules.MOST_RELEASED)] | None = None


class OutboundLimitBody(Shape):
    """A limit and its current use.

    `waiting` calls are queued and `atOnceNow` are in flight. The next one is made at `nextFreeAt`,
    by the rate and a pause.
    """

    id: Id
    workspace_id: Id
    host: str | None
    connection_id: Id | None
    per_second: float | None
    at_once: int | None
    waiting: int
    at_once_now: int
    next_free_at: Moment | None
    paused_until: Moment | None
    created_at: Moment
    updated_at: Moment


class OutboundLimitList(Listed):
    limits: list[OutboundLimitBody]


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
    return OutboundLimitList.of(listed, _shown)


async def get_limit(work: UnitOfWork, actor: Actor, limit_id: Id) -> OutboundLimitBody:
    """A limit that the actor sees. Raises NotFoundError."""
    row = await work.one(_seen(actor).where(_place.id == limit_id), "limit", of=_Row)
    return _shown(row)


def limited_by(actor: Actor) -> tuple[sa.ColumnElement[bool], ...]:
    """The conditions on places with a limit that an actor sees; connections may be others' own."""
    return (
        _place.workspace_id == actor.workspace_id,
        sa.or_(_place.per_second.is_not(None), _place.at_once.is_not(None)),
        sa.or_(_place.host.is_not(None), _place.connection_id.in_(seen_connections(actor))),
    )


def _seen(actor: Actor) -> sa.Select[Any]:
    number = sa.select(sa.func.count()).where(
        _call.place_id == _place.id, _call.ends_at > sa.func.clock_timestamp()
    )
    return sa.select(
        outbound_place,
        number.where(~_call.gone).scalar_subquery().label("waiting"),
        number.where(_call.gone).scalar_subquery().label("under_way"),
        sa.func.clock_timestamp().label("now"),
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


class _Wait(Protocol):
    work_id: Id
    host: str | None
    connection_id: Id | None
    entered_at: datetime
    go_at: datetime | None
    pause_reason: str | None
    paused_at: datetime | None
    resumed_at: datetime | None
    asked_to_wait: bool | None


async def waits_of(
    work: UnitOfWork, workspace_id: Id, work_ids: Collection[Id]
) -> Mapping[Id, JsonObject]:
    """The `waitingFor` of work of which a call waits, by the id of the work."""
    if not work_ids:
        return {}
    asked_to_wait = _place.paused_until > sa.func.clock_timestamp()
    rows = await work.rows(
        sa.select(
            _call.work_id,
            _place.host,
            _place.connection_id,
            _call.entered_at,
            _call.go_at,
            _place.pause_reason,
            _place.paused_at,
            _place.resumed_at,
            asked_to_wait.label("asked_to_wait"),
        )
        .join(outbound_place, _place.id == _call.place_id)
        .where(
            _call.workspace_id == workspace_id,
            _call.work_id.in_(sorted(work_ids)),
            ~_call.gone,
            sa.or_(HAS_LINE, asked_to_wait),
        )
        .order_by(_call.position.desc()),
        of=_Wait,
    )
    return {row.work_id: _waiting_for(row) for row in rows}


def _waiting_for(row: _Wait) -> JsonObject:
    if row.connection_id is None:
        place: JsonObject = {"subject": "host", "host": row.host}
    else:
        place = {"subject": "connection", "subjectId": str(row.connection_id)}
    if row.paused_at is not None:
        return {
            "kind": WaitKind.PAUSED,
            **place,
            "cause": PauseCause.PERSON,
            "reason": row.pause_reason or "",
            "since": wire_timestamp(row.paused_at),
            "resuming": row.resumed_at is not None,
        }
    return {
        "kind": WaitKind.LIMITED,
        **place,
        "cause": WaitCause.ANSWER if row.asked_to_wait else WaitCause.LIMIT,
        "since": wire_timestamp(row.entered_at),
        **({} if row.go_at is None else {"until": wire_timestamp(row.go_at)}),
    }
