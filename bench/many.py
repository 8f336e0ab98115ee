"""Many runs together: retried by one operation, found among a million, and counted."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, LiteralString

from bench.cost import OWN
from bench.figures import Figure, quantile
from bench.graphs import THREE_QUICK, Graph
from bench.growth import Ask, settle, timed
from bench.growth_rows import LongHistory
from bench.platform import Platform
from bench.processor import counted_statements, processor_time, statements_touching
from bench.rounds import Rounds, say
from bench.runs import rate
from cli.supervisor.servers import EmbeddedPostgres
from cli.supervisor.state import StateDir

BATCH = 1_000
FEW, MANY = 10_000, 1_000_000
COUNTED_RUNS = 250
"""Runs of the operation whose statements are counted; the log of many more is rotated away."""
ATTRIBUTES = {"orderNumber": "A-10027", "customer": "Ada", "region": "north", "tier": "2"}
AGGREGATES = ("note_ended_run", "note_failed_run", "note_run_for_breaker")
"""Triggers of runs that keep statistics, incidents and breakers."""
_FAILING: Graph = {
    **THREE_QUICK,
    "nodes": [
        *THREE_QUICK["nodes"][:2],
        {"id": "c", "kind": "transform", "config": {"output": {"value": {
            "type": "expression", "value": "nodes.b.value.missing + 1"}}}},
    ],
}  # fmt: skip


async def many(platform: Platform, rounds: Rounds, count: int, state: Path) -> list[Figure]:
    """Throughput of a bulk retry, costs of attributes and aggregates, times among many runs."""
    return [
        *await _retries(platform, rounds, count, state),
        await _kept_with_a_run(platform, rounds, BATCH),
        *await _searches(platform),
    ]


async def _retries(platform: Platform, rounds: Rounds, count: int, state: Path) -> list[Figure]:
    """Failed runs retried by one operation against as many runs started in batches."""
    figure = Figure(f"{count:,} runs retried at once vs started in batches", "1/s", at_least=0.8)
    place = f"/v1/workspaces/{platform.connection['workspaceId']}"
    automation = await platform.publish("Many", _FAILING)
    failed = await _started(platform, automation, count)
    await platform.settled()
    path = f"{platform.automations}/{automation}"
    (await platform.http.patch(path, json={"graph": THREE_QUICK})).raise_for_status()
    await platform.post(f"{path}/publish", {})
    say(f"  {count:,} runs have failed")
    body = {
        "action": "retry",
        "filter": {"automationId": automation, "status": "failed"},
        "retry": {"from": "start", "version": "published", "again": True},
    }

    async def start() -> None:
        await _started(platform, automation, count)
        await platform.settled()

    async def retry() -> None:
        operation = await _operated(platform, place, body)
        await platform.settled()
        assert operation["succeeded"] == count, operation

    for _ in rounds:
        started = await rate(count, start)
        figure.add(await rate(count, retry), started)
    few = {**body, "runIds": failed[:COUNTED_RUNS]}
    del few["filter"]
    return [figure, await _own_statements(platform, place, few, state)]


async def _own_statements(
    platform: Platform, place: str, body: dict[str, Any], state: Path
) -> Figure:
    """Statements of the transactions that touch an operation's rows, for each of its runs."""
    figure = Figure("statements of an operation for each run, of 2", "", at_most=1.0)
    count = len(body["runIds"])
    superuser = EmbeddedPostgres(StateDir(state)).url("postgres", "postgres")
    with counted_statements(superuser, StateDir(state).log("postgres")) as counts:
        await _operated(platform, place, body)
        await platform.settled()
    own = statements_touching(counts, "run_operation")
    say(f"  {own} statements of the operation, {counts.statements} in all, for {count:,} runs")
    figure.add(own / count, 2)
    return figure


async def _started(
    platform: Platform, automation: str, count: int, attributes: dict[str, str] | None = None
) -> list[str]:
    """Accept this number of runs in batches; their ids."""
    ids = []
    for first in range(0, count, BATCH):
        size = min(BATCH, count - first)
        body: dict[str, Any] = {"payloads": [{"n": first + n} for n in range(size)]}
        if attributes is not None:
            body["attributes"] = [attributes] * size
        answer = await platform.post(f"{platform.automations}/{automation}/runs/batch", body)
        ids += [one["runId"] for one in answer["results"]]
    return ids


