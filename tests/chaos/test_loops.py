"""Workers that die inside loops: every item's effect happens once, in every kind of body."""

from collections import Counter
from typing import Any

import pytest

from tests.chaos.conftest import MakeDatabase
from tests.chaos.processes import Workers
from tests.chaos.queries import fetch
from tests.chaos.story import PATIENCE, ended
from tests.support.engine import Engine, graph, node
from tests.support.patience import eventually
from tests.support.sink import Sink

pytestmark = [pytest.mark.crash, pytest.mark.takes(seconds=25), pytest.mark.long]

Json = dict[str, Any]

TITLE = {"type": "template", "value": "item {{ index }}"}
QUICK_ITEMS, OUTSIDE_ITEMS = 1_000, 150


def looped(items: int, database_id: Any, *body: Json) -> tuple[Json, Json]:
    """A loop whose items end with a record, and the payload it goes through."""
    nodes = [*body, node("make", "create_record", databaseId=str(database_id), title=TITLE)]
    shape = graph(
        node("loop", "for_each", items={"type": "trigger", "value": "items"}, parallelism=8),
        *nodes,
        edges=[("loop", nodes[0]["id"], "item"), *((one["id"], "make") for one in body)],
    )
    return shape, {"items": list(range(items))}


@pytest.mark.parametrize("body", ["quick", "outside"])
async def test_a_worker_killed_within_a_loop(
    idle: Engine,
    workers: Workers,
    sink: Sink,
    new_database: MakeDatabase,
    url: str,
    body: str,
) -> None:
    database_id = await new_database(idle)
    call = node("call", "http_request", method="POST", url=sink.url("ok"), retry=PATIENCE)
    items = QUICK_ITEMS if body == "quick" else OUTSIDE_ITEMS
    shape, payload = looped(items, database_id, *([] if body == "quick" else [call]))
    automation = await idle.publish(shape)
    doomed = await workers.start()
    await doomed.ready()
    run_id = await idle.start(automation.id, payload)

    async def titles() -> Counter[str]:
        made = await fetch(url, "SELECT title FROM record WHERE database_id = %s", database_id)
        return Counter(title for (title,) in made)

    async def is_under_way() -> bool:
        return (await titles()).total() > items // 10

    await eventually(is_under_way, what="a tenth of the items")
    doomed.process.kill()
    await doomed.ended()
    assert (await titles()).total() < items, "the worker was too quick to be killed"
    await (await workers.start()).ready()
    assert await ended(url, automation.id, 1) == {"succeeded": 1}
    assert await titles() == Counter(f"item {index}" for index in range(items))
    if body == "outside":
        assert len(sink.counts()) == items
        assert {call.run_id for call in sink.calls} == {str(run_id)}
