"""Growth: what lists, filters and counters cost as a workspace grows, and how fast the old goes."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from math import log10
from typing import Any

from temporalio.client import Client

from bench.figures import Figure, quantile
from bench.growth_rows import LongHistory, automation_of_three_nodes
from bench.platform import Platform
from bench.processor import processor_time
from bench.rounds import say
from models.automation.run_statistics import settle_runs
from models.workspace.usage import settle_totals
from runtime.database import Database
from runtime.temporal.workflow_kinds import WorkflowKind

SMALL = 2_000
SIZES = (10_000, 100_000, 1_000_000)
ASKED = 40
"""Requests of each question and size; the first of them warm up."""
WARM = 10
EXPIRED = 20_000
EXPIRING = {"automation_run": "created_at", "request_log": "created_at", "workspace_event": "at"}
RUNS_A_SECOND = 100.0
"""The runs a second that a busy platform makes, and that retention keeps up with."""
DELETING = ("worker", "postgres", "temporal")
"""The processes that a sweep keeps busy."""

LINEAR = {"records searched", "records summed"}
"""The questions that read all records of a database (ADR 0138)."""

Ask = Callable[[], Awaitable[None]]


async def growth(platform: Platform, client: Client) -> list[Figure]:
    """Every question at each size against the same with 2,000 rows; and the rate of deletion."""
    automation_id = await automation_of_three_nodes(platform)
    past = await LongHistory.of(platform, automation_id)
    questions = _questions(platform, automation_id, past)
    times: dict[str, dict[int, list[float]]] = {name: {} for name in questions}
    for size in (SMALL, *SIZES):
        started = time.monotonic()
        await past.grow(size)
        await settle(platform)
        say(f"  {size:,} rows of each table, after {time.monotonic() - started:.0f} s")
        for name, ask in questions.items():
            times[name][size] = await timed(ask)
    _print_exponents(times)
    figures = [_figure(name, seconds) for name, seconds in times.items()]
    return [*figures, await _deletion(platform, client, past)]


def _questions(platform: Platform, automation_id: str, past: LongHistory) -> Mapping[str, Ask]:
    """The requests by name."""

    def get(path: str, params: dict[str, Any]) -> Ask:
        async def ask() -> None:
            (await platform.http.get(path, params=params)).raise_for_status()

        return ask

    def query(**asked: Any) -> Ask:
        async def ask() -> None:
            await platform.post(f"{_records(past)}/query", {"limit": 50, **asked})

        return ask

    async def accept() -> None:
        await platform.run_one(automation_id)

    return {
        **{name: get(*request) for name, request in _runs(platform, automation_id).items()},
        **{name: get(*request) for name, request in _lists(platform, past).items()},
        "records queried": query(),
        "records searched": query(search="found nowhere"),
        "records summed": query(aggregates=[{"field": "price", "op": "sum"}]),
        "a run of three nodes": accept,
    }


_Requests = Mapping[str, tuple[str, dict[str, Any]]]
"""Paths and parameters by name."""


def _place(platform: Platform) -> str:
    return f"/v1/workspaces/{platform.connection['workspaceId']}"


def _records(past: LongHistory) -> str:
    return f"/v1/databases/{past.ids['database_id']}/records"


def _runs(platform: Platform, automation_id: str) -> _Requests:
    """Lists and statistics of runs."""
    place = _place(platform)
    runs, of_one = f"{place}/automation-runs", f"{place}/automations/{automation_id}/runs"
    since = time.strftime("%Y-%m-%dT00:00:00Z", time.gmtime(time.time() - 5 * 86_400))
    return {
        "runs": (runs, {}),
        "runs failed": (runs, {"status": "failed"}),
        "runs timed out": (runs, {"status": "timed_out"}),
        "runs succeeded": (runs, {"status": "succeeded"}),
        "runs running": (runs, {"status": "running"}),
        "runs of schedules": (runs, {"source": "schedule"}),
        "runs failed of schedules": (runs, {"status": "failed", "source": "schedule"}),
        "runs failed in five days": (runs, {"status": "failed", "since": since}),
        "runs before five days": (runs, {"until": since}),
        "runs of an automation": (of_one, {}),
        "statistics of a day": (f"{runs}/statistics", {}),
        "statistics of 30 days": (f"{runs}/statistics", {"by": "day"}),
        "statistics of an automation": (f"{of_one}/statistics", {"by": "day"}),
        "runs failed of an automation": (of_one, {"status": "failed"}),
    }


def _lists(platform: Platform, past: LongHistory) -> _Requests:
    """All other lists."""
    place = _place(platform)
    told = f"{place}/webhook-endpoints/{past.ids['endpoint_id']}/deliveries"
    refreshed = f"{place}/data-sources/{past.ids['data_source_id']}/runs"
    return {
        "automations": (f"{place}/automations", {}),
        "runs of an action": (f"{place}/actions/{past.ids['action_id']}/runs", {}),
        "data sources": (f"{place}/data-sources", {}),
        "runs of a data source": (refreshed, {}),
        "deliveries": (told, {}),
        "deliveries failed": (told, {"status": "failed"}),
        "notifications": (f"{place}/notifications", {}),
        "notifications unread": (f"{place}/notifications", {"unreadOnly": True}),
        "usage": (f"{place}/usage", {}),
        "events": (f"{place}/events", {}),
        "request logs": (f"{place}/api-keys/request-logs", {}),
        "audit log": (f"{place}/audit-log", {}),
        "records": (_records(past), {}),
        "databases": (f"{place}/databases", {}),
        "items": ("/v1/items", {"workspaceId": platform.connection["workspaceId"]}),
    }


async def timed(ask: Ask) -> list[float]:
    """Seconds of each request."""
    times = []
    for number in range(ASKED):
        started = time.perf_counter()
        await ask()
        if number >= WARM:
            times.append(time.perf_counter() - started)
    return times


async def settle(platform: Platform) -> None:
    """Count the rows that maintenance would have counted if they had arrived over time."""
    database = Database(platform.database_url)
    async with database.transaction() as work:
        await settle_totals(work)
    left = 1
    while left:
        async with database.transaction() as work:
            left = await settle_runs(work)
    await database.close()


def _figure(name: str, times: Mapping[int, list[float]]) -> Figure:
    bound = SIZES[-1] / SMALL if name in LINEAR else 2.0
    figure = Figure(f"{name}, {SIZES[-1]:,} against {SMALL:,}", "ms", at_most=bound)
    few, many = times[SMALL], times[SIZES[-1]]
    figure.add(quantile(many, 0.5) * 1000, quantile(few, 0.5) * 1000)
    figure.tail(many, few)
    return figure


def _print_exponents(times: Mapping[str, Mapping[int, list[float]]]) -> None:
    """Milliseconds at each size, and the exponent: 0 is constant, 1 grows as the rows do."""
    decades = log10(SIZES[-1] / SIZES[0])
    for name, seconds in times.items():
        medians = {size: quantile(seconds[size], 0.5) * 1000 for size in (SMALL, *SIZES)}
        exponent = log10(medians[SIZES[-1]] / medians[SIZES[0]]) / decades
        shown = "  ".join(f"{value:7.1f}" for value in medians.values())
        say(f"  {name:<30} {shown} ms  exponent {exponent:+.2f}")


async def _deletion(platform: Platform, client: Client, past: LongHistory) -> Figure:
    """Expired runs that a sweep removes a second, with as many events and request logs."""
    figure = Figure("expired runs removed", "1/s", at_least=1.0)
    await past.expire(EXPIRED)
    left = " UNION ALL ".join(
        f"SELECT 1 FROM {table} WHERE {moment} < now() - interval '100 days'"  # noqa: S608
        for table, moment in EXPIRING.items()
    )
    started = time.perf_counter()
    with processor_time({name: platform.pid(name) for name in DELETING}) as spent:
        await client.get_schedule_handle(WorkflowKind.RETENTION.workflow_id("sweep")).trigger()
        async with asyncio.timeout(EXPIRED / RUNS_A_SECOND * 5):
            while True:
                if await (await platform.database.execute(f"{left} LIMIT 1")).fetchone() is None:
                    break
                await asyncio.sleep(0.2)
    figure.add(EXPIRED / (time.perf_counter() - started), RUNS_A_SECOND)
    each = " · ".join(f"{name} {ms / EXPIRED:.3f}" for name, ms in spent.milliseconds.items())
    say(f"  a removed run: {each} ms")
    return figure
