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
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
from temporalio.client import Client

from bench.concurrent import concurrent_runs
from bench.copies import copy_rates
from bench.endpoint import endpoint
from bench.fairness import fairness
from bench.figures import Figure, histories, print_table, quantile
from bench.floor_workflows import OneActivity, ThreeLocalActivities, floor_worker, run_all, run_one
from bench.graphs import ONE_QUICK, QUICK_CHAIN, THREE_QUICK, outside_chain
from bench.loops import loop_rates, node_costs
from bench.platform import Platform, running_platform
from bench.queries import query_rates
from bench.reads import read_rates
from bench.webhooks import webhook_rate
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


@dataclass(frozen=True, slots=True)
class Measuring:
    """What the parts of the benchmark measure with."""

    platform: Platform
    client: Client
    route: httpx2.AsyncClient
    rounds: int
    count: int
    records: int


async def _histories(m: Measuring) -> list[Figure]:
    async with endpoint() as url:
        graphs = {"quick chain": QUICK_CHAIN, "outside chain": outside_chain(url)}
        await histories(m.platform, m.client, graphs)
    return []


async def _accept(m: Measuring) -> list[Figure]:
    return [await accept_rate(m.platform, m.route, m.rounds, m.count)]


async def _webhooks(m: Measuring) -> list[Figure]:
    return [await webhook_rate(m.platform, m.route, m.rounds, m.count)]


async def _reads(m: Measuring) -> list[Figure]:
    return await read_rates(m.platform, m.route, m.rounds, max(400, 2 * m.count))


async def _writes(m: Measuring) -> list[Figure]:
    return await write_rates(m.platform, m.route, m.rounds)


async def _copies(m: Measuring) -> list[Figure]:
    return await copy_rates(m.platform, m.rounds)


async def _queries(m: Measuring) -> list[Figure]:
    return await query_rates(m.platform, m.route, m.rounds, max(50, m.count // 2), m.records)


async def _throughput(m: Measuring) -> list[Figure]:
    return await throughput(m.platform, m.client, m.rounds, m.count)


async def _idle(m: Measuring) -> list[Figure]:
    return [await idle_latency(m.platform, m.client, m.rounds, max(20, m.count // 5))]


async def _loops(m: Measuring) -> list[Figure]:
    return await loop_rates(m.platform, m.client, m.rounds)


async def _nodes(m: Measuring) -> list[Figure]:
    return await node_costs(m.platform, m.client, m.rounds, max(20, m.count // 4))


async def _fairness(m: Measuring) -> list[Figure]:
    return await fairness(m.platform, m.rounds)


async def _concurrent(m: Measuring) -> list[Figure]:
    return await concurrent_runs(m.platform, 10_000)


PARTS: Mapping[str, Callable[[Measuring], Awaitable[list[Figure]]]] = {
    "accept": _accept,
    "webhooks": _webhooks,
    "reads": _reads,
    "writes": _writes,
    "copies": _copies,
    "queries": _queries,
    "throughput": _throughput,
    "idle": _idle,
    "loops": _loops,
    "nodes": _nodes,
    "fairness": _fairness,
    "histories": _histories,
    "concurrent": _concurrent,
}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--count", type=int, default=200, help="runs or requests per round")
    parser.add_argument("--records", type=int, default=1_000_000, help="records that are queried")
    parser.add_argument(
        "--only", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART",
        help=f"measure these parts: {', '.join(PARTS)}",
    )  # fmt: skip
    return parser.parse_args()


async def main() -> None:
    """Measure everything that was asked for and print the table."""
    options = _options()
    with tempfile.TemporaryDirectory(prefix="workspace-bench-") as directory:
        Path(directory).chmod(0o755)
        async with running_platform(Path(directory) / "state") as platform:
            client = await Client.connect(platform.connection["temporalAddress"])
            async with floor_route(platform.database_url) as route, floor_worker(client):
                measuring = Measuring(
                    platform, client, route, options.rounds, options.count, options.records
                )
                figures: list[Figure] = []
                for name in options.only:
                    figures += await PARTS[name](measuring)
                if figures:
                    print_table(figures)


if __name__ == "__main__":
    asyncio.run(main())
