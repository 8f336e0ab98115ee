"""Pauses that a test attends to itself, and what rests and starts."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import func, select, update

from models.core.pauses.intents import pause, resting_intent
from models.core.pauses.rules import PauseSubject
from models.core.pauses.store import PauseWork, ResumeWork, attend_next_pause
from models.workspace import pauses
from runtime.database import Database
from runtime.temporal.outbox import Intent, outbox
from tests.support.engine import Engine


async def attend_once(database: Database, subject_id: UUID | str, *, now: bool = True) -> bool:
    """Attend to the pauses of one subject, also before they are due; False when none is there."""
    async with database.transaction() as work:
        these = pause.c.subject_id == UUID(str(subject_id))
        if now:
            due = update(pause).where(these, pause.c.due_at.is_not(None))
            await work.execute(due.values(due_at=func.to_timestamp(0)))
    async with database.transaction() as work:
        await attend_next_pause(work)
    async with database.transaction() as work:
        return (
            await work.first(select(pause.c.id).where(these, pause.c.due_at <= work.now))
            is not None
        )


async def released(database: Database, subject_id: UUID | str) -> None:
    """Attend to the pauses of one subject until nothing is left to do."""
    for _ in range(1_000):
        async with database.transaction() as work:
            these = pause.c.subject_id == UUID(str(subject_id))
            if (
                await work.first(select(pause.c.id).where(these, pause.c.due_at.is_not(None)))
                is None
            ):
                return
        await attend_once(database, subject_id)
    raise AssertionError("the release does not end")


async def started(database: Database, run_ids: Sequence[str]) -> list[str]:
    """The runs among these that stand in the outbox, in its order."""
    return await _in_order(database, outbox.c.subject_id, outbox.c.id, run_ids, outbox.c.intent)


async def resting(database: Database, run_ids: Sequence[str]) -> list[str]:
    """The runs among these whose start rests, in its order."""
    order = resting_intent.c.accepted_at
    return await _in_order(
        database, resting_intent.c.work_id, order, run_ids, resting_intent.c.intent
    )


async def _in_order(
    database: Database, column: Any, order: Any, run_ids: Sequence[str], intent: Any
) -> list[str]:
    async with database.transaction() as work:
        rows = await work.rows(
            select(column)
            .where(column.in_([UUID(one) for one in run_ids]), intent == Intent.START)
            .order_by(order, column)
        )
    return [str(row[0]) for row in rows]


async def pause_work(engine: Engine, kind: PauseSubject, subject_id: UUID) -> None:
    """A pause by the actor of an engine."""
    async with engine.database.transaction() as work:
        await pauses.pause(work, engine.actor, kind, subject_id, PauseWork())


async def resume_work(
    engine: Engine, kind: PauseSubject, subject_id: UUID, rate: int | None = None
) -> None:
    """A resume by the actor of an engine."""
    async with engine.database.transaction() as work:
        await pauses.resume(work, engine.actor, kind, subject_id, ResumeWork(rate=rate))
