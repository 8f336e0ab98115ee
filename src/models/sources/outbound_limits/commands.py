"""Setting, changing and removing limits, and pausing connections; waiting calls are notified."""

from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert as upsert

from models.core.access.rules import Actor
from models.core.base import Deleted, Id
from models.core.pauses.rules import PauseState
from models.core.pauses.store import MOST_COUNTED, PauseShape
from models.core.values import next_updated_at
from models.sources.connections.store import get_connection
from models.sources.outbound_limits import queries
from models.sources.outbound_limits.rules import LEASE
from models.sources.outbound_limits.tables import (
    LIMITED,
    LIMITS,
    OutboundPlace,
    outbound_call,
    outbound_place,
)
from models.sources.outbound_limits.turns import NO_PAUSE, Line
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, ValidationError
from runtime.ids import new_id
from runtime.outbound_policy import canonical_host

_place = outbound_place.c
_NEEDS_ONE = "Set perSecond, atOnce or both."


async def create_limit(
    work: UnitOfWork, actor: Actor, body: queries.CreateOutboundLimit
) -> queries.OutboundLimitBody:
    """Limit the calls of a host or of a connection.

    Raises ValidationError, NotFoundError for a connection that the actor does not see, and
    ConflictError for a place that has a limit, or when there are too many.
    """
    place = await _named_place(work, actor, body)
    limits = {"per_second": body.per_second, "at_once": body.at_once}
    if body.per_second is None and body.at_once is None:
        raise ValidationError.at("perSecond", _NEEDS_ONE)
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
    async with LIMITS.place(work, actor.workspace_id):
        limit_id = await work.scalar(
            statement.on_conflict_do_update(
                index_elements=["workspace_id", name],
                index_where=_place[name].is_not(None),
                set_={**limits, "created_at": work.now, "updated_at": work.now},
                where=~LIMITED,
            ).returning(_place.id)
        )
    if limit_id is None:
        raise ConflictError("This host or connection already has a limit. Change that one.")
    return await queries.get_limit(work, actor, limit_id)


async def update_limit(
    work: UnitOfWork,
    actor: Actor,
    limit_id: Id,
    body: queries.UpdateOutboundLimit,
    expected_updated_at: datetime | None = None,
) -> queries.OutboundLimitBody:
    """Change a limit; calls that wait ask again.

    Raises NotFoundError, ValidationError where no limit would be left, and ConflictError for one
    that is not any more what was read.
    """
    before = await _hold(work, actor, limit_id)
    if expected_updated_at not in {None, before.updated_at}:
        raise ConflictError("The limit changed since you read it. Read it again.")
    changes = body.model_dump(exclude_unset=True)
    per_second = changes.get("per_second", before.per_second)
    at_once = changes.get("at_once", before.at_once)
    if per_second is None and at_once is None:
        raise ValidationError.at("perSecond", _NEEDS_ONE)
    longest = None if per_second is None else work.now + timedelta(seconds=1 / per_second)
    statement = (
        sa.update(outbound_place)
        .where(_place.id == limit_id, _place.workspace_id == actor.workspace_id)
        .values(
            per_second=per_second,
            at_once=at_once,
            next_at=None,
            free_at=None if longest is None else sa.func.least(_place.free_at, longest),
            updated_at=next_updated_at(_place.updated_at, work.now),
        )
        .returning(outbound_place)
    )
    row = await work.first(statement, of=OutboundPlace)
    assert row is not None, "it is held"
    await ask_anew(work, row)
    return await queries.get_limit(work, actor, limit_id)


async def delete_limit(work: UnitOfWork, actor: Actor, limit_id: Id) -> Deleted:
    """Remove a limit; calls that wait may go, unless their place is paused.

    Raises NotFoundError.
    """
    place = await _hold(work, actor, limit_id)
    await Line.of(work, place).call_all_back()
    is_limit = (_place.id == limit_id, _place.workspace_id == actor.workspace_id)
    put_off = sa.and_(_place.paused_until > sa.func.clock_timestamp(), _place.host.is_not(None))
    if place.paused_at is None:
        await work.execute(sa.delete(outbound_call).where(outbound_call.c.place_id == limit_id))
    kept = await work.execute(
        sa.update(outbound_place)
        .where(*is_limit, sa.or_(put_off, _place.paused_at.is_not(None)))
        .values(per_second=None, at_once=None, next_at=None, free_at=None)
    )
    if not kept.rowcount:
        await work.execute(sa.delete(outbound_place).where(*is_limit))
    return Deleted(id=limit_id)


async def _named_place(
    work: UnitOfWork, actor: Actor, body: queries.CreateOutboundLimit
) -> dict[str, object]:
    if (body.host is None) == (body.connection_id is None):
        raise ValidationError.at("host", "Set either a host or a connection.")
    if body.connection_id is not None:
        await get_connection(work, actor, body.connection_id)
        return {"connection_id": body.connection_id}
    assert body.host is not None, "one of the two is there"
    try:
        return {"host": canonical_host(body.host)}
    except ValueError:
        message = "must be a host name or address, without scheme and port."
        raise ValidationError.at("host", message) from None


async def _hold(work: UnitOfWork, actor: Actor, limit_id: Id) -> OutboundPlace:
    this: tuple[sa.ColumnElement[bool], ...] = (*queries.limited_by(actor), _place.id == limit_id)
    statement = sa.select(outbound_place).where(*this).with_for_update()
    return await work.one(statement, "limit", of=OutboundPlace)


