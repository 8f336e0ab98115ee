"""The turns of calls: asking for one, holding it, giving it back, in the line of their place.

A call has up to two places: a connection, and then a host. The second is only entered with a moment
at the first.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Protocol

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert as upsert

from models.core.base import Id, Timestamp
from models.sources.outbound_limits import rules
from models.sources.outbound_limits.tables import OutboundPlace, outbound_call, outbound_place
from runtime.database import UnitOfWork, Work
from runtime.ids import new_id
from runtime.postgresql.statements import PreparedStatement
from runtime.temporal import outbox
from runtime.temporal.workflow_kinds import WorkflowKind

_place, _call = outbound_place.c, outbound_call.c
_NOW = sa.func.clock_timestamp()
HAS_LINE = sa.or_(
    _place.per_second.is_not(None), _place.at_once.is_not(None), _place.paused_at.is_not(None)
)
"""For a place with a limit or a pause of a member; for others only answers ask for one."""

# A call that stood there in a pause goes through its place, too: its row ends with it.
_STANDS = sa.exists().where(
    _call.place_id == _place.id,
    _call.call_key == sa.bindparam("call_key", type_=_call.call_key.type),
)
_MINDED = PreparedStatement(
    sa.select(_place.id).where(
        _place.workspace_id == sa.bindparam("workspace_id"),
        sa.or_(
            _place.host == sa.bindparam("host"),
            _place.connection_id == sa.bindparam("connection_id", type_=_place.connection_id.type),
        ),
        sa.or_(HAS_LINE, _place.paused_until > _NOW, _STANDS),
    )
)


@dataclass(frozen=True, slots=True)
class Call:
    """A call to make; it has the same `key` in each repetition.

    One that `passes` is not held up by the pause of a connection.
    """

    workspace_id: Id
    work_id: Id
    key: str
    host: str
    connection_id: Id | None = None
    passes: bool = False


async def is_limited(work: Work, call: Call) -> bool:
    """True when a call has to ask for its turn."""
    values = {
        "workspace_id": call.workspace_id,
        "host": call.host,
        "connection_id": call.connection_id,
        "call_key": call.key,
    }
    return await _MINDED.first(work, values) is not None


@dataclass(frozen=True, slots=True)
class Wait:
    """The time until a call should ask again; `known`, it may go then as far as one can tell."""

    time: timedelta
    known: bool = True

    def __bool__(self) -> bool:
        return self.time > timedelta()


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

    A change of the place waits meanwhile, and then finds the calls to notify.
    """
    wait = await ask(work, call)
    if wait:
        await _go_away(work, call, execution, wait)
    return wait


async def _go_away(work: UnitOfWork, call: Call, execution: str, wait: Wait) -> None:
    back_at = _NOW + wait.time
    await work.execute(
        sa.update(outbound_call)
        .where(*_of(call))
        .values(execution=execution, back_at=back_at, ends_at=back_at + rules.LEASE)
    )


async def keep(work: UnitOfWork, call: Call) -> None:
    """Speak for a call that is under way: it holds its places for another while."""
    await work.execute(
        sa.update(outbound_call).where(*_of(call)).values(ends_at=_NOW + rules.LEASE)
    )


async def end(work: UnitOfWork, call: Call) -> None:
    """Give the places of a call back, and on to who is next."""
    places = await _held_places(work, call)
    await work.execute(sa.delete(outbound_call).where(*_of(call)))
    for place in places:
        if place.at_once is not None:
            await Line.of(work, place).advance()


async def leave_lines(work: UnitOfWork, workspace_id: Id, work_ids: Collection[Id]) -> None:
    """Take calls of closed work out of their lines, but for those under way."""
    theirs = (_call.workspace_id == workspace_id, _call.work_id.in_(sorted(work_ids)))
    await work.execute(sa.delete(outbound_call).where(*theirs, ~_call.gone))


async def put_off(work: UnitOfWork, workspace_id: Id, host: str, seconds: float) -> None:
    """Pause the calls of a host by a workspace for a time, as an answer has asked."""
    until = _NOW + timedelta(seconds=min(seconds, rules.LONGEST_PAUSE.total_seconds()))
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
            set_={"paused_until": sa.func.greatest(_place.paused_until, until)},
        )
    )
    over = (
        sa.select(_place.id)
        .where(
            _place.workspace_id == workspace_id,
            ~HAS_LINE,
            _place.paused_until <= _NOW,
            _place.host != host,
        )
        # Answers of two hosts at the same time must not wait for each other's place.
        .with_for_update(skip_locked=True)
    )
    await work.execute(sa.delete(outbound_place).where(_place.id.in_(over)))


