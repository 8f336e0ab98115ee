"""Records a history of every workflow kind and branch, to be replayed for ever after.

`python -m tests.support.record_histories` writes them to temporal/histories. They stand for
executions that are running when new code is deployed (architecture.md#replayable-workflows), so a
story that is recorded is not recorded again: delete its file only if no platform has ever run the
workflow; see tests/workflows/test_replay.py.
"""

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from temporalio.client import WorkflowExecutionStatus, WorkflowHandle
from temporalio.service import RPCError, RPCStatusCode
from typing_extensions import override

from cli.replay.histories import golden
from cli.work_handlers.background import JOB_KINDS
from models.messages.jobs.store import accept_job
from runtime.configuration.sections import MailServer
from runtime.database import Database, UnitOfWork
from runtime.errors import ConflictError
from runtime.ids import new_id
from runtime.temporal.workflow_kinds import Queue, WorkflowKind
from tests.support.action_stories import ACTION_STORIES
from tests.support.counting import Counting
from tests.support.ending_stories import ENDING_STORIES
from tests.support.engine import Engine, Json, graph, node, running_engine
from tests.support.furnished_story import everything
from tests.support.legacy_import_stories import LEGACY_IMPORT_STORIES, LONG_STORIES
from tests.support.loop_stories import LOOP_STORIES, loop_graphs
from tests.support.patience import eventually
from tests.support.post_office import open_post_office
from tests.support.postgres import migrated_database
from tests.support.run_operation_stories import LONG_RUN_OPERATION_STORIES, RUN_OPERATION_STORIES
from tests.support.schedules import handle_of, scheduled, until_runs, until_schedule
from tests.support.sink import Sink, serving
from tests.support.source_stories import SOURCE_STORIES
from tests.support.temporal import dev_server
from tests.support.timer_stories import TIMER_STORIES
from tests.support.wait_stories import WAIT_STORIES
from workflows.schedules import Maintenance, Retention

DIRECTORY = Path(__file__).parents[2] / "temporal" / "histories"
SOON = 12
"""Events after which a server suggests to continue as another execution."""

TWICE = {"maxAttempts": 3, "initialDelaySeconds": 0.1, "backoffMultiplier": 1}


def transform(name: str, **fields: Any) -> Json:
    return node(name, "transform", output={"ok": True}, **fields)


def call(name: str, sink: Sink, path: str, **fields: Any) -> Json:
    return node(name, "http_request", method="POST", url=sink.url(path), **fields)


def graphs() -> dict[str, Json]:
    """The runs to record that call no server, each left to end by itself."""
    return {
        "chain": graph(
            transform("a"), transform("b"), transform("c"), edges=[("a", "b"), ("b", "c")]
        ),
        "diamond-with-delay": graph(
            transform("top"),
            node("left", "delay", seconds=0.3),
            transform("right"),
            node("bottom", "join", mode="all"),
            edges=[("top", "left"), ("top", "right"), ("left", "bottom"), ("right", "bottom")],
        ),
        "dead-branch": graph(
            node("check", "condition", expression="1 == 2"),
            transform("yes"),
            transform("no"),
            edges=[("check", "yes", "true"), ("check", "no", "false")],
        ),
        "stop-succeeded": graph(
            transform("a"),
            node("end", "stop"),
            node("pause", "delay", seconds=30),
            edges=[("a", "end"), ("a", "pause")],
        ),
        "stop-failed": graph(
            transform("a"), node("end", "stop", result="failed"), edges=[("a", "end")]
        ),
    }


def calling_graphs(sink: Sink) -> dict[str, Json]:
    """The runs to record that call a service, each left to end by itself."""
    top, then, broken = transform("top"), transform("then"), call("call", sink, "broken")
    return {
        "http-retries": graph(
            call("call", sink, "flaky", retry=TWICE), then, edges=[("call", "then")]
        ),
        "http-failure-edge": graph(
            call("call", sink, "broken", retry=TWICE),
            then,
            transform("otherwise"),
            edges=[("call", "then", "success"), ("call", "otherwise", "failure")],
        ),
        "unhandled-failure": graph(broken, then, edges=[("call", "then")]),
        "failure-beside-delay": graph(
            top,
            broken,
            node("pause", "delay", seconds=30),
            edges=[("top", "call"), ("top", "pause")],
        ),
        "batch-across-outside": graph(
            transform("a"),
            transform("b"),
            call("call", sink, "ok"),
            transform("c"),
            transform("d"),
            edges=[("a", "b"), ("b", "call"), ("call", "c"), ("c", "d")],
        ),
        "outside-side-by-side": graph(
            top,
            call("slow", sink, "slow"),
            call("quick", sink, "ok"),
            transform("after"),
            node("bottom", "join", mode="all"),
            edges=[
                ("top", "slow"),
                ("top", "quick"),
                ("quick", "after"),
                ("slow", "bottom"),
                ("after", "bottom"),
            ],
        ),
    }


