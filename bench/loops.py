"""What a node more costs: in a loop over many items, and in a chain of nodes."""

import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import psutil
from rich.console import Console
from temporalio.client import Client

from bench.endpoint import endpoint
from bench.figures import Figure
from bench.floor_workflows import (
    LANES,
    DispatchedActivities,
    LocalActivities,
    RegularActivities,
    run_all,
    run_one,
)
from bench.graphs import NODES, QUICK_LOOP, outside_chain, quick_chain
from bench.platform import Platform
from bench.rounds import Rounds

ITEMS = 10_000
FLOOR_ITEMS = 1_000
IN_FLIGHT = 20

Timed = Callable[[], Awaitable[None]]


async def loop_rates(platform: Platform, client: Client, rounds: Rounds) -> list[Figure]:
    """Items of a quick for_each a second, against bare local activities, as many at once."""
    figure = Figure("10,000 quick items vs bare local activities", "1/s", at_least=0.5)
    automation = await platform.publish("Loop", QUICK_LOOP)
    items = {"triggerPayload": {"items": list(range(ITEMS))}}
    few = {"triggerPayload": {"items": list(range(500))}}
    await _loop(platform, automation, few)
    await run_one(client, LocalActivities, FLOOR_ITEMS)
    before = _worker_mib(platform)
    for _ in rounds:
        ours = ITEMS / await _seconds(lambda: _loop(platform, automation, items))
        theirs = FLOOR_ITEMS / await _seconds(lambda: run_one(client, LocalActivities, FLOOR_ITEMS))
        figure.add(ours, theirs)
    grown = _worker_mib(platform) - before
    Console().print(
        f"worker memory after {len(figure.pairs)} loops of {ITEMS} items: {before:.0f} →"
        f" {before + grown:.0f} MiB; the floor runs {LANES} at once, as the loop does"
    )
    return [figure]


async def node_costs(
    platform: Platform, client: Client, rounds: Rounds, count: int
) -> list[Figure]:
    """Milliseconds that one node more adds to a run, many runs at once.

    Temporal hands an activity of the workflow's own queue over with the workflow task. So it does
    with outside nodes while the worker has a slot (ADR 0113); else they go through another queue.
    """
    quick = Figure("one quick node more vs one regular activity more", "ms", at_most=0.5)
    outside = Figure("one outside node more vs one regular activity more", "ms", at_most=1.2)
    alike = Figure("the same vs one activity on a queue of its own more", "ms", at_most=1.2)
    sizes = (1, NODES)
    async with endpoint() as url:
        computing = [await platform.publish(f"Quick {n}", quick_chain(n)) for n in sizes]
        calling = [await platform.publish(f"Outside {n}", outside_chain(url, n)) for n in sizes]
        for _ in rounds:
            floor, dispatched = [
                await _marginal(partial(_floor, client, one, count), sizes, count)
                for one in (RegularActivities, DispatchedActivities)
            ]
            computed, called = [
                await _marginal(partial(_runs, platform, count), pair, count)
                for pair in (computing, calling)
            ]
            quick.add(computed, floor)
            outside.add(called, floor)
            alike.add(called, dispatched)
    return [quick, outside, alike]


async def _marginal(
    run: Callable[[Any], Awaitable[float]], short_and_long: Any, count: int
) -> float:
    short, long = [await run(which) for which in short_and_long]
    return (long - short) * 1000 / count / (NODES - 1)


async def _floor(client: Client, floor: Any, count: int, activities: int) -> float:
    return await _seconds(lambda: run_all(client, floor, count, IN_FLIGHT, activities))


async def _runs(platform: Platform, count: int, automation: str) -> float:
    with platform.paused_worker():
        await platform.accept_all(automation, count, IN_FLIGHT)
    return await _seconds(platform.settled)


async def _loop(platform: Platform, automation: str, body: dict[str, Any]) -> None:
    await platform.post(f"{platform.automations}/{automation}/run", body)
    await platform.settled()


async def _seconds(work: Timed) -> float:
    started = time.perf_counter()
    await work()
    return time.perf_counter() - started


def _worker_mib(platform: Platform) -> float:
    return float(psutil.Process(platform.worker_pid).memory_info().rss) / 1024 / 1024