async def _held_places(work: UnitOfWork, call: Call) -> Sequence[OutboundPlace]:
    """The places of a call, locked: always that of the connection first."""
    named = _place.host == call.host
    if call.connection_id is not None:
        named = sa.or_(named, _place.connection_id == call.connection_id)
    statement = (
        sa.select(outbound_place)
        .where(_place.workspace_id == call.workspace_id, named)
        .order_by(_place.host.is_not(None))
        .with_for_update()
    )
    return await work.rows(statement, of=OutboundPlace)


def _of(call: Call) -> tuple[sa.ColumnElement[bool], ...]:
    return _call.workspace_id == call.workspace_id, _call.call_key == call.key


_calls = outbound_call.c

_WAITS, _HOLDS = _calls.go_at.is_(None), _calls.go_at.is_not(None)

NO_PAUSE = dict.fromkeys(
    ("paused_at", "pause_reason", "paused_by_user_id", "resumed_at", "release_rate")
)
_SOONER = timedelta(seconds=1)
"""A call that is away is notified of its time where it would ask again only this much later."""

NO_WAIT = Wait(timedelta())


class _Standing(Protocol):
    now: datetime
    go_at: datetime | None
    entered_at: datetime
    held: int
    before: int
    earlier: int


class _Away(Protocol):
    work_id: Id
    call_key: str
    execution: str | None
    go_at: datetime
    back_at: datetime | None


