"""Runs of automations: accepted, completed, and alone, against rows and bare workflows."""

import asyncio
import time
from collections.abc import Awaitable, Callable

import httpx2
from temporalio.client import Client

from bench.figures import Figure, quantile
from bench.floor_workflows import OneActivity, ThreeLocalActivities, run_all, run_one
from bench.graphs import ONE_QUICK, THREE_QUICK
from bench.platform import Platform
from bench.rounds import Rounds, say

IN_FLIGHT = 20
Timed = Callable[[], Awaitable[None]]


async def rate(count: int, work: Timed) -> float:
    """The rate per second."""
    started = time.perf_counter()
    await work()
    return count / (time.perf_counter() - started)


async def times(count: int, work: Timed) -> list[float]:
    """Seconds of each of `count` repetitions, one after the other."""
    measured = []
    for _ in range(count):
        started = time.perf_counter()
        await work()
        measured.append(time.perf_counter() - started)
    return measured


async def in_parallel(count: int, call: Timed) -> None:
    """`count` calls, a bounded number at once."""
    room = asyncio.Semaphore(IN_FLIGHT)

    async def one() -> None:
        async with room:
            await call()

    await asyncio.gather(*(one() for _ in range(count)))


async def accept_rate(
    platform: Platform, floor: httpx2.AsyncClient, rounds: Rounds, count: int
) -> Figure:
    """Runs accepted a second against rows inserted a second, both while no worker runs."""
    figure = Figure("run-now accepted vs committed INSERT", "1/s", at_least=0.40)
    automation = await platform.publish("Accept", ONE_QUICK)

    async def insert() -> None:
        (await floor.post("/rows", json={"body": {"triggerPayload": {}}})).raise_for_status()

    for _ in rounds:
        with platform.paused_worker():
            accept = platform.accept_all
            ours = await rate(count, lambda: accept(automation, count, IN_FLIGHT))
            figure.add(ours, await rate(count, lambda: in_parallel(count, insert)))
        await platform.settled()
    return figure


async def throughput(
    platform: Platform, client: Client, rounds: Rounds, count: int
) -> list[Figure]:
    """Accepted runs started and completed a second, against bare workflows."""
    figures = []
    for name, graph, floor, at_least in (
        ("one quick node vs one regular activity", ONE_QUICK, OneActivity, 1.0),
        ("three quick nodes vs three local activities", THREE_QUICK, ThreeLocalActivities, 1.6),
    ):
        figure = Figure(name, "1/s", at_least=at_least)
        automation = await platform.publish(name, graph)
        await platform.accept_all(automation, IN_FLIGHT, IN_FLIGHT)
        await run_all(client, floor, IN_FLIGHT, IN_FLIGHT)
        await platform.settled()
        say(f"  {name}")
        for _ in rounds:
            with platform.paused_worker():
                await platform.accept_all(automation, count, IN_FLIGHT)
            ours = await rate(count, platform.settled)
            theirs = await rate(count, lambda: run_all(client, floor, count, IN_FLIGHT))
            figure.add(ours, theirs)
        figures.append(figure)
    return figures


async def idle_latency(platform: Platform, client: Client, rounds: Rounds, count: int) -> Figure:
    """From trigger to terminal, one run at a time."""
    figure = Figure("idle run, trigger to terminal", "ms", at_most=1.0)
    automation = await platform.publish("Idle", THREE_QUICK)
    await platform.run_one(automation)
    for _ in rounds:
        ours = await times(count, lambda: platform.run_one(automation))
        theirs = await times(count, lambda: run_one(client, ThreeLocalActivities))
        figure.add(quantile(ours, 0.5) * 1000, quantile(theirs, 0.5) * 1000)
        figure.tail(ours, theirs)
    return figure
