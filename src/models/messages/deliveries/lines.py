"""Lines of deliveries, each with the circuit of its receiver, and starts of the next (ADR 0070).

Starts are in order in each line, and in turn between lines. A delivery
that waits is a row alone. One that is started gets an execution for one attempt.
"""

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert as upsert

from models.core.base import Id, Moment, Shape
from models.core.purging import MAX_ROWS, Retention
from models.messages.deliveries import commands, rules
from runtime.database import UnitOfWork, Work
from runtime.postgresql.schema import is_among, skip_scan
from runtime.postgresql.statements import PreparedStatement
from runtime.temporal import outbox
from runtime.temporal.workflow_kinds import WorkflowKind

MOST_FAILURES = 5
"""Attempts in a row that fail before the circuit opens."""

FIRST_CIRCUIT_PAUSE = 10.0
"""Seconds that a circuit is open at first; each trial that fails doubles them."""

LONGEST_CIRCUIT_PAUSE = 3_600.0
"""Seconds that a circuit is open at most, unless the receiver itself names a later time."""
SPREAD = 0.2
"""The part of a pause that chance takes away, so that receivers are not all tried at once."""


@dataclass(frozen=True, slots=True)
class Circuit:
    """The outcome of the attempts of a line, up to now.

    `opened` counts the pauses since the last success, and `retry_at` ends the latest; a circuit
    without it is closed. `since` is when it opened or closed.
    """

    failures: int = 0
    opened: int = 0
    retry_at: datetime | None = None
    since: datetime | None = None
    succeeded_at: datetime | None = None

    def state(self, now: datetime) -> rules.CircuitState:
        """The state at a moment; an open circuit opens halfway by time alone."""
        if self.retry_at is None:
            return rules.CircuitState.CLOSED
        return rules.CircuitState.OPEN if now < self.retry_at else rules.CircuitState.HALF_OPEN


def after_success(before: Circuit, now: datetime) -> Circuit:
    """The circuit closes, and stays so."""
    since = before.since if before.retry_at is None else now
    return Circuit(since=since, succeeded_at=now)


def after_failure(
    before: Circuit, now: datetime, chance: float, retry_after: float | None = None
) -> Circuit:
    """The circuit after one more failure; `chance` is between 0 and 1.

    What was under way when it opened changes nothing more.
    """
    state, failures = before.state(now), before.failures + 1
    if state is rules.CircuitState.OPEN or (
        state is rules.CircuitState.CLOSED and failures < MOST_FAILURES
    ):
        return replace(before, failures=failures)
    pause = max(pause_of(before.opened, chance), retry_after or 0)
    return replace(
        before,
        failures=failures,
        opened=before.opened + 1,
        retry_at=now + timedelta(seconds=pause),
        since=now if state is rules.CircuitState.CLOSED else before.since,
    )


def pause_of(opened: int, chance: float) -> float:
    """Seconds that a circuit stays open after `opened` openings without a success."""
    pause: float = min(FIRST_CIRCUIT_PAUSE * 2 ** min(opened, 30), LONGEST_CIRCUIT_PAUSE)
    return pause * (1 - SPREAD * chance)


class CircuitBody(Shape):
    """The circuit of a receiver: `open` while it keeps failing, and its deliveries wait.

    At `nextAttemptAt` one delivery is tried, and the circuit is `half_open`: it closes when that
    arrives, and opens for longer when it does not. `failures` are those in a row.
    """

    state: rules.CircuitState
    since: Moment | None
    next_attempt_at: Moment | None
    failures: int


MOST_RELEASED = 5
"""Attempts up to which a delivery is due at once when its circuit closes. Those after them keep to
the schedule, which a receiver that comes and goes must not use up in minutes."""

_line = commands.delivery_line.c


