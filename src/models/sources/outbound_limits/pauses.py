"""Pauses of connections: calls through one stay in its line until a resume (ADR 0097)."""

from sqlalchemy import delete, func, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from models.core.access.rules import Actor
from models.core.base import Id
from models.core.pauses.queries import MOST_COUNTED
from models.core.pauses.rules import PauseState
from models.core.pauses.shapes import PauseShape
from models.sources.connections.queries import get_connection
from models.sources.outbound_limits.commands import ask_anew
from models.sources.outbound_limits.line import NO_PAUSE, Line
from models.sources.outbound_limits.rules import LEASE
from models.sources.outbound_limits.shapes import ResumeConnection
from models.sources.outbound_limits.tables import OutboundPlace, outbound_call, outbound_place
from runtime.database import UnitOfWork
from runtime.ids import new_id

_place, _call = outbound_place.c, outbound_call.c


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
            index_where=_place.connection_id.is_not(None),
            set_=pause,
            where=_place.paused_at.is_(None) | _place.resumed_at.is_not(None),
        ).returning(_place.id)
    )
    if place_id is None:
        return False
    # Moments that are given and not taken are taken back.
    not_gone = (_call.place_id == place_id, ~_call.gone, _call.go_at.is_not(None))
    await work.execute(update(outbound_call).where(*not_gone).values(go_at=None))
    return True


async def resume_connection(
    work: UnitOfWork, actor: Actor, connection_id: Id, body: ResumeConnection
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
        update(outbound_place)
        .where(_place.id == place.id)
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
        this = update(outbound_place).where(_place.id == place.id)
        await work.execute(this.values(NO_PAUSE))
    else:
        await work.execute(delete(outbound_place).where(_place.id == place.id))


async def _call_on(work: UnitOfWork, place: OutboundPlace) -> None:
    """Tell all that wait, and give them the time to come back."""
    waiting = (_call.place_id == place.id, ~_call.gone)
    ends_at = func.greatest(_call.ends_at, func.clock_timestamp() + LEASE)
    await work.execute(update(outbound_call).where(*waiting).values(ends_at=ends_at))
    await ask_anew(work, place)


async def call_back(work: UnitOfWork, workspace_id: Id, connection_id: Id) -> None:
    """Have calls that wait for a connection look again, since it goes."""
    place = await _paused_place(work, workspace_id, connection_id, lock=True)
    if place is not None:
        await Line.of(work, place).call_all_back()


async def pause_of(work: UnitOfWork, actor: Actor, connection_id: Id) -> PauseShape:
    """The pause of a connection, and how many calls wait. Raises NotFoundError."""
    await get_connection(work, actor, connection_id)
    place = await _paused_place(work, actor.workspace_id, connection_id)
    if place is None:
        return PauseShape(state=PauseState.RUNNING)
    waiting = (_call.place_id == place.id, ~_call.gone, _call.ends_at > func.clock_timestamp())
    some = select(_call.call_key).where(*waiting).limit(MOST_COUNTED)
    resting: int = await work.scalar(select(func.count()).select_from(some.subquery()))
    if place.resumed_at is not None and not resting:
        # What was left of lost calls goes with the next one, and the pause with it.
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
    statement = select(outbound_place).where(
        _place.workspace_id == workspace_id,
        _place.connection_id == connection_id,
        _place.paused_at.is_not(None),
    )
    return await work.first(statement.with_for_update() if lock else statement, of=OutboundPlace)
