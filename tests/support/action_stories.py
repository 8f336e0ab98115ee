"""Stories of action runs whose histories are recorded; see tests/support/record_histories.py."""

from collections.abc import Awaitable, Callable
from typing import Any

from sqlalchemy import select

from models.automation.action_runs.tables import action_run
from models.sources.connections.providers import CreateConnection
from models.sources.connections.store import create_connection
from runtime.temporal.workflow_kinds import WorkflowKind
from tests.support import actions
from tests.support.actions import make, step
from tests.support.engine import KEYS, Engine, graph, node
from tests.support.patience import eventually
from tests.support.sink import serving

Json = dict[str, Any]
TWICE = {"maxAttempts": 3, "initialDelaySeconds": 0.1, "backoffMultiplier": 1}


async def _acted(engine: Engine, *steps: Json) -> str:
    """The execution of a sequence that has ended."""
    action_id = await make(engine, "sequence", steps=list(steps))
    run_id = await actions.start(engine, action_id)
    await actions.ended(engine, action_id, run_id)
    return WorkflowKind.ACTION_RUN.workflow_id(run_id)


async def at_once(engine: Engine) -> str:
    """Steps that are one transaction each."""
    return await _acted(
        engine, step("a", "transform", output={}), step("b", "transform", output={})
    )


async def outside(engine: Engine) -> str:
    """Steps that leave the machine, one of them tried again, between others that do not."""
    async with serving() as sink:
        return await _acted(
            engine,
            step("a", "transform", output={}),
            step("flaky", "http_request", method="POST", url=sink.url("flaky"), retry=TWICE),
            step("b", "transform", output={}),
            step("ok", "http_request", method="POST", url=sink.url("ok")),
        )


async def in_line(engine: Engine) -> str:
    """A step that waits for an import, which has its turn after a while."""
    body = CreateConnection.model_validate({"provider": "demo", "label": "Demo"})
    async with engine.database.transaction() as work:
        connection = await create_connection(work, engine.actor, KEYS, body)
    resource: dict[str, Any] = {
        "externalType": "document",
        "externalId": "welcome",
        "name": "Welcome.md",
    }
    resource |= {"surfaceKind": "document", "capabilities": ["import"]}
    config = {"connectionId": str(connection.id), "resource": resource}
    return await _acted(engine, step("import", "import_resource", **config))


async def outside_failed(engine: Engine) -> str:
    """A step that fails after all its attempts, borne, and one that ends the run."""
    async with serving() as sink:
        broken = {"method": "POST", "url": sink.url("broken")}
        return await _acted(
            engine,
            step("borne", "http_request", **broken, retry=TWICE, continueOnError=True),
            step("fatal", "http_request", **broken),
            step("never", "transform", output={}),
        )


async def waited(engine: Engine) -> str:
    """A step that waits for an automation."""
    automation = await engine.publish(graph(node("pause", "delay", seconds=0.5)))
    config = {"automationId": str(automation.id), "wait": True}
    return await _acted(engine, step("call", "run_automation", **config))


async def cancelled(engine: Engine) -> str:
    """A run cancelled by the API while its step is under way."""
    action_id, run_id = await _under_way(engine)
    await actions.cancel(engine, action_id, run_id)
    return WorkflowKind.ACTION_RUN.workflow_id(run_id)


async def cancelled_in_temporal(engine: Engine) -> str:
    """A run whose execution an operator cancels while its step is under way."""
    _, run_id = await _under_way(engine)
    workflow_id = WorkflowKind.ACTION_RUN.workflow_id(run_id)
    await engine.client.get_workflow_handle(workflow_id).cancel()
    return workflow_id


async def node_run_again(engine: Engine) -> str:
    """The run of a node whose action fails once."""
    return WorkflowKind.AUTOMATION_RUN.workflow_id(await _node_run_again(engine))


async def second_attempt(engine: Engine) -> str:
    """The run of an action that its node tries again."""
    run_id = await _node_run_again(engine)
    async with engine.database.transaction() as work:
        own = select(action_run.c.id).where(action_run.c.automation_run_id == run_id)
        return WorkflowKind.ACTION_RUN.workflow_id(await work.scalar(own))


async def node_out_of_time(engine: Engine) -> str:
    """The run of a node whose action takes longer than the node may."""
    async with serving() as sink:
        action_id = await make(engine, "http_request", method="POST", url=sink.url("slow"))
        run = await engine.run(graph(_act(action_id, timeoutSeconds=1)))
    return WorkflowKind.AUTOMATION_RUN.workflow_id(run.id)


async def _node_run_again(engine: Engine) -> Any:
    async with serving() as sink:
        action_id = await make(engine, "http_request", method="POST", url=sink.url("flaky"))
        return (await engine.run(graph(_act(action_id, retry=TWICE)))).id


def _act(action_id: Any, **fields: Any) -> Json:
    return {"id": "act", "kind": "action", "actionId": str(action_id), **fields}


async def _under_way(engine: Engine) -> tuple[Any, Any]:
    async with serving() as sink:
        action_id = await make(engine, "http_request", method="POST", url=sink.url("slow"))
        run_id = await actions.start(engine, action_id)

        async def called() -> bool:
            return bool(sink.calls)

        await eventually(called, what="the call")
    return action_id, run_id


ACTION_STORIES: dict[str, Callable[[Engine], Awaitable[str]]] = {
    "action-run": at_once,
    "action-run-outside": outside,
    "action-run-outside-failed": outside_failed,
    "action-run-in-line": in_line,
    "action-run-waited": waited,
    "action-node": node_run_again,
    "action-node-second-attempt": second_attempt,
    "action-node-out-of-time": node_out_of_time,
    "action-run-cancelled": cancelled,
    "action-run-cancelled-in-temporal": cancelled_in_temporal,
}