async def _operated(platform: Platform, place: str, body: dict[str, Any]) -> dict[str, Any]:
    """An operation at its end."""
    operation = await platform.post(f"{place}/run-operations", body)
    while operation["status"] in {"queued", "running"}:
        await asyncio.sleep(0.2)
        answer = await platform.http.get(f"{place}/run-operations/{operation['id']}")
        operation = answer.raise_for_status().json()["data"]
    assert operation["status"] == "succeeded", operation
    return operation


async def _kept_with_a_run(platform: Platform, rounds: Rounds, count: int) -> Figure:
    """Processor time of runs with attributes and aggregates against runs without both."""
    figure = Figure("processor time with attributes and aggregates", "ms", at_most=1.05)
    automation = await platform.publish("Counted", THREE_QUICK)
    await _milliseconds(platform, automation, count, None)
    for _ in rounds:
        async with _without_aggregates(platform):
            plain = await _milliseconds(platform, automation, count, None)
        figure.add(await _milliseconds(platform, automation, count, ATTRIBUTES), plain)
    return figure


async def _milliseconds(
    platform: Platform, automation: str, count: int, attributes: dict[str, str] | None
) -> float:
    """Processor milliseconds of a run until the aggregates hold all of them."""
    with processor_time({name: platform.pid(name) for name in OWN}) as spent:
        await _started(platform, automation, count, attributes)
        await platform.settled()
        await settle(platform)
    return spent.of(*OWN) / count


@asynccontextmanager
async def _without_aggregates(platform: Platform) -> AsyncIterator[None]:
    async def switch(state: LiteralString) -> None:
        for name in AGGREGATES:
            await platform.database.execute(f"ALTER TABLE automation_run {state} TRIGGER {name}")

    await switch("DISABLE")
    try:
        yield
    finally:
        await switch("ENABLE")


async def _searches(platform: Platform) -> list[Figure]:
    """Statistics and filtered lists with a million runs against ten thousand."""
    automation = await platform.publish("Searched", THREE_QUICK)
    past = await LongHistory.of(platform, automation)
    times: dict[int, dict[str, list[float]]] = {}
    for size in (FEW, MANY):
        await past.grow(size)
        await settle(platform)
        say(f"  {size:,} runs")
        asked = _questions(platform, automation)
        times[size] = {name: await timed(ask) for name, ask in asked.items()}
    figures = []
    for name, seconds in times[MANY].items():
        figure = Figure(f"{name}, {MANY:,} against {FEW:,}", "ms", at_most=2.0)
        few = times[FEW][name]
        figure.add(quantile(seconds, 0.5) * 1000, quantile(few, 0.5) * 1000)
        figure.tail(seconds, few)
        figures.append(figure)
    return figures


def _questions(platform: Platform, automation: str) -> Mapping[str, Ask]:
    place = f"/v1/workspaces/{platform.connection['workspaceId']}"
    runs, statistics = f"{place}/automation-runs", f"{place}/automation-runs/statistics"
    lately = time.strftime("%Y-%m-%dT00:00:00Z", time.gmtime(time.time() - 5 * 86_400))
    filters: dict[str, dict[str, str]] = {
        "all": {},
        "failed": {"status": "failed"},
        "of schedules": {"source": "schedule"},
        "of an automation": {"automationId": automation},
        "with a common attribute": {"attribute": "region:north"},
        "with an attribute of its own": {"attribute": "orderNumber:N-4321"},
        "with an attribute of none": {"attribute": "orderNumber:N-0"},
        "before five days": {"until": lately},
        "ended in five days": {"endedSince": lately},
        "longer than a minute": {"minSeconds": "60"},
        "failed by a code": {"errorCode": "expression_failed"},
        "failed at a node": {"failedNodeId": "c"},
        "with a text of none": {"text": "nobody wrote this"},
    }

    def get(path: str, params: Mapping[str, str]) -> Ask:
        async def ask() -> None:
            (await platform.http.get(path, params=dict(params))).raise_for_status()

        return ask

    return {
        **{f"runs {name}": get(runs, params) for name, params in filters.items()},
        "statistics of a day": get(statistics, {}),
        "statistics of 30 days": get(statistics, {"by": "day"}),
        "statistics of an automation": get(
            f"{platform.automations}/{automation}/runs/statistics", {"by": "day"}
        ),
        "incidents": get(f"{place}/incidents", {}),
    }
