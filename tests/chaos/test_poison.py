"""Work that ends every worker that executes it is failed, and other work continues."""

import asyncio
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from sqlalchemy import insert, select
from temporalio.client import WorkflowExecutionStatus

from models.automation.action_runs.tables import action_run
from models.core.base import Id
from models.core.lifecycle.lost_workers import work_suspect
from models.messages.jobs.store import accept_job, job
from models.sources.data_source_runs.acceptance import accept_refresh
from models.sources.data_source_runs.imports import accept_import
from models.sources.data_source_runs.shapes import ImportSpreadsheet
from models.sources.data_source_runs.tables import data_source_run
from models.sources.data_sources.commands import create_data_source
from models.sources.data_sources.queries import CreateDataSource
from models.workspace.legacy_imports.commands import create_run
from models.workspace.legacy_imports.queries import CreateLegacyImport, legacy_import_run
from runtime.ids import new_id
from runtime.processes.exit_codes import PREDECESSOR
from runtime.temporal.workflow_kinds import WorkflowKind
from tests.chaos.processes import Workers
from tests.support.actions import make, start
from tests.support.engine import Engine, graph, node
from tests.support.patience import eventually, found_when

pytestmark = [pytest.mark.crash, pytest.mark.takes(seconds=90)]

RECOMPUTATION = WorkflowKind.RECOMPUTATION
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
LETHAL_EVERYWHERE = """
import os, signal
from activities.action_runs.steps import ActionSteps
from activities.jobs.transactions import JobActivities
whole = ActionSteps._open
async def die(self, attempt, *_):
    if not hasattr(attempt, "step") or "lethal" in str(attempt.step.parameters):
        os.kill(os.getpid(), signal.SIGSEGV)
    return await whole(self, attempt)
ActionSteps._open = JobActivities._chunk = die
"""
LETHAL_ROWS = """
import os, signal
from activities.data_source_runs.steps import DataSourceRunActivities
from activities.legacy_imports import BundleActivities
def lethal(name):
    whole = getattr(DataSourceRunActivities, name)
    async def die(self, run, *rest):
        if "lethal" in str(run.plan):
            os.kill(os.getpid(), signal.SIGSEGV)
        return await whole(self, run, *rest)
    setattr(DataSourceRunActivities, name, die)
lethal("_fetch")
lethal("_read")
async def die(self, run_id):
    os.kill(os.getpid(), signal.SIGSEGV)
BundleActivities._run = die
"""
HUNGRY = """
from activities.jobs.transactions import JobActivities
async def eat(self, *_):
    bytearray(3 * 1024**3)
JobActivities._chunk = eat
"""
SLEEPY = """
import asyncio
from activities.outbox.relay import Relay
Relay.run = lambda self: asyncio.sleep(99)
"""
END = "crashed 3 workers, and then the quarantine: signal 11 (SIGSEGV)."
REASON = f'Node "lethal" {END}'


def prepared(lethal: str) -> str:
    """The Python that makes a worker and its quarantine lethal."""
    child = f"{lethal}\nfrom cli.quarantine.child import main; main()"
    return f"""{lethal}
import sys
from cli.quarantine import process
process.COMMAND = [sys.executable, "-c", {child!r}]
"""


@asynccontextmanager
async def supervised(workers: Workers, deaths: list[int]) -> AsyncIterator[None]:
    """One worker at a time, replaced when it dies."""

    async def supervise() -> None:
        while True:
            worker = await workers.start(prepared=prepared(LETHAL))
            deaths.append(await worker.process.ended())

    supervising = asyncio.create_task(supervise())
    try:
        yield
    finally:
        supervising.cancel()
        with suppress(asyncio.CancelledError):
            await supervising


