"""Work that may end its workers: what was open when a worker started, counted until it is cleared.

A lost worker takes much with it, and only one piece of work is to blame. So each suspect is
executed while no other suspect is, and counted before and after: `begin_alone`, `report`.
"""

from collections.abc import Iterable
from datetime import timedelta

from sqlalchemy import case, delete, exists, func, literal, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from models.core.base import Id
from models.core.lifecycle.commands import WorkTable
from models.core.lifecycle.tables import work_suspect
from runtime.database import UnitOfWork
from runtime.outbox import Intent, outbox

MOST_LOST = 3
"""Workers that may be lost with one piece of work."""
SUSPICION = timedelta(minutes=10)
"""How long work is suspected after the start of a worker."""

_suspect = work_suspect.c


async def suspect(work: UnitOfWork, kinds: Iterable[WorkTable]) -> None:
    """Suspect all open work whose start has been delivered; it has lost one worker then."""
    await work.execute(delete(work_suspect).where(_suspect.suspected_at < work.now - SUSPICION))
    for kind in kinds:
        columns = kind.table.c
        undelivered = exists().where(
            outbox.c.subject_id == columns.id, outbox.c.intent == Intent.START
        )
        found = select(columns.id, literal(1), literal(work.now)).where(kind.is_open, ~undelivered)
        statement = upsert(work_suspect).from_select(["id", "lost", "suspected_at"], found)
        again = {"suspected_at": work.now}
        await work.execute(statement.on_conflict_do_update(index_elements=["id"], set_=again))


async def suspected(work: UnitOfWork) -> frozenset[Id]:
    """The ids of all suspects."""
    statement = select(_suspect.id).where(_suspect.suspected_at >= work.now - SUSPICION)
    return frozenset(row.id for row in await work.rows(statement))


async def begin_alone(work: UnitOfWork, work_id: Id) -> bool:
    """Count one more worker; False when too many were lost with the work already."""
    count = case((_suspect.lost < MOST_LOST, _suspect.lost + 1), else_=_suspect.lost)
    statement = update(work_suspect).where(_suspect.id == work_id).values(lost=count)
    before = select(_suspect.lost).where(_suspect.id == work_id).with_for_update()
    lost = await work.scalar(before)
    await work.execute(statement)
    return lost is None or lost < MOST_LOST


async def report(work: UnitOfWork, work_id: Id) -> None:
    """Take back what `begin_alone` counted: the worker is still there."""
    lost = func.greatest(_suspect.lost - 1, 0)
    await work.execute(update(work_suspect).where(_suspect.id == work_id).values(lost=lost))
