"""Histories of executions that end as their rows did (ADR 0020); see record_histories.py."""

from collections.abc import Awaitable, Callable

from models.automation.automation_runs import retries
from models.automation.automation_runs.calls import called_run_id
from models.automation.automation_runs.shapes import RetryRun
from runtime.temporal.workflow_kinds import WorkflowKind
from tests.support.engine import Engine, by_node, graph, node
from tests.support.sink import serving
from tests.support.wait_stories import calling
from tests.support.waits import event, resume, waiting


async def retried(engine: Engine) -> str:
    """A run from the failed node of another one, whose outputs it takes over."""
    async with serving() as sink:
        call = node("call", "http_request", method="POST", url=sink.url("broken"))
        before = node("before", "transform", output={})
        made = await engine.publish(graph(before, call, edges=[("before", "call")]))
        first = await engine.ended(made.id, await engine.start(made.id))
        async with engine.database.transaction() as work:
            body = RetryRun.model_validate({"from": "failed"})
            again = await retries.retry(work, engine.actor, made.id, first.id, body)
        await engine.ended(made.id, again.id)
    return WorkflowKind.AUTOMATION_RUN.workflow_id(again.id)


async def admitted(engine: Engine) -> str:
    """A called run that waits for the slot of another run of its automation."""
    limited = {"kind": "manual", "concurrency": {"limit": 1}}
    other = await engine.publish(event(), triggerConfig=limited)
    holder = (other.id, await engine.start(other.id))
    await engine.until(*holder, lambda run: run.status == "waiting")
    place = await waiting(engine, calling(other.id))
    child = (other.id, called_run_id(place[1], "call", ""))
    await engine.cancel(*holder)
    await engine.until(*child, lambda run: "hear" in by_node(run) and run.status == "waiting")
    await resume(engine, child, "hear", data={})
    return WorkflowKind.AUTOMATION_RUN.workflow_id(child[1])


ENDING_STORIES: dict[str, Callable[[Engine], Awaitable[str]]] = {
    "run-retried": retried,
    "run-admitted": admitted,
}