async def record_answer(
    work: UnitOfWork, delivery_row: commands.DeliveryRow, answer: rules.Answer
) -> None:
    """Write what an attempt means for the line, the last thing in its transaction.

    A delivery that no one takes any more says nothing about the receiver.
    """
    if answer.end is rules.DeliveryStatus.UNDELIVERABLE:
        return
    condition = _of(delivery_row.workspace_id, delivery_row.channel, delivery_row.target_id)
    key = {
        "workspace_id": delivery_row.workspace_id,
        "channel": delivery_row.channel,
        "target_id": delivery_row.target_id,
    }
    new = upsert(commands.delivery_line).values(**key, failures=0, opened=0)
    await work.execute(new.on_conflict_do_nothing())
    found = sa.select(commands.delivery_line).where(condition).with_for_update()
    row = await work.first(found, of=commands.DeliveryLine)
    assert row is not None
    before = _circuit(row)
    if answer.end is rules.DeliveryStatus.DELIVERED:
        after = after_success(before, work.now)
        if before.retry_at is not None:
            await _release(work, delivery_row)
    else:
        asked = min(answer.retry_after or 0, rules.LONGEST_PAUSE)
        after = after_failure(before, work.now, random.random(), asked)  # noqa: S311
    if after != before:
        await work.execute(
            sa.update(commands.delivery_line).where(condition).values(**asdict(after))
        )


async def _release(work: UnitOfWork, delivery_row: commands.DeliveryRow) -> None:
    """Let those go that failed while their receiver did, in their order."""
    waiting = (
        sa.select(commands.delivery.c.id)
        .where(
            commands.WAITING,
            commands.delivery.c.workspace_id == delivery_row.workspace_id,
            commands.delivery.c.channel == delivery_row.channel,
            commands.delivery.c.target_id == delivery_row.target_id,
            commands.delivery.c.next_attempt_at > work.now,
            commands.delivery.c.attempts <= MOST_RELEASED,
        )
        .with_for_update(skip_locked=True)
    )
    ids = [row.id for row in await work.rows(waiting)]
    await work.execute(
        sa.update(commands.delivery)
        .where(commands.delivery.c.id.in_(ids))
        .values(next_attempt_at=work.now)
    )


async def try_now(
    work: UnitOfWork, workspace_id: Id, channel: rules.DeliveryChannel, target_id: Id
) -> None:
    """Have an open circuit try its receiver at once, because someone asks for it."""
    later = _of(workspace_id, channel, target_id), _line.retry_at > work.now
    await work.execute(sa.update(commands.delivery_line).where(*later).values(retry_at=work.now))
    work.notify_workers = True


async def forget_line(
    work: UnitOfWork, workspace_id: Id, channel: rules.DeliveryChannel, target_id: Id
) -> None:
    """Forget what is known of a receiver that is gone, or is another one now."""
    await work.execute(
        sa.delete(commands.delivery_line).where(_of(workspace_id, channel, target_id))
    )
    work.notify_workers = True


async def forget_unused_lines(work: UnitOfWork) -> int:
    """Forget lines that no delivery stands in, not even one that has ended; gives their number."""
    used = sa.exists().where(
        commands.delivery.c.workspace_id == _line.workspace_id,
        commands.delivery.c.channel == _line.channel,
        commands.delivery.c.target_id == _line.target_id,
    )
    return (await work.execute(sa.delete(commands.delivery_line).where(~used))).rowcount


async def circuits_of(
    work: UnitOfWork, workspace_id: Id, channel: rules.DeliveryChannel, target_ids: Collection[Id]
) -> Mapping[Id, CircuitBody]:
    """The circuits of these receivers, by receiver."""
    statement = sa.select(commands.delivery_line).where(
        _line.workspace_id == workspace_id,
        _line.channel == channel,
        _line.target_id.in_(target_ids),
    )
    rows = await work.rows(statement, of=commands.DeliveryLine)
    circuits = {row.target_id: _circuit(row) for row in rows}
    return {each: _body(circuits.get(each, Circuit()), work.now) for each in target_ids}


