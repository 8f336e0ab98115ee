"""Effects of a receiver's answers on the line of its deliveries (ADR 0070)."""

import random
from collections.abc import Collection, Mapping
from dataclasses import asdict
from datetime import datetime

from sqlalchemy import ColumnElement, and_, delete, exists, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from models.core.base import Id
from models.messages.deliveries import circuit
from models.messages.deliveries.circuit import Circuit
from models.messages.deliveries.rows import DeliveryRow
from models.messages.deliveries.rules import LONGEST_PAUSE, Answer, DeliveryChannel, DeliveryStatus
from models.messages.deliveries.shapes import CircuitBody
from models.messages.deliveries.tables import WAITING, DeliveryLine, delivery, delivery_line
from runtime.database import UnitOfWork

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
        after = circuit.after_success(before, work.now)
        if before.retry_at is not None:
            await _release(work, delivery_row)
    else:
        asked = min(answer.retry_after or 0, LONGEST_PAUSE)
        after = circuit.after_failure(before, work.now, random.random(), asked)  # noqa: S311
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
