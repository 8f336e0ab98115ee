"""The state of the platform itself: what waits, for how long, and who works on it."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlmodel import Field, SQLModel

from models.core.base import Id, Moment, Shape
from models.core.lifecycle.commands import WorkTable, executed_tables
from models.messages.events.store import waiting_events
from runtime.database import UnitOfWork, Work
from runtime.postgresql.schema import Timestamp, table_of
from runtime.postgresql.statements import PreparedStatement
from runtime.temporal.outbox import outbox
from runtime.temporal.workflow_kinds import Queue

BEAT_SECONDS = 5.0
"""The seconds between two signs of a worker process that it is there."""
LOST_AFTER = timedelta(seconds=8)
"""Work is said to wait for a process that has missed a beat. One that is replaced is not missed."""
ALIVE_FOR = timedelta(seconds=20)
"""A process that has said nothing for so long is lost."""
SHOWN_FOR = timedelta(hours=1)
"""So long a process that is gone is still shown."""


class WorkerProcess(SQLModel, table=True):
    """A worker process that was there a short time ago; it says so again every few seconds."""

    __tablename__ = "worker_process"

    id: Id = Field(primary_key=True)
    host: str
    pid: int
    queues: list[str] = Field(sa_type=ARRAY(sa.Text))
    started_at: datetime = Field(sa_type=Timestamp)
    seen_at: datetime = Field(sa_type=Timestamp)


class EndedWork(SQLModel, table=True):
    """A part of the number of ends of a kind of work with a status: the sum over its rows.

    A trigger of each table of durable work writes one with each end, so nothing is counted that
    did not happen, and no end waits for another; `merge_ended_work` makes one row of them.
    """

    __tablename__ = "ended_work"

    id: int = Field(
        sa_type=sa.BigInteger, sa_column_args=[sa.Identity(always=True)], primary_key=True
    )
    kind: str
    status: str
    number: int = Field(sa_type=sa.BigInteger)


ended_work = table_of(EndedWork)
worker_process = table_of(WorkerProcess)


class Waiting(Shape):
    """The number that waits, and the age of the oldest; no age when nothing waits."""

    waiting: int
    oldest_seconds: float | None


class RelayState(Waiting):
    """The backlog of the outbox; its age is the lag of the relay.

    `retried` counts what could not be delivered at once.
    """

    retried: int


class OpenWork(Shape):
    """Open work of one kind in one state."""

    kind: str
    status: str
    count: int
    oldest_seconds: float


class WorkerBody(Shape):
    """A worker process; one that is not `alive` has said nothing for 20 seconds."""

    id: Id
    host: str
    pid: int
    queues: list[Queue]
    alive: bool
    started_at: Moment
    seen_at: Moment


class QueueBody(Shape):
    """A task queue, and the number of its live worker processes."""

    name: Queue
    workers: int


class SystemState(Shape):
    """The work that waits, for how long, and who works on it."""

    checked_at: Moment
    relay: RelayState
    events: Waiting
    work: list[OpenWork]
    queues: list[QueueBody]
    workers: list[WorkerBody]


_MOST_WORKERS = 500


async def system_state(work: UnitOfWork) -> SystemState:
    """The state of the platform now."""
    workers = await worker_processes(work)
    alive = [worker for worker in workers if worker.alive]
    return SystemState(
        checked_at=work.now,
        relay=await _relay(work),
        events=_waiting(await work.first(waiting_events()), work.now),
        work=await open_work(work),
        queues=[
            QueueBody(name=queue, workers=sum(queue in worker.queues for worker in alive))
            for queue in Queue
        ],
        workers=workers,
    )


async def open_work(
    work: UnitOfWork, metadata: sa.MetaData = SQLModel.metadata
) -> Sequence[OpenWork]:
    """The open work of every table of durable work, by its states."""
    return [one for kind in executed_tables(metadata) for one in await _open(work, kind)]


async def ended_work_counts(work: UnitOfWork) -> Mapping[tuple[str, ...], int]:
    """The ends of work so far, by kind and status; what is removed later still counts."""
    kind, status = ended_work.c.kind, ended_work.c.status
    total = sa.cast(sa.func.sum(ended_work.c.number), sa.BigInteger).label("total")
    rows = await work.rows(
        sa.select(kind, status, total).group_by(kind, status).order_by(kind, status)
    )
    return {(row.kind, row.status): row.total for row in rows}


async def lost_since(work: UnitOfWork) -> datetime | None:
    """The first time at which a queue lost its last worker; None while all have one."""
    process = worker_process.c
    each = sa.select(process.seen_at, sa.func.unnest(process.queues).label("queue")).subquery()
    seen = sa.func.max(each.c.seen_at).label("seen")
    by_queue = sa.select(seen).group_by(each.c.queue).subquery()
    lost: datetime | None = await work.scalar(
        sa.select(sa.func.min(by_queue.c.seen)).where(by_queue.c.seen < work.now - LOST_AFTER)
    )
    return lost


async def last_seen(work: UnitOfWork) -> datetime | None:
    """The time at which a worker said last that it is there; None when none is remembered."""
    seen: datetime | None = await work.scalar(sa.select(sa.func.max(worker_process.c.seen_at)))
    return seen


async def _relay(work: UnitOfWork) -> RelayState:
    row = await work.first(
        sa.select(
            sa.func.count().label("waiting"),
            sa.func.min(outbox.c.created_at).label("oldest"),
            sa.func.count().filter(outbox.c.attempts > 1).label("retried"),
        )
    )
    assert row is not None
    shown = _waiting(row, work.now)
    return RelayState(
        waiting=shown.waiting, oldest_seconds=shown.oldest_seconds, retried=row.retried
    )


def _waiting(found: sa.Row[Any] | None, now: datetime) -> Waiting:
    assert found is not None, "an aggregate has one row"
    age = None if found.oldest is None else _age(found.oldest, now)
    return Waiting(waiting=found.waiting, oldest_seconds=age)


async def _open(work: UnitOfWork, kind: WorkTable) -> Sequence[OpenWork]:
    columns = kind.table.c
    statement: sa.Select[Any] = (
        sa.select(
            columns.status,
            sa.func.count().label("count"),
            sa.func.min(columns[kind.accepted_column]).label("oldest"),
        )
        .where(kind.is_open, kind.executed)
        .group_by(columns.status)
        .order_by(columns.status)
    )
    return [
        OpenWork(
            kind=kind.table.name,
            status=row.status,
            count=row.count,
            oldest_seconds=_age(row.oldest, work.now),
        )
        for row in await work.rows(statement)
    ]


async def worker_processes(work: UnitOfWork) -> list[WorkerBody]:
    """The worker processes of the last hour, whether they are alive or not."""
    process = worker_process.c
    statement = (
        sa.select(worker_process)
        .where(process.seen_at > work.now - SHOWN_FOR)
        .order_by(process.started_at, process.id)
        .limit(_MOST_WORKERS)
    )
    return [
        WorkerBody(
            id=row.id,
            host=row.host,
            pid=row.pid,
            queues=[Queue(name) for name in row.queues],
            alive=work.now - row.seen_at < ALIVE_FOR,
            started_at=row.started_at,
            seen_at=row.seen_at,
        )
        for row in await work.rows(statement, of=WorkerProcess)
    ]


def _age(moment: datetime, now: datetime) -> float:
    return round(max(0.0, (now - moment).total_seconds()), 3)


_MERGED_AT_ONCE = 10_000

_process = worker_process.c
_OWN: dict[str, sa.BindParameter[Any]] = {
    name: sa.bindparam(name, type_=_process[name].type) for name in ("id", "host", "pid", "queues")
}
_NOW = sa.bindparam("now", type_=Timestamp)
_GONE = sa.delete(worker_process).where(
    _process.seen_at < _NOW - SHOWN_FOR, _process.id != _OWN["id"]
)
_BEAT = PreparedStatement(
    upsert(worker_process)
    .values(**_OWN, started_at=_NOW, seen_at=_NOW)
    .on_conflict_do_update(index_elements=["id"], set_={"seen_at": _NOW})
    .add_cte(_GONE.cte("gone"))
)


async def beat(work: Work, worker_id: Id, host: str, pid: int, queues: Sequence[Queue]) -> None:
    """Record that a worker process is alive; processes without a sign for long are forgotten."""
    values = {"id": worker_id, "host": host, "pid": pid, "queues": [*queues], "now": work.now}
    await _BEAT.execute(work, values)


async def leave(work: UnitOfWork, worker_id: Id) -> None:
    """Say that a worker process ends."""
    await work.execute(sa.delete(worker_process).where(worker_process.c.id == worker_id))


async def merge_ended_work(work: UnitOfWork) -> int:
    """Make one row of the ends of each kind and status; returns the number of surplus rows.

    Call it until it returns 0. What is written meanwhile is left to the next call.
    """
    key = ended_work.c.kind, ended_work.c.status
    # Another process sums up the locked rows at this moment.
    next_ones = sa.select(ended_work.c.id).limit(_MERGED_AT_ONCE).with_for_update(skip_locked=True)
    parts = (
        sa.delete(ended_work)
        .where(ended_work.c.id.in_(next_ones))
        .returning(*key, ended_work.c.number)
        .cte("part")
    )
    merged_key = parts.c.kind, parts.c.status
    total = sa.cast(sa.func.sum(parts.c.number), sa.BigInteger)
    merged = (
        sa.insert(ended_work)
        .from_select(
            ["kind", "status", "number"], sa.select(*merged_key, total).group_by(*merged_key)
        )
        .returning(ended_work.c.id)
        .cte("merged")
    )
    before, after = (
        sa.select(sa.func.count()).select_from(one).scalar_subquery() for one in (parts, merged)
    )
    return int(await work.scalar(sa.select(before - after).add_cte(parts, merged)))
