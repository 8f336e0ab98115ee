"""Lines of deliveries: each with its receiver's circuit, moved by its answers (ADR 0070)."""

import random
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, and_, delete, exists, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from models.core.base import Id, Moment, Shape
from models.core.purging import MAX_ROWS, Retention
from models.messages.deliveries.commands import DeliveryRow
from models.messages.deliveries.rules import (
    LONGEST_PAUSE,
    Answer,
    CircuitState,
    DeliveryChannel,
    DeliveryStatus,
)
from models.messages.deliveries.tables import WAITING, DeliveryLine, delivery, delivery_line
from runtime.database import UnitOfWork

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

    def state(self, now: datetime) -> CircuitState:
        """The state at a moment; an open circuit opens halfway by time alone."""
        if self.retry_at is None:
            return CircuitState.CLOSED
        return CircuitState.OPEN if now < self.retry_at else CircuitState.HALF_OPEN


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
    if state is CircuitState.OPEN or (state is CircuitState.CLOSED and failures < MOST_FAILURES):
        return replace(before, failures=failures)
    pause = max(pause_of(before.opened, chance), retry_after or 0)
    return replace(
        before,
        failures=failures,
        opened=before.opened + 1,
        retry_at=now + timedelta(seconds=pause),
        since=now if state is CircuitState.CLOSED else before.since,
    )


def pause_of(opened: int, chance: float) -> float:
    """Seconds that a circuit is open which was so many times before, without a success."""
    pause: float = min(FIRST_CIRCUIT_PAUSE * 2 ** min(opened, 30), LONGEST_CIRCUIT_PAUSE)
    return pause * (1 - SPREAD * chance)


class CircuitBody(Shape):
    """The circuit of a receiver: `open` while it keeps failing, and its deliveries wait.

    At `nextAttemptAt` one delivery is tried, and the circuit is `half_open`: it closes when that
    arrives, and opens for longer when it does not. `failures` are those in a row.
    """

    state: CircuitState
    since: Moment | None
    next_attempt_at: Moment | None
    failures: int


MOST_RELEASED = 5
"""Attempts up to which a delivery is due at once when its circuit closes. Those after them keep to
the schedule, which a receiver that comes and goes must not use up in minutes."""

_line = delivery_line.c


async def record_answer(work: UnitOfWork, delivery_row: DeliveryRow, answer: Answer) -> None:
    """Write what an attempt means for the line, the last thing in its transaction.

    A delivery that nobody takes any more says nothing about the receiver.
    """
    if answer.end is DeliveryStatus.UNDELIVERABLE:
        return
    condition = _of(delivery_row.workspace_id, delivery_row.channel, delivery_row.target_id)
    key = {
        "workspace_id": delivery_row.workspace_id,
        "channel": delivery_row.channel,
        "target_id": delivery_row.target_id,
    }
    new = upsert(delivery_line).values(**key, failures=0, opened=0)
    await work.execute(new.on_conflict_do_nothing())
    found = select(delivery_line).where(condition).with_for_update()
    row = await work.first(found, of=DeliveryLine)
    assert row is not None
    before = _circuit(row)
    if answer.end is DeliveryStatus.DELIVERED:
        after = after_success(before, work.now)
        if before.retry_at is not None:
            await _release(work, delivery_row)
    else:
        asked = min(answer.retry_after or 0, LONGEST_PAUSE)
        after = after_failure(before, work.now, random.random(), asked)  # noqa: S311
    if after != before:
        await work.execute(update(delivery_line).where(condition).values(**asdict(after)))


async def _release(work: UnitOfWork, delivery_row: DeliveryRow) -> None:
    """Let those go that failed while their receiver did, in their order."""
    waiting = (
        select(delivery.c.id)
        .where(
            WAITING,
            delivery.c.workspace_id == delivery_row.workspace_id,
            delivery.c.channel == delivery_row.channel,
            delivery.c.target_id == delivery_row.target_id,
            delivery.c.next_attempt_at > work.now,
            delivery.c.attempts <= MOST_RELEASED,
        )
        .with_for_update(skip_locked=True)
    )
    ids = [row.id for row in await work.rows(waiting)]
    await work.execute(
        update(delivery).where(delivery.c.id.in_(ids)).values(next_attempt_at=work.now)
    )


async def try_now(
    work: UnitOfWork, workspace_id: Id, channel: DeliveryChannel, target_id: Id
) -> None:
    """Have an open circuit try its receiver at once, because somebody asks for it."""
    later = _of(workspace_id, channel, target_id), _line.retry_at > work.now
    await work.execute(update(delivery_line).where(*later).values(retry_at=work.now))
    work.notify_workers = True


async def forget_line(
    work: UnitOfWork, workspace_id: Id, channel: DeliveryChannel, target_id: Id
) -> None:
    """Forget what is known of a receiver that is gone, or is another one now."""
    await work.execute(delete(delivery_line).where(_of(workspace_id, channel, target_id)))
    work.notify_workers = True


async def forget_unused_lines(work: UnitOfWork) -> int:
    """Forget lines that no delivery stands in, not even one that has ended; gives their number."""
    used = exists().where(
        delivery.c.workspace_id == _line.workspace_id,
        delivery.c.channel == _line.channel,
        delivery.c.target_id == _line.target_id,
    )
    return (await work.execute(delete(delivery_line).where(~used))).rowcount


async def circuits_of(
    work: UnitOfWork, workspace_id: Id, channel: DeliveryChannel, target_ids: Collection[Id]
) -> Mapping[Id, CircuitBody]:
    """The circuits of these receivers, by receiver."""
    known = select(delivery_line).where(
        _line.workspace_id == workspace_id,
        _line.channel == channel,
        _line.target_id.in_(target_ids),
    )
    found = {row.target_id: _circuit(row) for row in await work.rows(known, of=DeliveryLine)}
    return {each: _body(found.get(each, Circuit()), work.now) for each in target_ids}


def _body(known: Circuit, now: datetime) -> CircuitBody:
    return CircuitBody(
        state=known.state(now),
        since=known.since,
        next_attempt_at=known.retry_at,
        failures=known.failures,
    )


def _circuit(row: DeliveryLine) -> Circuit:
    return Circuit(row.failures, row.opened, row.retry_at, row.since, row.succeeded_at)


def _of(workspace_id: Id, channel: str | ColumnElement[str], target_id: Id) -> ColumnElement[bool]:
    return and_(
        _line.workspace_id == workspace_id,
        _line.channel == channel,
        _line.target_id == target_id,
    )


_purge_ended = Retention(delivery, delivery.c.completed_at)


async def purge_deliveries(work: UnitOfWork, before: datetime, limit: int = MAX_ROWS) -> int:
    """Remove a batch of deliveries that ended before a moment, then of lines without any."""
    return await _purge_ended(work, before, limit) or await forget_unused_lines(work)
