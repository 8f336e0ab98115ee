"""`make bench`: every figure is ours divided by its floor, taken in turns on the same machine.

The platform is the real one (`workspace up`, file-backed, durable) driven over HTTP; the floors
share its PostgreSQL and its Temporal server. Medians of the rounds are what counts.
"""

import argparse
import asyncio
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
from temporalio.client import Client

from bench.copies import copy_rates
from bench.figures import Figure, histories, print_table, quantile
from bench.floor_workflows import OneActivity, ThreeLocalActivities, floor_worker, run_all, run_one
from bench.graphs import ONE_QUICK, QUICK_CHAIN, THREE_QUICK, outside_chain
from bench.platform import Platform, running_platform
from bench.queries import query_rates
from bench.reads import read_rates
from bench.writes import write_rates
from runtime.database import driver_url

IN_FLIGHT = 20
Timed = Callable[[], Awaitable[None]]


async def rate(count: int, work: Timed) -> float:
    """How many a second."""
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


@asynccontextmanager
async def floor_route(database_url: str) -> AsyncIterator[httpx2.AsyncClient]:
    """The bare route, served by its own process as the API is."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "uvicorn", "bench.floor_route:app", "--port", str(port)]
    process = subprocess.Popen(
        [*command, "--log-level", "warning", "--no-access-log", "--timeout-keep-alive", "75"],
        env={**os.environ, "FLOOR_DATABASE_URL": driver_url(database_url)},
    )
    try:
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=30) as http:
            await _until_up(http)
            yield http
    finally:
        process.terminate()
        process.wait(20)


async def _until_up(http: httpx2.AsyncClient) -> None:
    async with asyncio.timeout(20):
        while True:
            try:
                await http.post("/rows", json={"body": {}})
            except httpx2.TransportError:
                await asyncio.sleep(0.1)
            else:
                return


async def in_parallel(count: int, call: Timed) -> None:
    """`count` calls, a bounded number at once."""
    room = asyncio.Semaphore(IN_FLIGHT)

    async def one() -> None:
        async with room:
            await call()

    await asyncio.gather(*(one() for _ in range(count)))


async def accept_rate(
    platform: Platform, floor: httpx2.AsyncClient, rounds: int, count: int
) -> Figure:
    """Runs accepted a second against rows inserted a second, both while no worker runs."""
    figure = Figure("run-now accepted vs committed INSERT", "1/s", at_least=0.40)
    automation = await platform.publish("Accept", ONE_QUICK)

    async def insert() -> None:
        (await floor.post("/rows", json={"body": {"triggerPayload": {}}})).raise_for_status()

    for _ in range(rounds):
        with platform.paused_worker():
            accept = platform.accept_all
            ours = await rate(count, lambda: accept(automation, count, IN_FLIGHT))
            figure.add(ours, await rate(count, lambda: in_parallel(count, insert)))
        await platform.settled()
    return figure


async def throughput(platform: Platform, client: Client, rounds: int, count: int) -> list[Figure]:
    """Accepted runs started and completed a second, against bare workflows."""
    figures = []
    for name, graph, floor, at_least in (
        ("one quick node vs one regular activity", ONE_QUICK, OneActivity, 1.0),
        ("three quick nodes vs three local activities", THREE_QUICK, ThreeLocalActivities, 0.6),
    ):
        figure = Figure(name, "1/s", at_least=at_least)
        automation = await platform.publish(name, graph)
        await platform.accept_all(automation, IN_FLIGHT, IN_FLIGHT)
        await run_all(client, floor, IN_FLIGHT, IN_FLIGHT)
        await platform.settled()
        for _ in range(rounds):
            with platform.paused_worker():
                await platform.accept_all(automation, count, IN_FLIGHT)
            ours = await rate(count, platform.settled)
            theirs = await rate(count, lambda: run_all(client, floor, count, IN_FLIGHT))
            figure.add(ours, theirs)
        figures.append(figure)
    return figures


async def idle_latency(platform: Platform, client: Client, rounds: int, count: int) -> Figure:
    """From trigger to terminal, one run at a time."""
    figure = Figure("idle run, trigger to terminal", "ms", at_most=2.0)
    automation = await platform.publish("Idle", THREE_QUICK)
    await platform.run_one(automation)
    for _ in range(rounds):
        ours = await times(count, lambda: platform.run_one(automation))
        theirs = await times(count, lambda: run_one(client, ThreeLocalActivities))
        figure.add(quantile(ours, 0.5) * 1000, quantile(theirs, 0.5) * 1000)
        figure.tail(ours, theirs)
    return figure


async def main() -> None:
    """Measure everything and print the table."""
    parser = argparse.ArgumentParser(prog="make bench")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--count", type=int, default=200, help="runs or requests per round")
    parser.add_argument("--records", type=int, default=1_000_000, help="records that are queried")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="workspace-bench-") as directory:
        Path(directory).chmod(0o755)
        async with running_platform(Path(directory) / "state") as platform:
            client = await Client.connect(platform.connection["temporalAddress"])
            async with floor_route(platform.database_url) as route, floor_worker(client):
                rounds, count = options.rounds, options.count
                figures = [await accept_rate(platform, route, rounds, count)]
                figures += await read_rates(platform, route, rounds, max(400, 2 * count))
                figures += await write_rates(platform, route, rounds)
                figures += await copy_rates(platform, rounds)
                queries = (rounds, max(50, count // 2), options.records)
                figures += await query_rates(platform, route, *queries)
                figures += await throughput(platform, client, rounds, count)
                figures.append(await idle_latency(platform, client, rounds, max(20, count // 5)))
                print_table(figures)
                health = f"{platform.connection['baseUrl']}/healthz"
                await histories(
                    platform,
                    client,
                    {"quick chain": QUICK_CHAIN, "outside chain": outside_chain(health)},
                )


if __name__ == "__main__":
    asyncio.run(main())
