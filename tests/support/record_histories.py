"""Records a history of every workflow family and branch, to be replayed for ever after.

`python -m tests.support.record_histories` writes them to temporal/histories. They stand for
executions that are running when new code is deployed (promise I9). Record them only for a way of
running that no stored history shows yet, or before any platform has run the workflow; see
tests/workflows/test_replay.py.
"""

import asyncio
import json
import re
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from temporalio.client import WorkflowExecutionStatus, WorkflowHandle

from runtime.database import Database
from runtime.families import Family, Queue
from tests.support.engine import Engine, Json, graph, node, running_engine
from tests.support.patience import eventually
from tests.support.postgres import migrated_database
from tests.support.sink import Sink, serving
from tests.support.temporal import dev_server
from workflows.maintenance import Maintenance

DIRECTORY = Path(__file__).parents[2] / "temporal" / "histories"

_PROCESS = re.compile(r"\d+@.+")
"""A process on a machine, as identities and sticky queues name it; no replay reads it."""
_DROPPED = {"stackTrace"}
"""Fields that hold paths of a machine; no replay reads them."""

TWICE = {"maxAttempts": 3, "initialDelaySeconds": 0.1, "backoffMultiplier": 1}


def transform(name: str, **fields: Any) -> Json:
    return node(name, "transform", output={"ok": True}, **fields)


def call(name: str, sink: Sink, path: str, **fields: Any) -> Json:
    return node(name, "http_request", method="POST", url=sink.url(path), **fields)


def graphs(sink: Sink) -> dict[str, Json]:
    """The runs to record, each left to end by itself."""
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
        "http-retries": graph(
            call("call", sink, "flaky", retry=TWICE), transform("then"), edges=[("call", "then")]
        ),
        "http-failure-edge": graph(
            call("call", sink, "broken", retry=TWICE),
            transform("then"),
            transform("otherwise"),
            edges=[("call", "then", "success"), ("call", "otherwise", "failure")],
        ),
        "unhandled-failure": graph(
            call("call", sink, "broken"), transform("then"), edges=[("call", "then")]
        ),
        "failure-beside-delay": graph(
            transform("top"),
            call("call", sink, "broken"),
            node("pause", "delay", seconds=30),
            edges=[("top", "call"), ("top", "pause")],
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
        "stretch-across-outside": graph(
            transform("a"),
            transform("b"),
            call("call", sink, "ok"),
            transform("c"),
            transform("d"),
            edges=[("a", "b"), ("b", "call"), ("call", "c"), ("c", "d")],
        ),
        "outside-side-by-side": graph(
            transform("top"),
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
    return Family.AUTOMATION_RUN.workflow_id(run_id)


async def cancelled_in_temporal(engine: Engine) -> str:
    """A run whose execution an operator cancels while it waits."""
    _, run_id = await _waiting(engine)
    workflow_id = Family.AUTOMATION_RUN.workflow_id(run_id)
    await engine.client.get_workflow_handle(workflow_id).cancel()
    return workflow_id


async def closed_before_it_began(engine: Engine) -> str:
    """An execution whose run was cancelled, or never existed, before its first transaction."""
    workflow_id = Family.AUTOMATION_RUN.workflow_id(uuid.uuid4())
    subject = workflow_id.rpartition("/")[2]
    await engine.client.start_workflow(
        "AutomationRun", subject, id=workflow_id, task_queue=Queue.AUTOMATION
    )
    return workflow_id


async def maintenance(engine: Engine) -> str:
    """A sweep."""
    workflow_id = Family.MAINTENANCE.workflow_id("recorded")
    await engine.client.start_workflow(Maintenance.run, id=workflow_id, task_queue=Queue.AUTOMATION)
    return workflow_id


STORIES: dict[str, Callable[[Engine], Awaitable[str]]] = {
    "cancelled-mid-delay": cancelled_mid_delay,
    "cancelled-in-temporal": cancelled_in_temporal,
    "closed-before-it-began": closed_before_it_began,
    "maintenance": maintenance,
}


async def _waiting(engine: Engine) -> tuple[uuid.UUID, uuid.UUID]:
    automation = await engine.publish(
        graph(transform("a"), node("pause", "delay", seconds=600), edges=[("a", "pause")])
    )
    run_id = await engine.start(automation.id)
    await engine.until(automation.id, run_id, lambda run: run.status == "waiting")
    return automation.id, run_id


async def record(engine: Engine, sink: Sink, directory: Path = DIRECTORY) -> list[str]:
    """Run every story and write its history; the names of the files."""
    workflow_ids = {}
    for name, content in graphs(sink).items():
        run = await engine.run(content)
        workflow_ids[name] = Family.AUTOMATION_RUN.workflow_id(run.id)
    for name, story in STORIES.items():
        workflow_ids[name] = await story(engine)
    for name, workflow_id in workflow_ids.items():
        handle = engine.client.get_workflow_handle(workflow_id)
        await _closed(handle)
        history = json.loads((await handle.fetch_history()).to_json())
        text = json.dumps(_scrubbed(history), indent=1, sort_keys=True)
        await asyncio.to_thread((directory / f"{name}.json").write_text, text + "\n")
    return sorted(workflow_ids)


async def _closed(handle: WorkflowHandle[Any, Any]) -> None:

    async def is_closed() -> bool:
        return (await handle.describe()).status is not WorkflowExecutionStatus.RUNNING

    await eventually(is_closed, what=f"the end of {handle.id}")


def _scrubbed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _scrubbed(one) for key, one in value.items() if key not in _DROPPED}
    if isinstance(value, list):
        return [_scrubbed(one) for one in value]
    return "recorder" if isinstance(value, str) and _PROCESS.fullmatch(value) else value


async def main() -> None:
    """Record against servers of the recorder's own."""
    with migrated_database(uuid.uuid4().hex, "recorder") as url:
        database = Database(url)
        async with (
            dev_server() as environment,
            serving() as sink,
            running_engine(database, url, environment.client) as engine,
        ):
            await record(engine, sink)
        await database.close()


if __name__ == "__main__":
    asyncio.run(main())
