"""Work that may end its workers: what was open when a worker started, counted until it is cleared.

A lost worker takes much with it, and only one piece of work is to blame. So each suspect is
executed while no other suspect is, and counted before and after: `begin_alone`, `report`. A worker
that somebody else ended leaves no count: `settle`. Work with too many counts is quarantined.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Select,
    bindparam,
    case,
    delete,
    exists,
    func,
    literal,
    or_,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import insert as upsert

from models.core.base import Id
from models.core.lifecycle.commands import WorkTable
from models.core.lifecycle.tables import WorkSuspect, work_suspect
from models.core.pauses.resting import rests
from runtime.database import UnitOfWork
from runtime.outbox import Intent, outbox
from runtime.prepared_statement import PreparedStatement
from runtime.schema import Timestamp
from runtime.work import Work

MOST_LOST = 3
"""Workers that are lost with one piece of work before it is quarantined."""
SUSPICION = timedelta(minutes=10)
"""The time for which work is suspected after the start of a worker."""
LONGEST_QUARANTINE = timedelta(days=60)
"""Longer than any work lasts."""

_suspect = work_suspect.c


def _is_current(now: datetime | ColumnElement[datetime]) -> ColumnElement[bool]:
    return or_(
        _suspect.suspected_at >= now - SUSPICION,
        _suspect.quarantined_at >= now - LONGEST_QUARANTINE,
    )


_SUSPECTED = PreparedStatement(
    select(_suspect.id, _suspect.quarantined_at).where(
        _is_current(bindparam("now", type_=Timestamp))
    ),
    of=WorkSuspect,
)


async def settle(work: UnitOfWork, host: str, *, guilty: bool) -> None:
    """Close the counts of the processes of this host that are gone.

    They stay when those processes died of what they did, and are taken back when they did not.
    """
    held = select(_suspect.held_by).where(_suspect.held_by.startswith(f"{host}:", autoescape=True))
    gone = [row.held_by for row in await work.rows(held.distinct()) if _is_gone(row.held_by)]
    lost = _suspect.lost if guilty else func.greatest(_suspect.lost - 1, 0)
    statement = update(work_suspect).where(_suspect.held_by.in_(gone))
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


async def suspect(work: UnitOfWork, executed: Iterable[tuple[WorkTable, Select[Any]]]) -> None:
    """Suspect all open work whose start has been delivered; it has lost one worker then.

    `executed` selects the rows of each table that have an execution while they are open.
    """
    await work.execute(delete(work_suspect).where(~_is_current(work.now)))
    for kind, rows in executed:
        columns = kind.table.c
        # One that was claimed may have been delivered, though its row still stands.
        undelivered = exists().where(
            outbox.c.subject_id == columns.id,
            outbox.c.intent == Intent.START,
            outbox.c.attempts == 0,
        )
        first = rows.with_only_columns(columns.id, literal(1), literal(work.now))
        statement = upsert(work_suspect).from_select(
            ["id", "lost", "suspected_at"],
            first.where(kind.is_open, ~undelivered, ~rests(columns.id)),
        )
        again = {"suspected_at": work.now}
        await work.execute(statement.on_conflict_do_update(index_elements=["id"], set_=again))


async def suspected(work: Work) -> Mapping[Id, bool]:
    """The ids of all suspects, and which of them are quarantined."""
    rows = await _SUSPECTED.rows(work, {"now": work.now})
    return {row.id: row.quarantined_at is not None for row in rows}


async def begin_alone(work: UnitOfWork, work_id: Id, holder: str) -> bool:
    """Count one more worker; False when so many were lost with the work that it is quarantined."""
    below_limit = _suspect.lost < MOST_LOST
    statement = update(work_suspect).where(_suspect.id == work_id)
    quarantined_at = await work.scalar(
        statement.values(
            lost=case((below_limit, _suspect.lost + 1), else_=_suspect.lost),
            held_by=case((below_limit, holder), else_=None),
            quarantined_at=case((below_limit, None), else_=work.now),
        ).returning(_suspect.quarantined_at)
    )
    return quarantined_at is None


async def report(work: UnitOfWork, work_id: Id) -> None:
    """Take back what `begin_alone` counted: the worker is still there."""
    lost = func.greatest(_suspect.lost - 1, 0)
    statement = update(work_suspect).where(_suspect.id == work_id)
    await work.execute(statement.values(lost=lost, held_by=None))


async def quarantined(work: UnitOfWork) -> Sequence[WorkSuspect]:
    """All quarantined work, the latest first."""
    statement = select(work_suspect).where(_suspect.quarantined_at.is_not(None))
    return await work.rows(statement.order_by(_suspect.quarantined_at.desc()), of=WorkSuspect)


async def clear(work: UnitOfWork, work_id: Id) -> bool:
    """Suspect a piece of work no longer, and lift its quarantine; False when it was none."""
    statement = delete(work_suspect).where(_suspect.id == work_id).returning(_suspect.id)
    return await work.scalar(statement) is not None
