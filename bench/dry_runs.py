"""Processor time of requests with `Prefer: dry-run`, against the same requests without it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

from bench.figures import Figure
from bench.graphs import ONE_QUICK, THREE_QUICK
from bench.platform import Platform
from bench.processor import processor_time
from bench.rounds import Rounds
from bench.writes import BATCH, FIELDS, values_of

AT_MOST = 1.2
SINGLE, SEVERAL, SLICES = 60, 20, 4
"""Requests of a round, or batches of one, and the turns in which they are made."""
_OWN = ("api", "postgres")
_DRY_RUN = {"Prefer": "dry-run"}


@dataclass(frozen=True, slots=True)
class Write:
    """An operation; its path and its body are those of the next request."""

    method: str
    path: Callable[[], str]
    body: Callable[[], Any] = lambda: None
    times: int = SINGLE


async def dry_run_costs(platform: Platform, rounds: Rounds) -> list[Figure]:
    """Processor milliseconds of the API and PostgreSQL for each of ten writes, tried and kept."""
    writes = await _writes(platform, rounds.most)
    figures = {
        name: Figure(f"dry run vs request: {name}", "ms", at_most=AT_MOST) for name in writes
    }
    for write in writes.values():
        await _spent(platform, write, 2, {})
        await _spent(platform, write, 2, _DRY_RUN)
    for _ in rounds:
        for name, write in writes.items():
            slice_of = write.times // SLICES
            tried = kept = 0.0
            for _ in range(SLICES):
                tried += await _spent(platform, write, slice_of, _DRY_RUN)
                kept += await _spent(platform, write, slice_of, {})
            made = slice_of * SLICES
            figures[name].add(tried / made, kept / made)
    return [*figures.values()]


async def _spent(platform: Platform, write: Write, times: int, headers: dict[str, str]) -> float:
    """Processor milliseconds of these requests together."""
    with processor_time({name: platform.pid(name) for name in _OWN}) as spent:
        for _ in range(times):
            answer = await platform.http.request(
                write.method, write.path(), json=write.body(), headers=headers
            )
            answer.raise_for_status()
    return spent.of(*_OWN)


async def _writes(platform: Platform, most_rounds: int) -> Mapping[str, Write]:
    """Ten operations that people and programs write with most often."""
    workspace = f"/v1/workspaces/{platform.connection['workspaceId']}"
    made = await platform.post(f"{workspace}/databases", {"label": "Dry runs", "fields": FIELDS})
    database = f"/v1/databases/{made['id']}"
    numbers = count()
    batch = {"operations": [{"op": "create", **_record(number)} for number in range(BATCH)]}
    one = (await platform.post(f"{database}/records", _record(0)))["id"]
    view = (await platform.post(f"{database}/views", {"label": "Prices"}))["id"]
    draft = await platform.post(platform.automations, {"label": "Draft", "graph": ONE_QUICK})
    running = await platform.publish("Started", THREE_QUICK)
    # The requests that are tried leave theirs, so there are more than enough.
    doomed = await _add_all(platform, database, batch, 2 * (most_rounds + 1) * SINGLE)

    def title() -> dict[str, Any]:
        return {"title": f"Number {next(numbers)}"}

    def graph() -> dict[str, Any]:
        return {
            "graph": {**ONE_QUICK, "nodes": [{**ONE_QUICK["nodes"][0], "label": title()["title"]}]}
        }

    return {
        "create record": Write(
            "POST", lambda: f"{database}/records", lambda: _record(next(numbers))
        ),
        "update record": Write(
            "PATCH", lambda: f"/v1/records/{one}", lambda: {"data": {"price": next(numbers)}}
        ),
        "delete record": Write("DELETE", lambda: f"/v1/records/{doomed.pop()}"),
        "batch of 500": Write(
            "POST", lambda: f"{database}/records/batch", lambda: batch, times=SEVERAL
        ),
        "comment": Write(
            "POST", lambda: f"/v1/records/{one}/comments", lambda: {"body": title()["title"]}
        ),
        "create page": Write("POST", lambda: "/v1/items", lambda: {"kind": "page", **title()}),
        "rename item": Write("PATCH", lambda: f"/v1/items/{made['itemId']}", title),
        "change view": Write(
            "PATCH", lambda: f"{database}/views/{view}", lambda: {"label": title()["title"]}
        ),
        "save draft": Write("PATCH", lambda: f"{platform.automations}/{draft['id']}", graph),
        "run automation": Write("POST", lambda: f"{platform.automations}/{running}/run", dict),
    }


def _record(number: int) -> dict[str, Any]:
    return {"title": f"Record {number}", "data": values_of(number)}


async def _add_all(
    platform: Platform, database: str, batch: dict[str, Any], wanted: int
) -> list[str]:
    """The ids of more than `wanted` new records."""
    ids: list[str] = []
    while len(ids) <= wanted:
        made = await platform.post(f"{database}/records/batch", batch)
        ids += [one["id"] for one in made["records"]]
    return ids