async def cancelled_mid_delay(engine: Engine) -> str:
    """A run cancelled by the API while it waits."""
    automation_id, run_id = await _waiting(engine)
    await engine.cancel(automation_id, run_id)
    return WorkflowKind.AUTOMATION_RUN.workflow_id(run_id)


async def cancelled_in_temporal(engine: Engine) -> str:
    """A run whose execution an operator cancels while it waits."""
    _, run_id = await _waiting(engine)
    workflow_id = WorkflowKind.AUTOMATION_RUN.workflow_id(run_id)
    await engine.client.get_workflow_handle(workflow_id).cancel()
    return workflow_id


async def closed_before_it_began(engine: Engine) -> str:
    """An execution whose run was cancelled, or never existed, before its first transaction."""
    workflow_id = WorkflowKind.AUTOMATION_RUN.workflow_id(uuid.uuid4())
    subject = workflow_id.rpartition("/")[2]
    await engine.client.start_workflow(
        "AutomationRun", subject, id=workflow_id, task_queue=Queue.AUTOMATION
    )
    return workflow_id


async def maintenance(engine: Engine) -> str:
    """A sweep."""
    workflow_id = WorkflowKind.MAINTENANCE.workflow_id("recorded")
    await engine.client.start_workflow(Maintenance.run, id=workflow_id, task_queue=Queue.AUTOMATION)
    return workflow_id


async def fired(engine: Engine) -> str:
    """A fire whose run ends by itself."""
    return (await _fire(engine, graph(transform("a"))))[1]


async def fired_in_vain(engine: Engine) -> str:
    """A fire of an automation that was disabled meanwhile."""
    return (await _fire(engine, graph(transform("a")), enabled=False))[1]


async def fire_cancelled(engine: Engine) -> str:
    """A fire that is cancelled, as overlap policies do, while its run waits."""
    automation_id, workflow_id = await _fire(engine, graph(node("pause", "delay", seconds=600)))
    await until_runs(engine, automation_id, "waiting")
    await engine.client.get_workflow_handle(workflow_id).cancel()
    return workflow_id


async def fire_of_cancelled_run(engine: Engine) -> str:
    """A fire whose run is cancelled by the API."""
    automation_id, workflow_id = await _fire(engine, graph(node("pause", "delay", seconds=600)))
    [run] = await until_runs(engine, automation_id, "waiting")
    await engine.cancel(automation_id, run.id)
    return workflow_id


async def _fire(engine: Engine, content: Json, *, enabled: bool = True) -> tuple[uuid.UUID, str]:
    """An automation whose schedule was triggered, and the workflow id of the fire."""
    made = await scheduled(engine, content)
    if not enabled:
        await engine.change(made.id, enabled=False)
    await handle_of(engine.client, made.id).trigger()

    def has_fired(found: Any) -> bool:
        return bool(found.info.recent_actions)

    found = await until_schedule(engine, made.id, has_fired)
    assert found is not None
    fired: Any = found.info.recent_actions[0].action
    return made.id, fired.workflow_id


async def retention(engine: Engine) -> str:
    """A sweep that finds nothing to remove."""
    workflow_id = WorkflowKind.RETENTION.workflow_id("recorded")
    await engine.client.start_workflow(Retention.run, id=workflow_id, task_queue=Queue.AUTOMATION)
    return workflow_id


async def finished_job(engine: Engine, workflow_kind: WorkflowKind) -> str:
    """A job of three chunks."""
    return workflow_kind.workflow_id(await _job(engine, workflow_kind, to=3))


async def refused_job(engine: Engine) -> str:
    """A job whose second chunk is refused, reverted part by part."""
    return WorkflowKind.EXPORT.workflow_id(await _job(engine, WorkflowKind.EXPORT, to=REFUSED))


async def cancelled_job(engine: Engine) -> str:
    """A job cancelled between its chunks."""
    job_id = await _job(engine, WorkflowKind.EXPORT, to=ENDLESS)
    workflow_id = WorkflowKind.EXPORT.workflow_id(job_id)
    await asyncio.sleep(1)
    await engine.client.get_workflow_handle(workflow_id).cancel()
    return workflow_id


async def _job(engine: Engine, workflow_kind: WorkflowKind, to: int) -> uuid.UUID:
    job_id = new_id()
    async with engine.database.transaction() as work:
        wanted = {"to": to}
        await accept_job(
            work, engine.actor, workflow_kind, job_id, new_id(), summary="Recorded", input=wanted
        )
    return job_id


REFUSED, ENDLESS = 1_001, 1_000_000


