"""Lost workers: open work that waits for one, and work that may have ended its worker.

The domain of the whole platform knows of workers, and says so through `find_lost_workers_with` and
`find_last_sign_with`; `models.registrations` lists them.

A lost worker takes much with it, and only one piece of work is to blame. So each suspect is
executed while no other suspect is, and counted before and after: `begin_alone`, `report_alive`. A
worker that someone else ended leaves no count: `settle_suspects`. Work with too many counts is
quarantined.
"""

import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol, TypeVar

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlmodel import Field, SQLModel

from models.core.base import Id
from models.core.lifecycle.commands import WorkTable
from models.core.pauses.intents import is_resting
from runtime.database import UnitOfWork, Work
from runtime.postgresql.schema import Timestamp, table_of
from runtime.postgresql.statements import PreparedStatement
from runtime.temporal.outbox import Intent, outbox


class WorkSuspect(SQLModel, table=True):
    """Work that was open when a worker started: the worker before it may have been lost with it.

    `lost` counts the workers that it was executed by and that gave no report of it; `held_by` is
    the process that executes it now, as `host:pid`. Quarantined work is executed in a process of
    its own.
    """

    __tablename__ = "work_suspect"
    __table_args__ = (sa.Index("ix_work_suspect_suspected_at", "suspected_at"),)

    id: Id = Field(primary_key=True)
    lost: int
    suspected_at: datetime = Field(sa_type=Timestamp)
    held_by: str | None = None
    quarantined_at: datetime | None = Field(default=None, sa_type=Timestamp)


work_suspect = table_of(WorkSuspect)


FindLost = Callable[[UnitOfWork], Awaitable[datetime | None]]
"""Gives the time at which a queue lost its last worker; None while all have one."""

FindSign = Callable[[UnitOfWork], Awaitable[datetime | None]]
"""Gives the time at which a worker said last that it is there; None when none is remembered."""

_FIND: list[FindLost] = []
_FIND_SIGN: list[FindSign] = []


def find_lost_workers_with(find: FindLost) -> None:
    """Ask `find` for lost workers; registering it again changes nothing."""
    if find not in _FIND:
        _FIND.append(find)


class OpenWork(Protocol):
    """An answer about work that says when it was accepted."""

    created_at: datetime
    waiting_for_worker_since: datetime | None


Answer = TypeVar("Answer", bound=OpenWork)


async def with_worker_wait(work: UnitOfWork, answer: Answer, *, is_open: bool) -> Answer:
    """The answer about work, with the time since which it waits for a lost worker."""
    if is_open:
        answer.waiting_for_worker_since = await waiting_for_worker_since(work, answer.created_at)
    return answer


async def waiting_for_worker_since(work: UnitOfWork, accepted: datetime) -> datetime | None:
    """The start of the wait of open work, accepted then, for a lost worker; None if it has none."""
    for find in _FIND:
        if (lost := await find(work)) is not None:
            return max(lost, accepted)
    return None


def find_last_sign_with(find: FindSign) -> None:
    """Ask `find` for the last sign of a worker; registering it again changes nothing."""
    if find not in _FIND_SIGN:
        _FIND_SIGN.append(find)


async def last_sign(work: UnitOfWork) -> datetime | None:
    """The time at which a worker said last that it is there; None when none is remembered.

    A worker that ended in order is forgotten at once.
    """
    (find,) = _FIND_SIGN
    return await find(work)


MOST_LOST = 3
"""Workers that are lost with one piece of work before it is quarantined."""
SUSPICION = timedelta(minutes=10)
"""The time for which work is suspected after the start of a worker."""
LONGEST_QUARANTINE = timedelta(days=60)
"""Longer than any work lasts."""

_suspect = work_suspect.c


def _is_current(now: datetime | sa.ColumnElement[datetime]) -> sa.ColumnElement[bool]:
    return sa.or_(
        _suspect.suspected_at >= now - SUSPICION,
        _suspect.quarantined_at >= now - LONGEST_QUARANTINE,
    )


