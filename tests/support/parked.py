"""Runs whose one node waits, as far as rows say: no worker takes part."""

import uuid
from typing import Any

from models.automation.automation_runs import calls, commands, execution, node_writes
from models.automation.automation_runs.node_writes import NodeKey, NodeRow
from models.automation.automation_runs.shapes import RunNow
from models.automation.waits import store
from models.automation.waits.store import NewWait
from runtime.temporal import outbox
from runtime.temporal.workflow_kinds import WorkflowKind
from tests.support.automations import publish
from tests.support.client import Client
from tests.support.spaces import Space

Json = dict[str, Any]


def approval(**config: Any) -> Json:
    return {"nodes": [{"id": "ask", "kind": "approval", "config": config}], "edges": []}


async def run_of(client: Client, space: Space, graph: Json, *, park: bool = True) -> str:
    """The path of a run whose one node waits, as far as our rows say."""
    made = await publish(client, space, graph=graph, triggerConfig={"kind": "manual"})
    async with space.database.transaction() as work:
        run = await commands.run_now(work, space.actor, uuid.UUID(made["id"]), RunNow())
        # The relay of another test's engine would start it.
        await outbox.withdraw_starts(work, [run.id])
    if park:
        await wait(space, run.id, graph["nodes"][0])
    return f"{space.path}/automations/{made['id']}/runs/{run.id}"


async def wait(space: Space, run_id: uuid.UUID, node: Json) -> None:
    """What a worker does when the node begins to wait."""
    key = NodeKey(space.id, run_id, node["id"], "", node["kind"])
    workflow_id = WorkflowKind.AUTOMATION_RUN.workflow_id(run_id)
    before = NodeRow(None, None, None, None)
    seconds = node["config"].get("timeoutSeconds")
    async with space.database.transaction() as work:
        header = await execution.begin(work, run_id)
        assert header is not None
        new = NewWait(key, workflow_id, node["config"], header.created_by_user_id)
        assert await store.begin_wait(work, new) is None
        await node_writes.park_node(work, key, before, inputs=node["config"], seconds=seconds)
        await calls.suspend_execution(work, run_id, workflow_id, [])
