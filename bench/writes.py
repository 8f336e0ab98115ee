"""Writing records in batches, against COPY of the same rows alone."""

import time
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2

from bench.figures import Figure
from bench.platform import Platform
from bench.rounds import Rounds

BATCH = 500
REPETITIONS = 4

FIELDS = [
    {"label": "Price", "kind": "number"},
    {"label": "Note", "kind": "long_text"},
    {"label": "State", "kind": "select", "options": [{"name": "Open"}, {"name": "Done"}]},
    {"label": "Due", "kind": "date"},
    {"label": "Count", "kind": "number"},
    {"label": "Flag", "kind": "checkbox"},
    {"label": "Email", "kind": "email"},
    {"label": "Link", "kind": "url"},
    {"label": "Tags", "kind": "multi_select", "options": [{"name": "A"}, {"name": "B"}]},
    {"label": "Code", "kind": "text"},
]


async def write_rates(
    platform: Platform, floor: httpx2.AsyncClient, rounds: Rounds
) -> list[Figure]:
    """Records a second, in batches of 500 with ten values each."""
    figure = Figure("batch of 500 records vs COPY behind a bare route", "1/s", at_least=0.45)
    path = f"/v1/workspaces/{platform.connection['workspaceId']}/databases"
    database = await platform.post(path, {"label": "Writes", "fields": FIELDS})
    rows = [{"title": f"Record {number}", "data": values_of(number)} for number in range(BATCH)]
    batch = {"operations": [{"op": "create", **row} for row in rows]}

    async def ours() -> httpx2.Response:
        return await platform.http.post(f"/v1/databases/{database['id']}/records/batch", json=batch)

    async def theirs() -> httpx2.Response:
        return await floor.post("/copies", json={"rows": rows})

    for call in (ours, theirs):
        await _rate(call)
    for _ in rounds:
        figure.add(await _rate(ours), await _rate(theirs))
    return [figure]


def values_of(number: int) -> dict[str, Any]:
    """Ten values of a record."""
    return {
        "price": number * 1.5,
        "note": "Some words of a note. " * 3,
        "state": "open",
        "due": "2026-01-01",
        "count": number,
        "flag": True,
        "email": f"a{number}@example.com",
        "link": "https://example.com/a/b",
        "tags": ["a", "b"],
        "code": f"c{number}",
    }


async def _rate(call: Callable[[], Awaitable[httpx2.Response]]) -> float:
    started = time.perf_counter()
    for _ in range(REPETITIONS):
        (await call()).raise_for_status()
    return REPETITIONS * BATCH / (time.perf_counter() - started)