def _body(known: Circuit, now: datetime) -> CircuitBody:
    return CircuitBody(
        state=known.state(now),
        since=known.since,
        next_attempt_at=known.retry_at,
        failures=known.failures,
    )


def _circuit(row: commands.DeliveryLine) -> Circuit:
    return Circuit(row.failures, row.opened, row.retry_at, row.since, row.succeeded_at)


def _of(
    workspace_id: Id, channel: str | sa.ColumnElement[str], target_id: Id
) -> sa.ColumnElement[bool]:
    return sa.and_(
        _line.workspace_id == workspace_id,
        _line.channel == channel,
        _line.target_id == target_id,
    )


_purge_ended = Retention(commands.delivery, commands.delivery.c.completed_at)


async def purge_deliveries(work: UnitOfWork, before: datetime, limit: int = MAX_ROWS) -> int:
    """Remove a batch of deliveries that ended before a moment, then of lines without any."""
    return await _purge_ended(work, before, limit) or await forget_unused_lines(work)


LINE_ROOM = 8
"""Executions at once for a receiver whose latest answer was a success; any other has one."""
WORKSPACE_ROOM = 32
"""Executions of deliveries at once in one workspace."""
MOST_EXPIRED = 500
"""Deliveries that one call ends because their time is over."""
MOST_WORKSPACES = 1_000

_one = commands.delivery.c
_NOW: sa.ColumnElement[Any] = sa.bindparam("now", type_=sa.DateTime(timezone=True))


def _lines(own: sa.ColumnElement[bool]) -> sa.CTE:
    """The lines that deliveries wait in."""
    return skip_scan(
        "line", (_one.workspace_id, _one.channel, _one.target_id), commands.WAITING, own
    )


def _same_line(line: sa.CTE, table: sa.FromClause) -> sa.ColumnElement[bool]:
    return sa.and_(
        table.c.workspace_id == line.c.workspace_id,
        table.c.channel == line.c.channel,
        table.c.target_id == line.c.target_id,
    )


def _starts_due() -> sa.ColumnElement[bool]:
    """True while deliveries wait in a line whose circuit may be tried."""
    line = _lines(sa.true())
    paused = sa.exists(_line.target_id).where(
        _same_line(line, commands.delivery_line), _line.retry_at > sa.func.now()
    )
    return sa.exists(sa.select(sa.literal(1)).select_from(line).where(~paused.correlate(line)))


STARTS_DUE = _starts_due()


def _next_of_lines(own: sa.ColumnElement[bool]) -> sa.Select[Any]:
    """The deliveries that their lines have room for, and the `turn` of each in its line."""
    line = _lines(own)
    works_well = (_line.failures == 0) & _line.succeeded_at.is_not(None)
    line_limit = sa.case(
        (_line.retry_at > _NOW, 0),
        (_line.retry_at.is_not(None), 1),
        (works_well, sa.bindparam("line_room", type_=sa.Integer)),
        else_=1,
    )
    under_way = (
        sa.select(sa.func.count())
        .where(commands.EXECUTING, _same_line(line, commands.delivery))
        .correlate(line)
    )
    room = (
        sa.select(line_limit.label("most"), under_way.scalar_subquery().label("under_way"))
        .select_from(
            sa.select(sa.literal(1))
            .subquery()
            .outerjoin(commands.delivery_line, _same_line(line, commands.delivery_line))
        )
        .correlate(line)
        .lateral("room")
    )
    due = (
        sa.select(_one.id, _one.created_at)
        .where(
            commands.WAITING,
            _same_line(line, commands.delivery),
            sa.or_(_one.next_attempt_at.is_(None), _one.next_attempt_at <= _NOW),
            _one.expires_at > _NOW,
        )
        .order_by(_one.created_at, _one.id)
        .limit(sa.func.greatest(room.c.most - room.c.under_way, 0))
        .correlate(line, room)
        .lateral("due")
    )
    place = sa.func.row_number().over(
        partition_by=sa.tuple_(*line.c), order_by=(due.c.created_at, due.c.id)
    )
    turn = (place + room.c.under_way).label("turn")
    return sa.select(line.c.workspace_id, due.c.id, due.c.created_at, turn).select_from(
        line.join(room, sa.true()).join(due, sa.true())
    )


