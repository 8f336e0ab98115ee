"""Seeding a starter: against the same databases and records by calls of create and batch."""

import time
from statistics import median
from typing import Any

from bench.figures import Figure
from bench.platform import Platform
from bench.rounds import Rounds

DATABASES, RECORDS = 5, 40
EACH = 5
"""Measurements of a round."""
FIELDS = [
    {"key": "title", "label": "Name", "kind": "text"},
    {"key": "code", "label": "Code", "kind": "text"},
    {"key": "price", "label": "Price", "kind": "number"},
    {"key": "due", "label": "Due", "kind": "date"},
]
VIEWS = [{"label": "All", "kind": "table"}]


async def starter_times(platform: Platform, rounds: Rounds) -> list[Figure]:
    """Seconds for 5 databases and 200 records: as one starter, and by ten calls."""
    times = Figure("a starter of 5 databases vs batch calls", "s", at_most=1.5)
    await _seeded(platform)
    for _ in rounds:
        # Each takes a third of a second: one alone would measure what else the machine did.
        pairs = [(await _seeded(platform), await _by_calls(platform)) for _ in range(EACH)]
        ours, floors = zip(*pairs, strict=True)
        times.add(median(ours), median(floors))
    return [times]


def _records() -> list[dict[str, Any]]:
    data = {"code": "C-1", "price": 3, "due": "2026-01-31"}
    return [{"title": f"Record {place}", "data": data} for place in range(RECORDS)]


async def _seeded(platform: Platform) -> float:
    nodes = [
        {
            "type": "database",
            "label": f"Goods {place}",
            "fields": FIELDS,
            "views": VIEWS,
            "records": _records(),
        }
        for place in range(DATABASES)
    ]
    path = f"/v1/workspaces/{platform.connection['workspaceId']}/starter-draft"
    started = time.perf_counter()
    made = await platform.post(path, {"plan": {"headline": "Goods", "nodes": nodes}})
    seconds = time.perf_counter() - started
    assert made["databaseCount"] == DATABASES
    return seconds


async def _by_calls(platform: Platform) -> float:
    path = f"/v1/workspaces/{platform.connection['workspaceId']}/databases"
    operations = [{"op": "create", **one} for one in _records()]
    started = time.perf_counter()
    for place in range(DATABASES):
        body = {"label": f"Goods {place}", "fields": FIELDS, "views": VIEWS}
        made = await platform.post(path, body)
        batch = f"/v1/databases/{made['id']}/records/batch"
        await platform.post(batch, {"operations": operations})
    return time.perf_counter() - started
