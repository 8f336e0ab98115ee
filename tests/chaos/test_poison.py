"""Work that ends every worker that executes it is failed, and the work of others goes on."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
from sqlalchemy import insert, select

from activities.suspects import REASON
from models.automation.action_runs.tables import action_run
from models.core.lifecycle.tables import work_suspect
from models.messages.jobs.commands import accept_job
from models.messages.jobs.tables import job
from runtime.families import Family
from runtime.ids import new_id
from tests.chaos.processes import Workers
from tests.support.actions import make, start
from tests.support.engine import Engine, graph, node
from tests.support.patience import eventually

pytestmark = [pytest.mark.crash, pytest.mark.takes(seconds=45)]

LETHAL = """
import os, signal
from activities.automation_runs import quick_nodes
whole = quick_nodes.substitute
def substitute(run, node):
    if node.id == "lethal":
        os.kill(os.getpid(), signal.SIGSEGV)
    return whole(run, node)
quick_nodes.substitute = substitute
"""


@asynccontextmanager
async def supervised(workers: Workers, deaths: list[int]) -> AsyncIterator[None]:
    """One worker at a time, replaced when it dies."""

    async def supervise() -> None:
        while True:
            worker = await workers.start(prepared=LETHAL)
            deaths.append(await worker.process.ended())

    supervising = asyncio.create_task(supervise())
    try:
        yield
    finally:
        supervising.cancel()
        with suppress(asyncio.CancelledError):
            await supervising


async def test_a_run_that_ends_three_workers_is_failed_and_another_goes_on(
    idle: Engine, workers: Workers
) -> None:
    deaths: list[int] = []
    pauses = [node(f"pause{number}", "delay", seconds=2) for number in range(2)]
    slow = await idle.publish(graph(*pauses, node("end", "transform", output={"ok": True})))
    poison = await idle.publish(graph(node("lethal", "transform", output={})))
    other, lethal = await idle.start(slow.id), await idle.start(poison.id)
    async with supervised(workers, deaths):
        run = await idle.ended(poison.id, lethal)
        assert (run.status, run.error) == ("failed", REASON)
        assert (await idle.ended(slow.id, other)).status == "succeeded"
        again = await idle.run(graph(node("end", "transform", output={"ok": True})))
        assert again.status == "succeeded"
    assert deaths == [-signal.SIGSEGV] * 3


async def test_every_family_is_stopped_after_three(idle: Engine, workers: Workers) -> None:
    action_id = await make(idle, "transform", output={})
    run_id, job_id = await start(idle, action_id), new_id()
    async with idle.database.transaction() as work:
        await accept_job(
            work,
            idle.actor,
            Family.RECOMPUTATION,
            job_id,
            new_id(),
            summary="Test",
        )
        lost = [{"id": each, "lost": 3, "suspected_at": work.now} for each in (run_id, job_id)]
        await work.execute(insert(work_suspect), lost)
    await workers.start()

    async def reasons() -> list[str | None]:
        async with idle.database.transaction() as work:
            rows = [(action_run, run_id), (job, job_id)]
            statements = [select(table.c.error).where(table.c.id == id_) for table, id_ in rows]
            return [await work.scalar(statement) for statement in statements]

    async def stopped() -> bool:
        return None not in await reasons()

    await eventually(stopped, what="the end of both")
    assert await reasons() == [REASON, REASON]