async def ask_anew(work: UnitOfWork, place: OutboundPlace) -> None:
    """Take back the moments that were given by the limits of before."""
    line = outbound_call.c
    not_gone = (line.place_id == place.id, ~line.gone, line.go_at.is_not(None))
    await work.execute(sa.update(outbound_call).where(*not_gone).values(go_at=None))
    await Line.of(work, place).call_all_back()


_places, _call = outbound_place.c, outbound_call.c


async def pause_connection(work: UnitOfWork, actor: Actor, connection_id: Id, reason: str) -> bool:
    """Have the next calls through a connection wait; False when it is paused already.

    Raises NotFoundError.
    """
    await get_connection(work, actor, connection_id)
    pause = {
        **NO_PAUSE,
        "paused_at": work.now,
        "pause_reason": reason,
        "paused_by_user_id": actor.person,
    }
    statement = upsert(outbound_place).values(
        id=new_id(),
        workspace_id=actor.workspace_id,
        connection_id=connection_id,
        created_at=work.now,
        updated_at=work.now,
        **pause,
    )
    place_id = await work.scalar(
        statement.on_conflict_do_update(
            index_elements=["workspace_id", "connection_id"],
            index_where=_places.connection_id.is_not(None),
            set_=pause,
            where=_places.paused_at.is_(None) | _places.resumed_at.is_not(None),
        ).returning(_places.id)
    )
    if place_id is None:
        return False
    # Moments that were given but not used are revoked.
    not_gone = (_call.place_id == place_id, ~_call.gone, _call.go_at.is_not(None))
    await work.execute(sa.update(outbound_call).where(*not_gone).values(go_at=None))
    return True


async def resume_connection(
    work: UnitOfWork, actor: Actor, connection_id: Id, body: queries.ResumeConnection
) -> bool:
    """Let the line of a connection go, at a rate or at once; False when it was not paused.

    Of one that is being resumed, the rate changes. Raises NotFoundError.
    """
    await get_connection(work, actor, connection_id)
    place = await _paused_place(work, actor.workspace_id, connection_id, lock=True)
    if place is None:
        return False
    if body.rate is None:
        await _let_all_go(work, place)
        return place.resumed_at is None
    statement = (
        sa.update(outbound_place)
        .where(_places.id == place.id)
        .values(resumed_at=place.resumed_at or work.now, release_rate=body.rate, next_at=None)
        .returning(outbound_place)
    )
    row = await work.first(statement, of=OutboundPlace)
    assert row is not None, "it is held"
    await _call_on(work, row)
    line = Line.of(work, row)
    await line.advance()
    await line.end_release()
    return place.resumed_at is None


async def _let_all_go(work: UnitOfWork, place: OutboundPlace) -> None:
    """End a pause at once; without a limit its line ends, too."""
    await _call_on(work, place)
    if place.per_second is not None or place.at_once is not None:
        this = sa.update(outbound_place).where(_places.id == place.id)
        await work.execute(this.values(NO_PAUSE))
    else:
        await work.execute(sa.delete(outbound_place).where(_places.id == place.id))


async def _call_on(work: UnitOfWork, place: OutboundPlace) -> None:
    """Tell all that wait, and give them the time to come back."""
    waiting = (_call.place_id == place.id, ~_call.gone)
    ends_at = sa.func.greatest(_call.ends_at, sa.func.clock_timestamp() + LEASE)
    await work.execute(sa.update(outbound_call).where(*waiting).values(ends_at=ends_at))
    await ask_anew(work, place)


async def call_back(work: UnitOfWork, workspace_id: Id, connection_id: Id) -> None:
    """Have calls that wait for a connection look again, since it goes."""
    place = await _paused_place(work, workspace_id, connection_id, lock=True)
    if place is not None:
        await Line.of(work, place).call_all_back()


async def pause_of(work: UnitOfWork, actor: Actor, connection_id: Id) -> PauseShape:
    """The pause of a connection, with the number of calls that wait. Raises NotFoundError."""
    await get_connection(work, actor, connection_id)
    place = await _paused_place(work, actor.workspace_id, connection_id)
    if place is None:
        return PauseShape(state=PauseState.RUNNING)
    waiting = (_call.place_id == place.id, ~_call.gone, _call.ends_at > sa.func.clock_timestamp())
    some = sa.select(_call.call_key).where(*waiting).limit(MOST_COUNTED)
    resting: int = await work.scalar(sa.select(sa.func.count()).select_from(some.subquery()))
    if place.resumed_at is not None and not resting:
        # Rows of lost calls go with the next call, and so does the pause.
        return PauseShape(state=PauseState.RUNNING)
    return PauseShape(
        state=PauseState.PAUSED if place.resumed_at is None else PauseState.RESUMING,
        reason=place.pause_reason,
        paused_by_user_id=place.paused_by_user_id,
        paused_at=place.paused_at,
        resumed_at=place.resumed_at,
        rate=place.release_rate,
        resting=resting,
    )


async def _paused_place(
    work: UnitOfWork, workspace_id: Id, connection_id: Id, *, lock: bool = False
) -> OutboundPlace | None:
    statement = sa.select(outbound_place).where(
        _places.workspace_id == workspace_id,
        _places.connection_id == connection_id,
        _places.paused_at.is_not(None),
    )
    return await work.first(statement.with_for_update() if lock else statement, of=OutboundPlace)
