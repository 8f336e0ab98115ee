"""The impact of a field in a workspace of 500 automations and 200 views, against its limit."""

import asyncio
import time
from typing import Any

from bench.figures import Figure
from bench.platform import Platform
from bench.rounds import Rounds

AUTOMATIONS, VIEWS, DATABASES = 500, 199, 10
"""The database that is asked for has one view more, with which it was made."""
LIMIT = 0.3
"""Seconds of one answer."""
_AT_ONCE = 8


async def impact_times(platform: Platform, rounds: Rounds) -> list[Figure]:
    """Seconds of an answer, when a tenth of the automations use the database, and when all do."""
    figures = [
        Figure("impact of a field: 50 of 500 automations use it, 200 views", "s", at_most=1),
        Figure("impact of a field: 500 automations use it, 200 views", "s", at_most=1),
    ]
    workspace = f"/v1/workspaces/{platform.connection['workspaceId']}"
    made = [await _database(platform, workspace, number) for number in range(DATABASES)]
    everywhere = await _database(platform, workspace, DATABASES)
    await _views(platform, made[0])
    await _views(platform, everywhere)
    for figure, databases in ((figures[0], made), (figures[1], [everywhere])):
        await _automations(platform, databases)
        await platform.database.execute("ANALYZE")
        for _ in rounds:
            seconds, found = await _asked(platform, workspace, databases[0])
            assert found >= VIEWS, "every place is found"
            figure.add(seconds, LIMIT)
    return figures


async def _database(platform: Platform, workspace: str, number: int) -> dict[str, Any]:
    fields = [{"label": "Price", "kind": "number"}, {"label": "State", "kind": "text"}]
    body = {"label": f"Impact {number}", "fields": fields}
    return await platform.post(f"{workspace}/databases", body)


async def _views(platform: Platform, database: dict[str, Any]) -> None:
    for number in range(VIEWS):
        tested = {"field": "price", "op": "gt", "value": number}
        body = {"label": f"View {number}", "manifest": {"filter": tested}}
        await platform.post(f"/v1/databases/{database['id']}/views", body)


async def _automations(platform: Platform, databases: list[dict[str, Any]]) -> None:
    room = asyncio.Semaphore(_AT_ONCE)

    async def one(number: int) -> None:
        database = databases[number % len(databases)]["id"]
        async with room:
            trigger = {"kind": "record_updated", "databaseId": database}
            await platform.publish(f"Impact {number}", _graph(database, number), trigger)

    await asyncio.gather(*map(one, range(AUTOMATIONS)))


def _graph(database: str, number: int) -> dict[str, Any]:
    """Eight nodes whose expressions no other graph has."""
    read = {"field": "price", "op": "gt", "value": number}
    compute = {"type": "expression", "value": f"trigger.record.data.price * {number}.5"}
    text = {"type": "template", "value": f"{number}: {{{{ trigger.record.data.state }}}}"}
    nodes: list[dict[str, Any]] = [
        {
            "id": "read",
            "kind": "query_records",
            "config": {"databaseId": database, "query": {"filter": read}},
        },
        {
            "id": "decide",
            "kind": "condition",
            "config": {"expression": f"trigger.record.data.price > {number}.0"},
        },
        {
            "id": "write",
            "kind": "create_record",
            "config": {"databaseId": database, "data": {"price": compute, "state": text}},
        },
        *(
            {"id": f"t{place}", "kind": "transform", "config": {"output": {"text": text}}}
            for place in range(5)
        ),
    ]
    ways = [("read", "decide", "always"), ("decide", "write", "true"), ("write", "t0", "always")]
    ways += [(f"t{place}", f"t{place + 1}", "always") for place in range(4)]
    edges = [{"from": source, "to": target, "outcome": outcome} for source, target, outcome in ways]
    return {"nodes": nodes, "edges": edges}


async def _asked(platform: Platform, workspace: str, database: dict[str, Any]) -> tuple[float, int]:
    """Seconds of one answer, and the number of places."""
    field = next(one for one in database["fields"] if one["key"] == "price")
    body = {"kind": "field", "id": field["id"], "change": "delete"}
    started = time.perf_counter()
    answer = await platform.post(f"{workspace}/impact", body)
    return time.perf_counter() - started, int(answer["total"])
