"""Reading what waits and who works on it."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, MetaData, Row, Select, cast, func, select
from sqlmodel import SQLModel

from models.core.lifecycle.commands import WorkTable, executed_tables
from models.messages.events.queries import waiting_events
from models.workspace.system.rules import ALIVE_FOR, LOST_AFTER, SHOWN_FOR
from models.workspace.system.shapes import (
    OpenWork,
    QueueBody,
    RelayState,
    SystemState,
    Waiting,
    WorkerBody,
)
from models.workspace.system.tables import WorkerProcess, ended_work, worker_process
from runtime.database import UnitOfWork
from runtime.families import Queue
from runtime.outbox import outbox

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


async def open_work(work: UnitOfWork, metadata: MetaData = SQLModel.metadata) -> Sequence[OpenWork]:
    """The open work of every table of durable work, by its states."""
    return [one for kind in executed_tables(metadata) for one in await _open(work, kind)]


async def ended_work_counts(work: UnitOfWork) -> Mapping[tuple[str, ...], int]:
    """The ends of work so far, by kind and status; what is removed later still counts."""
    kind, status = ended_work.c.kind, ended_work.c.status
    total = cast(func.sum(ended_work.c.number), BigInteger).label("total")
    rows = await work.rows(
        select(kind, status, total).group_by(kind, status).order_by(kind, status)
    )
    return {(row.kind, row.status): row.total for row in rows}


async def lost_since(work: UnitOfWork) -> datetime | None:
    """The first time at which a queue lost its last worker; None while all have one."""
    process = worker_process.c
    each = select(process.seen_at, func.unnest(process.queues).label("queue")).subquery()
    seen = func.max(each.c.seen_at).label("seen")
    by_queue = select(seen).group_by(each.c.queue).subquery()
    lost: datetime | None = await work.scalar(
        select(func.min(by_queue.c.seen)).where(by_queue.c.seen < work.now - LOST_AFTER)
    )
    return lost


async def last_seen(work: UnitOfWork) -> datetime | None:
    """The time at which a worker said last that it is there; None when none is remembered."""
    seen: datetime | None = await work.scalar(select(func.max(worker_process.c.seen_at)))
    return seen


async def _relay(work: UnitOfWork) -> RelayState:
    row = await work.first(
        select(
            func.count().label("waiting"),
            func.min(outbox.c.created_at).label("oldest"),
            func.count().filter(outbox.c.attempts > 1).label("retried"),
        )
    )
    assert row is not None
    shown = _waiting(row, work.now)
    return RelayState(
        waiting=shown.waiting, oldest_seconds=shown.oldest_seconds, retried=row.retried
    )


def _waiting(found: Row[Any] | None, now: datetime) -> Waiting:
    assert found is not None, "an aggregate has one row"
    age = None if found.oldest is None else _age(found.oldest, now)
    return Waiting(waiting=found.waiting, oldest_seconds=age)


async def _open(work: UnitOfWork, kind: WorkTable) -> Sequence[OpenWork]:
    columns = kind.table.c
    statement: Select[Any] = (
        select(
            columns.status,
            func.count().label("count"),
            func.min(columns[kind.accepted_column]).label("oldest"),
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
        select(worker_process)
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