@dataclass
class Line:
    """The line of a place whose row is held.

    A transaction that changes the line holds the row of the place. The clock is that of the
    database, as the clocks of workers differ.
    """

    work: UnitOfWork
    place_id: Id
    workspace_id: Id
    pace: rules.Pace
    releases: bool = False
    """After the pause of a connection, until no call waits."""

    @classmethod
    def of(cls, work: UnitOfWork, place: OutboundPlace) -> "Line":
        """The line of a place that was just locked."""
        pace = rules.Pace(
            rules.slower(place.per_second, place.release_rate),
            place.at_once,
            place.next_at,
            place.free_at,
            place.paused_until,
            stopped=place.paused_at is not None and place.resumed_at is None,
        )
        releases = place.resumed_at is not None
        return cls(work, place.id, place.workspace_id, pace, releases)

    async def wait(self, call: Call) -> Wait:
        """Have a call stand in line, and say how long it has to wait still."""
        await self._enter(call)
        if not self.pace.has_line:
            # Only an answer has asked for a pause: after it all go at once.
            now: datetime = await self.work.scalar(sa.select(_NOW))
            return Wait(self.pace.first_moment(now) - now)
        await self.advance()
        standing = await self._standing(call)
        if standing.go_at is not None:
            return Wait(self.pace.turn(standing.go_at, standing.earlier) - standing.now)
        waited = standing.now - standing.entered_at
        time = rules.stay(self.pace, standing.now, standing.held, standing.before, waited)
        return Wait(time, known=self.pace.stopped or self.pace.at_once is None)

    async def advance(self) -> None:
        """Give moments to the first in line, as far as the limits let them."""
        counts = await self.work.first(
            sa.select(
                _NOW.label("now"),
                sa.func.count().filter(_HOLDS).label("held"),
                sa.func.count().filter(_WAITS).label("waiting"),
            ).where(_calls.place_id == self.place_id)
        )
        assert counts is not None, "a row of aggregates"
        turns = rules.next_round(self.pace, counts.now, counts.held, counts.waiting)
        if not turns.moments:
            return
        await self._give(turns.moments)
        if turns.next_at != self.pace.next_at:
            this = outbound_place.c.id == self.place_id
            await self.work.execute(
                sa.update(outbound_place).where(this).values(next_at=turns.next_at)
            )
            self.pace = replace(self.pace, next_at=turns.next_at)

    async def go(self, call: Call) -> None:
        """Let a call go that has nothing to wait for."""
        statement = (
            sa.update(outbound_call)
            .where(_calls.place_id == self.place_id, _calls.call_key == call.key)
            .values(gone=True, ends_at=_NOW + rules.LEASE)
            .returning(_NOW)
        )
        gone_at = await self.work.scalar(statement)
        if gone_at is not None and self.pace.per_second is not None:
            this = outbound_place.c.id == self.place_id
            free_at = self.pace.free_after(gone_at)
            await self.work.execute(sa.update(outbound_place).where(this).values(free_at=free_at))
        await self.end_release()

    async def end_release(self) -> None:
        """Forget the pause of an empty line, and its place where it has no limit."""
        waits = sa.select(_calls.call_key).where(_calls.place_id == self.place_id, ~_calls.gone)
        if not self.releases or await self.work.first(waits.limit(1)) is not None:
            return
        place = outbound_place.c
        this = place.id == self.place_id
        limited = sa.or_(place.per_second.is_not(None), place.at_once.is_not(None))
        ended = sa.update(outbound_place).where(this, limited).values(NO_PAUSE)
        if not (await self.work.execute(ended)).rowcount:
            await self.work.execute(sa.delete(outbound_place).where(this))

    async def call_all_back(self) -> None:
        """Have all that are away ask again, in their order: what they were told holds no longer."""
        away = (
            sa.select(_calls.work_id, _calls.call_key, _calls.execution)
            .where(_calls.place_id == self.place_id, _calls.execution.is_not(None))
            .order_by(_calls.position)
        )
        await self._tell(await self.work.rows(away, of=_Away))

    async def _enter(self, call: Call) -> None:
        """Stand in line, or keep one's place there; what is left of lost calls goes.

        A moment that lies in a pause is given back.
        """
        own = sa.and_(_calls.call_key == call.key, _calls.gone)
        late = _calls.ends_at < _NOW
        if self.pace.stopped:
            # Workers may be away for a while in a long pause, and no call loses its place by it.
            late = sa.and_(late, _calls.gone)
        lost = sa.or_(late, own)
        await self.work.execute(
            sa.delete(outbound_call).where(_calls.place_id == self.place_id, lost)
        )
        pauses = sa.literal(self.pace.paused_until, Timestamp) > _NOW
        await self.work.execute(
            upsert(outbound_call)
            .values(
                place_id=self.place_id,
                call_key=call.key,
                workspace_id=self.workspace_id,
                work_id=call.work_id,
                entered_at=_NOW,
                gone=False,
                ends_at=_NOW + rules.LEASE,
            )
            .on_conflict_do_update(
                index_elements=["place_id", "call_key"],
                set_={
                    "go_at": sa.case((pauses, sa.null()), else_=_calls.go_at),
                    "execution": None,
                    "back_at": None,
                    "ends_at": _NOW + rules.LEASE,
                },
            )
        )

    async def _give(self, moments: Sequence[datetime]) -> None:
        first = (
            sa.select(_calls.call_key)
            .where(_calls.place_id == self.place_id, _WAITS)
            .order_by(_calls.position)
            .limit(len(moments))
        )
        keys = [row.call_key for row in await self.work.rows(first)]
        pairs = sa.func.unnest(
            sa.literal(keys, sa.ARRAY(_calls.call_key.type)),
            sa.literal(list(moments), sa.ARRAY(Timestamp)),
        )
        turn = pairs.table_valued("call_key", "moment").render_derived("turn")
        statement = (
            sa.update(outbound_call)
            .where(_calls.place_id == self.place_id, _calls.call_key == turn.c.call_key)
            .values(
                go_at=turn.c.moment,
                ends_at=sa.func.greatest(_calls.ends_at, turn.c.moment + rules.LEASE),
            )
            .returning(
                _calls.work_id, _calls.call_key, _calls.execution, _calls.go_at, _calls.back_at
            )
        )
        rows = await self.work.rows(statement, of=_Away)
        await self._tell(
            [row for row in rows if row.back_at is not None and row.back_at > row.go_at + _SOONER]
        )

    async def _tell(self, away: Sequence[_Away]) -> None:
        await outbox.append_all(self.work, [self._told(row) for row in away])

    def _told(self, away: _Away) -> outbox.IntentArguments:
        assert away.execution is not None, "who is away has one"
        return {
            "intent": outbox.Intent.SIGNAL,
            "workflow_kind": WorkflowKind(away.execution.partition("/")[0]),
            "workspace_id": self.workspace_id,
            "subject_id": away.work_id,
            "request": {
                "workflowId": away.execution,
                "signal": rules.signal_of(away.call_key),
                "arguments": [],
            },
        }

    async def _standing(self, call: Call) -> _Standing:
        of_place = _calls.place_id == self.place_id
        neighbour = outbound_call.alias("neighbour").c
        counted = sa.select(sa.func.count()).where(neighbour.place_id == self.place_id)
        holders = counted.where(neighbour.go_at.is_not(None)).scalar_subquery()
        before = counted.where(
            neighbour.go_at.is_(None), neighbour.position < _calls.position
        ).scalar_subquery()
        earlier = counted.where(~neighbour.gone, neighbour.go_at < _calls.go_at).scalar_subquery()
        standing = await self.work.first(
            sa.select(
                _NOW.label("now"),
                _calls.go_at,
                _calls.entered_at,
                holders.label("held"),
                before.label("before"),
                earlier.label("earlier"),
            ).where(of_place, _calls.call_key == call.key),
            of=_Standing,
        )
        assert standing is not None, "it has entered"
        return standing