@pytest.mark.long
async def test_a_run_that_ends_three_workers_is_failed_and_another_continues(
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
    name = WorkflowKind.AUTOMATION_RUN.workflow_id(lethal)
    assert await status_of(idle, name) is WorkflowExecutionStatus.FAILED


async def status_of(engine: Engine, workflow_id: str) -> WorkflowExecutionStatus | None:
    return (await engine.client.get_workflow_handle(workflow_id).describe()).status


@pytest.mark.long
async def test_all_work_continues_in_quarantine_and_fails_when_it_ends_that(
    idle: Engine, workers: Workers
) -> None:
    lethal_id = await make(idle, "transform", output={"lethal": 1})
    healthy_id = await make(idle, "transform", output={"ok": 1})
    lethal, healthy = await start(idle, lethal_id), await start(idle, healthy_id)
    job_id = new_id()
    async with idle.database.transaction() as work:
        await accept_job(work, idle.actor, RECOMPUTATION, job_id, new_id(), summary="Test")
        lost = [
            {"id": each, "lost": 3, "suspected_at": work.now} for each in (lethal, healthy, job_id)
        ]
        await work.execute(insert(work_suspect), lost)
    worker = await workers.start(prepared=prepared(LETHAL_EVERYWHERE))

    async def row(table: Any, id_: Any) -> tuple[str, str | None]:
        async with idle.database.transaction() as work:
            columns = table.c
            found = await work.first(select(columns.status, columns.error).where(columns.id == id_))
        assert found is not None, "it is there"
        return found.status, found.error

    async def ended() -> bool:
        rows = [
            await row(action_run, lethal),
            await row(action_run, healthy),
            await row(job, job_id),
        ]
        return {status for status, _ in rows} <= {"succeeded", "failed"}

    await eventually(ended, what="the end of all")
    assert (await row(action_run, healthy))[0] == "succeeded"
    assert await row(action_run, lethal) == ("failed", f'Step "main" {END}')
    assert await row(job, job_id) == ("failed", f"advance_job {END}")
    assert worker.process.exit_code is None
    for name in (WorkflowKind.ACTION_RUN.workflow_id(lethal), RECOMPUTATION.workflow_id(job_id)):

        async def failed(name: str = name) -> bool:
            return await status_of(idle, name) is WorkflowExecutionStatus.FAILED

        await eventually(failed, what=f"the end of {name}")


@pytest.mark.long
async def test_a_refresh_and_imports_continue_in_quarantine_and_fail_when_they_end_that(
    idle: Engine, workers: Workers
) -> None:
    lethal = {
        "fetch_source": (data_source_run, await _refresh(idle)),
        "stage_rows": (data_source_run, await _import(idle, "lethal")),
        "validate_bundle": (legacy_import_run, await _legacy_import(idle)),
    }
    healthy = await _import(idle, "healthy")
    async with idle.database.transaction() as work:
        suspects = [*(run_id for _, run_id in lethal.values()), healthy]
        lost = [{"id": each, "lost": 3, "suspected_at": work.now} for each in suspects]
        await work.execute(insert(work_suspect), lost)
    worker = await workers.start(prepared=prepared(LETHAL_ROWS))
    beside = await idle.run(graph(node("end", "transform", output={"ok": True})))
    assert beside.status == "succeeded"

    async def status(table: Any, run_id: Id) -> str:
        async with idle.database.reading() as work:
            return str(await work.scalar(select(table.c.status).where(table.c.id == run_id)))

    async def ended() -> bool:
        runs = [*lethal.values(), (data_source_run, healthy)]
        return {await status(*one) for one in runs} <= {"succeeded", "failed"}

    await eventually(ended, what="the end of all")
    assert await status(data_source_run, healthy) == "succeeded"
    for step, (table, run_id) in lethal.items():
        reason = table.c.errors[1] if table is legacy_import_run else table.c.error
        async with idle.database.reading() as reading:
            told = await reading.scalar(select(reason).where(table.c.id == run_id))
        assert await status(table, run_id) == "failed"
        assert told == f"{step} {END}"
    assert worker.process.exit_code is None
    again = await _import(idle, "healthy again")

    async def is_imported() -> bool:
        return await status(data_source_run, again) == "succeeded"

    await eventually(is_imported, what="an import after them")


@pytest.mark.long
async def test_work_that_needs_more_memory_than_its_quarantine_fails(
    idle: Engine, workers: Workers
) -> None:
    job_id = new_id()
    async with idle.database.transaction() as work:
        await accept_job(work, idle.actor, RECOMPUTATION, job_id, new_id(), summary="Test")
        lost = {"id": job_id, "lost": 3, "suspected_at": work.now}
        await work.execute(insert(work_suspect), lost)
    worker = await workers.start(prepared=prepared(HUNGRY))

    async def error() -> str | None:
        async with idle.database.reading() as work:
            found = await work.scalar(select(job.c.error).where(job.c.id == job_id))
        return None if found is None else str(found)

    told = await found_when(error, bool, "the end of the job")
    assert told == "advance_job crashed 3 workers, and then the quarantine: out of memory."
    assert worker.process.exit_code is None


async def _refresh(engine: Engine) -> Id:
    """A refresh of a source that ends who fetches it."""
    config = {"url": "https://lethal.test/rows"}
    body = {"label": "Rows", "kind": "http_json", "config": config}
    run_id: Id = new_id()
    async with engine.database.transaction() as work:
        source = await create_data_source(work, engine.actor, CreateDataSource.model_validate(body))
        await accept_refresh(work, engine.actor, source.id, run_id)
    return run_id


async def _import(engine: Engine, label: str) -> Id:
    body = {"label": label, "kind": "inline", "format": "csv", "text": "title\nOne\n"}
    async with engine.database.transaction() as work:
        given = ImportSpreadsheet.model_validate(body)
        return await accept_import(work, engine.actor, new_id(), given)


async def _legacy_import(engine: Engine) -> Id:
    """An import of a bundle that ends who reads it."""
    body = CreateLegacyImport(bundleObjectKey="lethal", bundleChecksum="0" * 64)
    run_id: Id = new_id()
    async with engine.database.transaction() as work:
        await create_run(work, engine.actor.principal, run_id, body)
    return run_id


@pytest.mark.long
@pytest.mark.parametrize(
    ("code", "lost"), [(-signal.SIGKILL, 0), (0, 0), (-signal.SIGSEGV, 1), (3, 1), (None, 1)]
)
async def test_a_worker_that_others_ended_leaves_no_count(
    idle: Engine, workers: Workers, code: int | None, lost: int
) -> None:
    action_id = await make(idle, "transform", output={"ok": 1})
    run_id = await start(idle, action_id)
    async with idle.database.transaction() as work:
        gone = f"{socket.gethostname()}:{2**22 + 1}"
        row = {"id": run_id, "lost": 1, "suspected_at": work.now, "held_by": gone}
        await work.execute(insert(work_suspect), row)
    variables = {} if code is None else {PREDECESSOR: str(int(code))}
    worker = await workers.start(prepared=SLEEPY, **variables)
    await worker.ready()
    async with idle.database.transaction() as work:
        counted = await work.scalar(select(work_suspect.c.lost).where(work_suspect.c.id == run_id))
    assert counted == lost
