"""Two workers that execute the same run at the same time write every effect once."""

import asyncio
import uuid
from collections import Counter
from itertools import pairwise

import pytest
from structlog.testing import capture_logs

from activities.automation_runs import node_execution, quick_nodes
from activities.automation_runs.nodes.invocation import NodeResult
from activities.automation_runs.nodes.logic import COMPUTATIONS
from activities.contracts import NodeState
from models.automation.automations.rules.graph.kinds import NodeKind
from tests.chaos.conftest import MakeDatabase
from tests.chaos.queries import fetch
from tests.support.engine import Engine, by_node, graph, node, separate_worker

pytestmark = pytest.mark.crash

NODES = 10


async def test_a_worker_and_its_zombie_write_every_record_once(
    idle: Engine, new_database: MakeDatabase, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    database_id = str(await new_database(idle))
    names = [f"n{number}" for number in range(NODES)]
    automation = await idle.publish(
        graph(
            *(node(name, "create_record", databaseId=database_id, title=name) for name in names),
            edges=list(pairwise(names)),
        )
    )
    run_id = await idle.start(automation.id)
    monkeypatch.setattr(quick_nodes, "BATCH_SECONDS", 60)  # whole runs, on slow machines too
    with capture_logs() as logs:
        replies = await asyncio.gather(
            *(separate_worker(idle).begin(str(run_id)) for _ in range(3))
        )

    assert logs == [], "those who come second are expected"
    titles = await fetch(url, "SELECT title FROM record WHERE database_id = %s", database_id)
    assert Counter(title for (title,) in titles) == Counter(names)
    run = await idle.get(automation.id, run_id)
    assert run.status == "succeeded"
    assert {one.status for one in run.node_runs} == {"succeeded"}
    assert sum(reply.batch.ended == "succeeded" for reply in replies) == 1
    for reply in replies:
        # The second one was answered with the result of the first.
        assert {end.reply.state for end in reply.batch.ends} <= {NodeState.SUCCEEDED}


async def test_workers_agree_on_nodes_that_give_each_of_them_something_else(
    idle: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def computed(*_: object) -> NodeResult:
        return NodeResult({"id": str(uuid.uuid4())})

    names = [f"n{number}" for number in range(NODES)]
    nodes = [node(name, "transform", output={}) for name in names]
    automation = await idle.publish(graph(*nodes, edges=list(pairwise(names))))
    monkeypatch.setitem(COMPUTATIONS, NodeKind.TRANSFORM, computed)
    for hold in (0, 60):
        monkeypatch.setattr(node_execution, "HOLD_SECONDS", hold)
        run_id = await idle.start(automation.id)
        workers = [separate_worker(idle) for _ in range(3)]
        replies = await asyncio.gather(*(worker.begin(str(run_id)) for worker in workers))
        run = await idle.get(automation.id, run_id)
        assert run.status == "succeeded"
        assert Counter(one.node_id for one in run.node_runs) == Counter(names)
        assert run.output == {names[-1]: by_node(run)[names[-1]].output}
        assert sum(reply.batch.ended == "succeeded" for reply in replies) == 1
