"""A stand-in for the worker: it carries out the accepted runs of a workspace's actions."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sqlalchemy import delete

from activities.action_runs.steps import ActionSteps
from activities.action_runs.transactions import ActionRunActivities
from activities.automation_runs.nodes.effects import RecordNodes
from runtime.database import Database
from runtime.temporal.outbox import outbox
from runtime.temporal.workflow_kinds import WorkflowKind
from tests.support.spaces import Space


@asynccontextmanager
async def acting(space: Space) -> AsyncIterator[None]:
    """Runs whose steps write to our own tables are carried out until the block ends."""
    steps = ActionSteps(space.database, RecordNodes(space.keys).transactions(), {})
    task = asyncio.create_task(_act(space, ActionRunActivities(space.database, steps)))
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def _act(space: Space, activities: ActionRunActivities) -> None:
    while True:
        for run_id in await _accepted(space.database, space):
            await activities.advance(str(run_id))
        await asyncio.sleep(0.01)


async def _accepted(database: Database, space: Space) -> list[object]:
    async with database.transaction() as work:
        taken = delete(outbox).where(
            outbox.c.workspace_id == space.id,
            outbox.c.workflow_kind == WorkflowKind.ACTION_RUN.value,
        )
        rows = await work.rows(taken.returning(outbox.c.subject_id))
    return [row.subject_id for row in rows]
