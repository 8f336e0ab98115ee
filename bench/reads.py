"""Reading records: authenticated, placed and typed, against bare routes with the same SELECT."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2

from bench.figures import Figure
from bench.platform import Platform
from bench.rounds import Rounds

AT_ONCE = 8
RECORDS = 1_000

FIELDS = [
    {"label": "Name", "kind": "text"},
    {"label": "Price", "kind": "number"},
    {"label": "Day", "kind": "date"},
    {"label": "Stage", "kind": "select", "options": [{"name": "New"}, {"name": "Old"}]},
    {"label": "Done", "kind": "checkbox"},
]


async def read_rates(
    platform: Platform, floor: httpx2.AsyncClient, rounds: Rounds, count: int
) -> list[Figure]:
    """Requests a second: one record by id, and a page of 30."""
    database, record = await records_table(platform)
    workspace = {"workspace_id": platform.connection["workspaceId"]}
    one = Figure("GET a record vs a bare SELECT", "1/s", at_least=0.9)
    page = Figure("list 30 records vs a bare SELECT", "1/s", at_least=0.9)
    for _ in rounds:
        one.add(
            await rate(count, lambda: platform.http.get(f"/v1/records/{record}")),
            await rate(count, lambda: floor.get(f"/records/{record}")),
        )
        page.add(
            await rate(count, lambda: platform.http.get(f"/v1/databases/{database}/records")),
            await rate(
                count, lambda: floor.get(f"/databases/{database}/records", params=workspace)
            ),
        )
    return [one, page]


async def records_table(platform: Platform) -> tuple[str, str]:
    path = f"/v1/workspaces/{platform.connection['workspaceId']}/databases"
    database = await platform.post(path, {"label": "Reads", "fields": FIELDS})
    for start in range(0, RECORDS, 500):
        operations = [{"op": "create", **_record(start + place)} for place in range(500)]
        batch = await platform.post(
            f"/v1/databases/{database['id']}/records/batch", {"operations": operations}
        )
    return str(database["id"]), str(batch["records"][0]["id"])


def _record(number: int) -> dict[str, Any]:
    data = {
        "name": f"Name {number}",
        "price": number / 8,
        "day": f"2026-{number % 12 + 1:02d}-{number % 28 + 1:02d}",
        "stage": "new" if number % 2 else "old",
        "done": number % 3 == 0,
    }
    return {"title": f"Record {number}", "data": data}


async def rate(count: int, call: Callable[[], Awaitable[httpx2.Response]]) -> float:
    """Calls a second, a bounded number at once; a refused one ends the measurement."""
    room = asyncio.Semaphore(AT_ONCE)

    async def one() -> None:
        async with room:
            (await call()).raise_for_status()

    started = time.perf_counter()
    await asyncio.gather(*(one() for _ in range(count)))
    return count / (time.perf_counter() - started)
