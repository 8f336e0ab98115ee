"""The cost of a run: processor time of each process, statements and commits, against a floor.

The floor is a bare workflow of three local activities and a committed INSERT behind a bare route.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import psutil
from rich.console import Console
from temporalio.client import Client

from bench.figures import Figure
from bench.floor_workflows import ThreeLocalActivities, run_all
from bench.graphs import THREE_QUICK
from bench.platform import Platform
from bench.processor import Spent, counted_statements, processor_time
from bench.rounds import Rounds
from bench.runs import in_parallel
from bench.webhooks import call_hook, publish_hook
from cli.supervisor.servers import EmbeddedPostgres
from cli.supervisor.state import StateDir

OWN = ("api", "worker", "postgres")
"""Processes whose time is ours; Temporal's is the price of durability."""
WARM_UP_RUNS = 40
COUNTED_RUNS = 40
"""Runs while statements are counted, which makes them slower."""
IDLE_SECONDS = 60.0
"""Two turns of maintenance, wherever they fall."""
IDLE_TARGET = 15.0
"""Milliseconds a second."""


@dataclass(frozen=True, slots=True)
class _Bench:
    platform: Platform
    client: Client
    route: httpx2.AsyncClient
    count: int

    def groups(self) -> dict[str, int]:
        """Process ids by name: the platform's, the floor's route, and this one."""
        platform = {name: self.platform.pid(name) for name in (*OWN, "temporal")}
        children = psutil.Process().children()
        (route,) = (c.pid for c in children if "bench.floor_route:app" in c.cmdline())
        return {**platform, "route": route, "bench": psutil.Process().pid}


async def costs(
    platform: Platform, client: Client, route: httpx2.AsyncClient, rounds: Rounds, count: int,
    state: Path,
) -> list[Figure]:  # fmt: skip
    """Processor time of a run, answered at once and at its end; of an idle platform."""
    bench = _Bench(platform, client, route, count)
    immediate = Figure("processor time of a run vs floor", "ms", at_most=1.25)
    wait = Figure("the same, answered at its end vs at once", "ms", at_most=1.15)
    hooks = {
        respond: await publish_hook(platform, THREE_QUICK, respond=respond)
        for respond in ("immediate", "wait")
    }
    for hook in hooks.values():
        await _call_all(bench, hook, WARM_UP_RUNS)
    for _ in rounds:
        ours = await _measure(
            bench, "immediate", lambda: _call_all(bench, hooks["immediate"], count)
        )
        floor = await _floor(bench)
        waited = await _measure(bench, "wait", lambda: _call_all(bench, hooks["wait"], count))
        immediate.add(ours.of(*OWN) / count, floor)
        wait.add(waited.of(*OWN) / count, ours.of(*OWN) / count)
    for respond, hook in hooks.items():
        await _count_statements(bench, respond, hook, state)
    return [immediate, wait, await _idle(bench)]


async def _call_all(bench: _Bench, hook: dict[str, Any], count: int) -> None:
    """Call a webhook so often, and wait until its runs have ended."""

    async def one() -> None:
        (await call_hook(bench.platform, hook)).raise_for_status()

    await in_parallel(count, one)
    await bench.platform.settled()


async def _measure(bench: _Bench, name: str, work: Callable[[], Awaitable[None]]) -> Spent:
    """Processor time of `work`, printed for one run by process."""
    started = time.perf_counter()
    with processor_time(bench.groups()) as spent:
        await work()
    rate = bench.count / (time.perf_counter() - started)
    each = " · ".join(f"{key} {ms / bench.count:.1f}" for key, ms in spent.milliseconds.items())
    Console().print(f"  {name}: {each} ms a run, {rate:.0f} runs/s", highlight=False)
    return spent


async def _floor(bench: _Bench) -> float:
    """Milliseconds of the floor: its worker, which lives in this process, and its route."""
    client, count = bench.client, bench.count

    async def insert() -> None:
        answer = await bench.route.post("/rows", json={"body": {"triggerPayload": {}}})
        answer.raise_for_status()

    runs = await _measure(
        bench, "bare workflows", lambda: run_all(client, ThreeLocalActivities, count, 20)
    )
    rows = await _measure(bench, "bare inserts", lambda: in_parallel(count, insert))
    return (runs.of("bench") + rows.of("route", "postgres")) / count


async def _count_statements(bench: _Bench, respond: str, hook: dict[str, Any], state: Path) -> None:
    """Print statements and transactions of a run, minus those of an idle platform."""
    superuser = EmbeddedPostgres(StateDir(state)).url("postgres", "postgres")
    log = StateDir(state).log("postgres")
    started = time.perf_counter()
    with counted_statements(superuser, log) as busy:
        await _call_all(bench, hook, COUNTED_RUNS)
    seconds = time.perf_counter() - started
    with counted_statements(superuser, log) as idle:
        await asyncio.sleep(seconds)
    statements = (busy.statements - idle.statements) / COUNTED_RUNS
    transactions = (busy.transactions - idle.transactions) / COUNTED_RUNS
    Console().print(
        f"  {respond}: {statements:.1f} statements, {transactions:.1f} transactions a run"
    )


async def _idle(bench: _Bench) -> Figure:
    """All processes of a platform with nothing to do, in milliseconds a second."""
    figure = Figure("idle platform vs 15 ms a second", "ms/s", at_most=1.0)
    groups = {name: bench.platform.pid(name) for name in (*OWN, "temporal")}
    with processor_time(groups) as spent:
        await asyncio.sleep(IDLE_SECONDS)
    each = {name: ms / IDLE_SECONDS for name, ms in spent.milliseconds.items()}
    Console().print("  idle: " + " · ".join(f"{name} {ms:.1f}" for name, ms in each.items()))
    figure.add(sum(each.values()), IDLE_TARGET)
    return figure
