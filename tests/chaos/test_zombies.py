"""Two workers that execute the same run at the same time write every effect once (promise I4)."""

import asyncio
from collections import Counter
from datetime import timedelta
from itertools import pairwise

import pytest
from structlog.testing import capture_logs

from activities.automation_runs import quick_nodes
from activities.automation_runs.graphs import GraphCache
from activities.automation_runs.nodes.records import RecordNodes
from activities.automation_runs.runs import RunCache
from activities.automation_runs.transactions import AutomationRunActivities
from activities.contracts import NodeState
from activities.outbox.run_starts import RunStarts
from tests.chaos.conftest import MakeDatabase
from tests.chaos.queries import fetch
from tests.support.engine import KEYS, Engine, graph, node

pytestmark = pytest.mark.crash

NODES = 10


LIMIT = timedelta(days=30)


def _worker(engine: Engine) -> AutomationRunActivities:
    """The activities as a process of their own would hold them: nothing shared but PostgreSQL."""
    cache = RunCache(engine.database, GraphCache())
    writes = RecordNodes(KEYS).transactions()
    return AutomationRunActivities(engine.database, cache, writes, RunStarts(), LIMIT)


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
        replies = await asyncio.gather(*(_worker(idle).begin(str(run_id)) for _ in range(3)))

    assert logs == [], "those who come second are expected"
    titles = await fetch(url, "SELECT title FROM record WHERE database_id = %s", database_id)
    assert Counter(title for (title,) in titles) == Counter(names)
    run = await idle.get(automation.id, run_id)
    assert run.status == "succeeded"
    assert {one.status for one in run.node_runs} == {"succeeded"}
    assert sum(reply.batch.ended == "succeeded" for reply in replies) == 1
    for reply in replies:
        # Whoever came second heard what the first had written.
        assert {end.reply.state for end in reply.batch.ends} <= {NodeState.SUCCEEDED}