class Recorded(Counting):
    """Counts, slowly where the story is about being cancelled, and refuses where it says so."""

    @override
    async def advance(self, work: UnitOfWork, job: Any) -> Json | None:
        if "to" not in job.input:
            return None  # another story asked for it
        if job.input["to"] == REFUSED and job.progress.get("done", 0) == 2:
            raise ConflictError("The story wants it so.")
        if job.input["to"] == ENDLESS:
            await asyncio.sleep(0.2)
        return await super().advance(work, job)

    @override
    async def result(self, work: UnitOfWork, job: Any) -> Any:
        return await super().result(work, job) if "to" in job.input else {}


STORIES: dict[str, Callable[[Engine], Awaitable[str]]] = {
    "cancelled-mid-delay": cancelled_mid_delay,
    "cancelled-in-temporal": cancelled_in_temporal,
    "closed-before-it-began": closed_before_it_began,
    "maintenance": maintenance,
    **ACTION_STORIES,
    **WAIT_STORIES,
    **LOOP_STORIES,
    **ENDING_STORIES,
    "schedule-fire": fired,
    "schedule-fire-in-vain": fired_in_vain,
    "schedule-fire-cancelled": fire_cancelled,
    "schedule-fire-of-cancelled-run": fire_of_cancelled_run,
    "retention": retention,
    **RUN_OPERATION_STORIES,
    **SOURCE_STORIES,
    **TIMER_STORIES,
    **LEGACY_IMPORT_STORIES,
    "legacy-import-everything": everything,
    **{
        workflow_kind.value: partial(finished_job, workflow_kind=workflow_kind)
        for workflow_kind in JOB_KINDS
    },
    "job-refused": refused_job,
    "job-cancelled": cancelled_job,
}


async def _waiting(engine: Engine) -> tuple[uuid.UUID, uuid.UUID]:
    automation = await engine.publish(
        graph(transform("a"), node("pause", "delay", seconds=600), edges=[("a", "pause")])
    )
    run_id = await engine.start(automation.id)
    await engine.until(automation.id, run_id, lambda run: run.status == "waiting")
    return automation.id, run_id


async def record(
    engine: Engine,
    graphs: Mapping[str, Json],
    stories: Mapping[str, Callable[[Engine], Awaitable[str]]],
    directory: Path = DIRECTORY,
) -> None:
    """Run every graph and story that has no history yet and write it.

    One that went on as another execution has two: of the first, and as `<name>-last` of the last.
    """
    recorded = await asyncio.to_thread(lambda: {path.stem for path in directory.glob("*.json")})
    workflow_ids = {}
    for name, content in graphs.items():
        if name not in recorded:
            run = await engine.run(content)
            workflow_ids[name] = WorkflowKind.AUTOMATION_RUN.workflow_id(run.id)
    for name, story in stories.items():
        if name not in recorded:
            workflow_ids[name] = await story(engine)
    for name, workflow_id in workflow_ids.items():
        handle = engine.client.get_workflow_handle(workflow_id)
        await _closed(handle)
        last = await handle.describe()
        first = last.raw_description.workflow_execution_info.first_run_id
        executions = {f"{name}-last": last.run_id, name: first}
        if first == last.run_id:
            del executions[f"{name}-last"]
        for file, run_id in executions.items():
            one = engine.client.get_workflow_handle(workflow_id, run_id=run_id)
            text = golden(await one.fetch_history())
            await asyncio.to_thread((directory / f"{file}.json").write_text, text)


async def _closed(handle: WorkflowHandle[Any, Any]) -> None:

    async def is_closed() -> bool:
        try:
            return (await handle.describe()).status is not WorkflowExecutionStatus.RUNNING
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
            return False  # its start is on its way

    await eventually(is_closed, what=f"the end of {handle.id}")


@asynccontextmanager
async def recorder(*extra: str, mail: MailServer | None = None) -> AsyncIterator[Engine]:
    """An engine on servers of the recorder's own; `extra` as `dev_server` takes it."""
    workflow_kinds = {workflow_kind: Recorded() for workflow_kind in JOB_KINDS}
    counting = patch("cli.work_handlers.background.chunks_of", lambda _: workflow_kinds)
    with counting, migrated_database("recorder") as url:
        database = Database(url)
        async with (
            dev_server(*extra) as environment,
            running_engine(database, url, environment.client, mail=mail) as engine,
        ):
            yield engine
        await database.close()


async def main() -> None:
    """Record what has no history."""
    async with serving() as sink, open_post_office() as office:
        async with recorder(mail=office.server) as engine:
            drawn = {**graphs(), **calling_graphs(sink), **loop_graphs(sink)}
            await record(engine, drawn, STORIES)
        async with recorder(f"limit.historyCount.suggestContinueAsNew={SOON}") as engine:
            await record(engine, {}, {**LONG_STORIES, **LONG_RUN_OPERATION_STORIES})


if __name__ == "__main__":
    asyncio.run(main())
