"""The turns of calls: asking for one, speaking for it while it lasts, and giving it back.

The second of two places is only entered with a moment at the first: a connection, and then a host.
"""

from collections.abc import Collection, Sequence
from datetime import timedelta

from sqlalchemy import ColumnElement, bindparam, delete, exists, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from models.core.base import Id
from models.sources.outbound_limits.line import NO_WAIT, Call, Line, Wait
from models.sources.outbound_limits.rules import LEASE, LONGEST_PAUSE
from models.sources.outbound_limits.tables import OutboundPlace, outbound_call, outbound_place
from runtime.database import UnitOfWork
from runtime.ids import new_id
from runtime.prepared_statement import PreparedStatement
from runtime.work import Work

_place, _call = outbound_place.c, outbound_call.c
_NOW = func.clock_timestamp()
HAS_LINE = or_(
    _place.per_second.is_not(None), _place.at_once.is_not(None), _place.paused_at.is_not(None)
)
"""Of a place for which somebody has set a limit or a pause; of others answers ask alone."""
# A call that stood there in a pause goes through its place, too: its row ends with it.
_STANDS = exists().where(
    _call.place_id == _place.id, _call.call_key == bindparam("call_key", type_=_call.call_key.type)
)
_MINDED = PreparedStatement(
    select(_place.id).where(
        _place.workspace_id == bindparam("workspace_id"),
        or_(
            _place.host == bindparam("host"),
            _place.connection_id == bindparam("connection_id", type_=_place.connection_id.type),
        ),
        or_(HAS_LINE, _place.paused_until > _NOW, _STANDS),
    )
)


async def is_limited(work: Work, call: Call) -> bool:
    """True when a call has to ask for its turn."""
    values = {
        "workspace_id": call.workspace_id,
        "host": call.host,
        "connection_id": call.connection_id,
        "call_key": call.key,
    }
    return await _MINDED.first(work, values) is not None


async def ask(work: UnitOfWork, call: Call) -> Wait:
    """Ask for the turn of a call; with nothing to wait for it goes now."""
    places = await _held_places(work, call)
    places = [place for place in places if place.paused_at is None or not call.passes]
    lines = [Line.of(work, place) for place in places]
    for line in lines:
        if wait := await line.wait(call):
            await keep(work, call)
            return wait
    for line in lines:
        await line.go(call)
    return NO_WAIT


async def ask_and_leave(work: UnitOfWork, call: Call, execution: str) -> Wait:
    """Ask once more, and leave the call in its line, for an execution that comes back for it.

    Whoever changes the place meanwhile waits, and then finds whom to tell.
    """
    wait = await ask(work, call)
    if wait:
        await _go_away(work, call, execution, wait)
    return wait


async def _go_away(work: UnitOfWork, call: Call, execution: str, wait: Wait) -> None:
    back_at = _NOW + wait.time
    await work.execute(
        update(outbound_call)
        .where(*_of(call))
        .values(execution=execution, back_at=back_at, ends_at=back_at + LEASE)
    )


async def keep(work: UnitOfWork, call: Call) -> None:
    """Speak for a call that is under way: it holds its places for another while."""
    await work.execute(update(outbound_call).where(*_of(call)).values(ends_at=_NOW + LEASE))


async def end(work: UnitOfWork, call: Call) -> None:
    """Give the places of a call back, and on to who is next."""
    places = await _held_places(work, call)
    await work.execute(delete(outbound_call).where(*_of(call)))
    for place in places:
        if place.at_once is not None:
            await Line.of(work, place).advance()


async def leave_lines(work: UnitOfWork, workspace_id: Id, work_ids: Collection[Id]) -> None:
    """Take calls of closed work out of their lines, but for those under way."""
    theirs = (_call.workspace_id == workspace_id, _call.work_id.in_(sorted(work_ids)))
    await work.execute(delete(outbound_call).where(*theirs, ~_call.gone))


async def put_off(work: UnitOfWork, workspace_id: Id, host: str, seconds: float) -> None:
    """Have nobody in a workspace call a host for so long, as an answer has asked."""
    until = _NOW + timedelta(seconds=min(seconds, LONGEST_PAUSE.total_seconds()))
    await work.execute(
        upsert(outbound_place)
        .values(
            id=new_id(),
            workspace_id=workspace_id,
            host=host,
            paused_until=until,
            created_at=work.now,
            updated_at=work.now,
        )
        .on_conflict_do_update(
            index_elements=["workspace_id", "host"],
            index_where=_place.host.is_not(None),
            set_={"paused_until": func.greatest(_place.paused_until, until)},
        )
    )
    over = (
        select(_place.id)
        .where(
            _place.workspace_id == workspace_id,
            ~HAS_LINE,
            _place.paused_until <= _NOW,
            _place.host != host,
        )
        # Answers of two hosts at the same time must not wait for each other's place.
        .with_for_update(skip_locked=True)
    )
    await work.execute(delete(outbound_place).where(_place.id.in_(over)))


async def _held_places(work: UnitOfWork, call: Call) -> Sequence[OutboundPlace]:
    """The places of a call, locked: always that of the connection first."""
    named = _place.host == call.host
    if call.connection_id is not None:
        named = or_(named, _place.connection_id == call.connection_id)
    statement = (
        select(outbound_place)
        .where(_place.workspace_id == call.workspace_id, named)
        .order_by(_place.host.is_not(None))
        .with_for_update()
    )
    return await work.rows(statement, of=OutboundPlace)


def _of(call: Call) -> tuple[ColumnElement[bool], ...]:
    return _call.workspace_id == call.workspace_id, _call.call_key == call.key