_SUSPECTED = PreparedStatement(
    sa.select(_suspect.id, _suspect.quarantined_at).where(
        _is_current(sa.bindparam("now", type_=Timestamp))
    ),
    of=WorkSuspect,
)


async def settle_suspects(work: UnitOfWork, host: str, *, guilty: bool) -> None:
    """Close the counts of the processes of this host that are gone.

    They stay when those processes died of what they did, and are taken back when they did not.
    """
    held = sa.select(_suspect.held_by).where(
        _suspect.held_by.startswith(f"{host}:", autoescape=True)
    )
    gone = [row.held_by for row in await work.rows(held.distinct()) if _is_gone(row.held_by)]
    lost = _suspect.lost if guilty else sa.func.greatest(_suspect.lost - 1, 0)
    statement = sa.update(work_suspect).where(_suspect.held_by.in_(gone))
    await work.execute(statement.values(lost=lost, held_by=None))


def _is_gone(holder: str) -> bool:
    pid = int(holder.rpartition(":")[2])
    if pid == os.getpid():
        # The process before this one had the same number.
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


async def suspect_work(
    work: UnitOfWork, executed: Iterable[tuple[WorkTable, sa.Select[Any]]]
) -> None:
    """Suspect all open work whose start has been delivered; it has lost one worker then.

    `executed` selects the rows of each table that have an execution while they are open.
    """
    await work.execute(sa.delete(work_suspect).where(~_is_current(work.now)))
    for kind, rows in executed:
        columns = kind.table.c
        # One that was claimed may have been delivered, though its row still stands.
        undelivered = sa.exists().where(
            outbox.c.subject_id == columns.id,
            outbox.c.intent == Intent.START,
            outbox.c.attempts == 0,
        )
        first = rows.with_only_columns(columns.id, sa.literal(1), sa.literal(work.now))
        statement = upsert(work_suspect).from_select(
            ["id", "lost", "suspected_at"],
            first.where(kind.is_open, ~undelivered, ~is_resting(columns.id)),
        )
        again = {"suspected_at": work.now}
        await work.execute(statement.on_conflict_do_update(index_elements=["id"], set_=again))


async def suspected_work(work: Work) -> Mapping[Id, bool]:
    """The ids of all suspects, and which of them are quarantined."""
    rows = await _SUSPECTED.rows(work, {"now": work.now})
    return {row.id: row.quarantined_at is not None for row in rows}


async def begin_alone(work: UnitOfWork, work_id: Id, holder: str) -> bool:
    """Count one more worker; False where the work has lost enough of them to be quarantined."""
    below_limit = _suspect.lost < MOST_LOST
    statement = sa.update(work_suspect).where(_suspect.id == work_id)
    quarantined_at = await work.scalar(
        statement.values(
            lost=sa.case((below_limit, _suspect.lost + 1), else_=_suspect.lost),
            held_by=sa.case((below_limit, holder), else_=None),
            quarantined_at=sa.case((below_limit, None), else_=work.now),
        ).returning(_suspect.quarantined_at)
    )
    return quarantined_at is None


async def report_alive(work: UnitOfWork, work_id: Id) -> None:
    """Take back what `begin_alone` counted: the worker is still there."""
    lost = sa.func.greatest(_suspect.lost - 1, 0)
    statement = sa.update(work_suspect).where(_suspect.id == work_id)
    await work.execute(statement.values(lost=lost, held_by=None))


async def quarantined_work(work: UnitOfWork) -> Sequence[WorkSuspect]:
    """All quarantined work, the latest first."""
    statement = sa.select(work_suspect).where(_suspect.quarantined_at.is_not(None))
    return await work.rows(statement.order_by(_suspect.quarantined_at.desc()), of=WorkSuspect)


async def clear_suspicion(work: UnitOfWork, work_id: Id) -> bool:
    """Suspect a piece of work no longer, and lift its quarantine; False when it was none."""
    statement = sa.delete(work_suspect).where(_suspect.id == work_id).returning(_suspect.id)
    return await work.scalar(statement) is not None
