"""A worker that was there and is lost, for answers about open work."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta

from sqlalchemy import update

from models.workspace.system import beat, leave, worker_process
from runtime.ids import new_id
from runtime.temporal.workflow_kinds import Queue
from tests.support.spaces import Space


@asynccontextmanager
async def lost_worker(space: Space) -> AsyncIterator[datetime]:
    """Every queue has had a worker, and lost it then."""
    worker = new_id()
    async with space.database.transaction() as work:
        lost = work.now - timedelta(seconds=30)
        await beat(work, worker, "there", 1, list(Queue))
        await work.execute(update(worker_process).values(seen_at=lost))
    try:
        yield lost
    finally:
        async with space.database.transaction() as work:
            await leave(work, worker)
