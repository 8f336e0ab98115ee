"""Runs a second, and the cost of one, with several workers and API processes on one machine."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from itertools import cycle
from pathlib import Path
from typing import Any

import httpx2

from bench.figures import Figure
from bench.graphs import THREE_QUICK
from bench.platform import Platform
from bench.processor import processor_time
from bench.rounds import Rounds, say
from bench.runs import in_parallel, rate
from bench.webhooks import call_hook, publish_hook
from cli.supervisor.servers import EmbeddedPostgres
from cli.supervisor.state import StateDir, choose_port

STEPS = ((1, 1), (2, 1), (3, 1), (3, 2))
"""Workers, and API processes."""
READY_SECONDS = 240.0
SETTLING_SECONDS = 10.0
"""A process that has just started searches for work that others left."""
OWN = ("api", "worker", "postgres")


@dataclass(frozen=True, slots=True)
class _Fleet:
    """A platform with further processes: their ids by name, and a client of each API."""

    platforms: Sequence[Platform]
    pids: Mapping[str, int]


async def scale(platform: Platform, rounds: Rounds, count: int, state: Path) -> list[Figure]:
    """Processor time of a run with more processes against that with one of each."""
    hook = await publish_hook(platform, THREE_QUICK, respond="wait")
    figures = [
        Figure(f"processor time of a run, {workers} workers, {apis} API", "ms", at_most=1.15)
        for workers, apis in STEPS[1:]
    ]
    for _ in rounds:
        alone, *others = [await _measure(platform, hook, step, count, state) for step in STEPS]
        for figure, milliseconds in zip(figures, others, strict=True):
            figure.add(milliseconds, alone)
    return figures


async def _measure(
    platform: Platform, hook: dict[str, Any], step: tuple[int, int], count: int, state: Path
) -> float:
    """Milliseconds of our processes for a run; prints them and the runs a second."""
    workers, apis = step
    async with _fleet(platform, workers, apis, state) as fleet:
        turns = cycle(fleet.platforms)

        async def one() -> None:
            (await call_hook(next(turns), hook)).raise_for_status()

        await in_parallel(count, one)
        await asyncio.sleep(SETTLING_SECONDS)
        with processor_time(fleet.pids) as spent:
            per_second = await rate(count, lambda: in_parallel(count, one))
    each = {
        kind: sum(ms for name, ms in spent.milliseconds.items() if name.startswith(kind)) / count
        for kind in (*OWN, "temporal")
    }
    shares = " · ".join(f"{kind} {ms:.1f}" for kind, ms in each.items())
    say(f"  {workers} workers, {apis} API: {per_second:.0f} runs/s, {shares} ms a run")
    return sum(each[kind] for kind in OWN)


@asynccontextmanager
async def _fleet(platform: Platform, workers: int, apis: int, state: Path) -> AsyncIterator[_Fleet]:
    """The platform with these total numbers of workers and API processes, until the block ends."""
    pids = {name: platform.pid(name) for name in (*OWN, "temporal")}
    platforms = [platform]
    async with AsyncExitStack() as stack:
        for number in range(1, workers):
            heartbeat = state.with_name(f"heartbeat-{number}")
            process = await stack.enter_async_context(
                _process(platform, state, ["worker"], WORKSPACE_HEARTBEAT_FILE=str(heartbeat))
            )
            pids[f"worker {number}"] = process.pid
            async with asyncio.timeout(READY_SECONDS):
                while not heartbeat.exists():  # another process makes it
                    await asyncio.sleep(0.1)
        for number in range(1, apis):
            port = choose_port(0, None, "--port")
            process = await stack.enter_async_context(
                _process(platform, state, ["api", f"--port={port}"])
            )
            pids[f"api {number}"] = process.pid
            http = await stack.enter_async_context(
                httpx2.AsyncClient(
                    base_url=f"http://127.0.0.1:{port}", headers=platform.http.headers, timeout=60
                )
            )
            await _until_answered(http)
            platforms.append(replace(platform, http=http))
        yield _Fleet(platforms, pids)


@asynccontextmanager
async def _process(
    platform: Platform, state: Path, command: Sequence[str], **further: str
) -> AsyncIterator[asyncio.subprocess.Process]:
    """A further process of the platform, on the same database and Temporal."""
    directory = StateDir(state)
    environment = {
        **os.environ,
        "DATABASE_URL": EmbeddedPostgres(directory).url(),
        "TEMPORAL_ADDRESS": platform.connection["temporalAddress"],
        "WORKSPACE_SECRET_KEY": directory.secret_key(),
        "WORKSPACE_STATE_DIR": str(state),
        "WORKSPACE_CONNECTIONS_PER_ADDRESS": "0",
        **{f"WORKSPACE_RATE_LIMIT_{name}": "0" for name in ("KEY", "RUN_START", "WEBHOOK")},
        **further,
    }
    with state.with_name(f"{command[0]}.log").open("ab") as log:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "cli.main", *command, env=environment, stdout=log, stderr=log
        )
    try:
        yield process
    finally:
        process.terminate()
        await process.wait()


async def _until_answered(http: httpx2.AsyncClient) -> None:
    async with asyncio.timeout(READY_SECONDS):
        while True:
            try:
                (await http.get("/readyz")).raise_for_status()
            except httpx2.HTTPError:
                await asyncio.sleep(0.1)
            else:
                return