def _behind() -> sa.Select[Any]:
    following = _next_of_lines(sa.true()).subquery()
    return sa.select(following.c.workspace_id).distinct().limit(MOST_WORKSPACES)


def _next_of_workspace() -> sa.Select[Any]:
    here = sa.bindparam("workspace_id", type_=sa.Uuid)
    following = _next_of_lines(_one.workspace_id == here).subquery()
    under_way = sa.select(sa.func.count()).where(commands.EXECUTING, _one.workspace_id == here)
    room = (
        sa.cast(sa.bindparam("workspace_room", type_=sa.Integer), sa.Integer)
        - under_way.scalar_subquery()
    )
    batch = (
        sa.select(following.c.id, following.c.turn)
        .order_by(following.c.turn, following.c.created_at, following.c.id)
        .limit(sa.func.greatest(room, 0))
        .cte("chosen")
    )
    columns = (_one.id, _one.workspace_id, _one.channel, _one.subject_id, _one.executions)
    return (
        sa.select(*columns)
        .join(batch, batch.c.id == _one.id)
        # The join alone may go through all open deliveries for each of the batch.
        .where(commands.WAITING, is_among(_one.id, sa.select(batch.c.id)))
        .order_by(batch.c.turn, _one.created_at, _one.id)
        .with_for_update(of=commands.delivery, skip_locked=True)
    )


_BEHIND, _NEXT = (
    PreparedStatement(_behind()),
    PreparedStatement(_next_of_workspace(), commands.Delivery),
)


async def workspaces_to_start(work: Work) -> Sequence[Id]:
    """Workspaces with a delivery that is due in a line that has room."""
    parameters = {"now": work.now, "line_room": LINE_ROOM}
    return [row.workspace_id for row in await _BEHIND.rows(work, parameters)]


async def start_deliveries(work: UnitOfWork, workspace_id: Id) -> int:
    """Have the next deliveries of a workspace attempted; returns their number.

    What another worker is about to start is left to it.
    """
    place = sa.func.hashtextextended(f"deliveries/{workspace_id}", 0)
    if not await work.scalar(sa.select(sa.func.pg_try_advisory_xact_lock(place))):
        return 0
    parameters = {
        "workspace_id": workspace_id,
        "now": work.now,
        "line_room": LINE_ROOM,
        "workspace_room": WORKSPACE_ROOM,
    }
    following = await _NEXT.rows(work, parameters)
    if not following:
        return 0
    await work.execute(
        sa.update(commands.delivery)
        .where(_one.id.in_([row.id for row in following]))
        .values(executing=True, executions=_one.executions + 1)
    )
    intents: list[outbox.IntentArguments] = [
        {
            "intent": outbox.Intent.START,
            "workflow_kind": WorkflowKind.DELIVERY,
            "workspace_id": workspace_id,
            "subject_id": row.id,
            "request": commands.request_of(
                rules.DeliveryChannel(row.channel), row.subject_id, row.executions + 1
            ),
        }
        for row in following
    ]
    await outbox.append_all(work, intents)
    return len(following)


async def expire_deliveries(work: UnitOfWork) -> int:
    """End deliveries that waited until their time was over; to be called until it gives 0."""
    over = (
        sa.select(_one.id)
        .where(commands.WAITING, _one.expires_at <= work.now)
        .order_by(_one.expires_at)
        .limit(MOST_EXPIRED)
        .with_for_update(skip_locked=True)
    )
    ids = [row.id for row in await work.rows(over)]
    return await commands.end_unsent(work, ids, rules.EXPIRED)
