"""Fairness: what a workspace feels of the backlog of another, and what the backlog pays for it."""

import asyncio
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import httpx2

from bench.figures import Figure, quantile
from bench.graphs import THREE_QUICK
from bench.platform import Platform
from bench.rounds import Rounds

QUEUED = 1_000
AT_ONCE = 20
PAUSE = 0.1
"""Seconds between the runs of the quiet workspace."""
ALONE = 8.0
"""Seconds for which the quiet workspace is measured alone."""


async def fairness(platform: Platform, rounds: Rounds) -> list[Figure]:
    """A quiet workspace alone and beside 1,000 queued runs, and their rate."""
    latency = Figure(f"quiet workspace beside {QUEUED} queued runs, p95", "ms", at_most=2.0)
    drain = Figure(f"{QUEUED} queued runs beside a quiet workspace", "1/s", at_least=0.85)
    every = Figure("the same, with the runs of the quiet workspace", "1/s", at_least=0.85)
    noisy = await platform.publish("Noisy", THREE_QUICK)
    async with another_workspace(platform) as quiet:
        calm = await quiet.publish("Quiet", THREE_QUICK)
        await quiet.run_one(calm)
        for _ in rounds:
            alone, _ = await measured(quiet, calm, asyncio.sleep(ALONE, 1.0))
            await _queue_up(platform, noisy)
            undisturbed = await _drained(platform, noisy)
            await _queue_up(platform, noisy)
            beside, disturbed = await measured(quiet, calm, _drained(platform, noisy))
            drain.add(disturbed, undisturbed)
            # They take processors from the backlog, and so does looking for their ends.
            every.add(disturbed * (QUEUED + len(beside)) / QUEUED, undisturbed)
            latency.add(quantile(beside, 0.95) * 1000, quantile(alone, 0.95) * 1000)
            latency.tail(beside, alone)
    return [latency, drain, every]


async def measured(
    quiet: Platform, automation_id: str, meanwhile: Coroutine[Any, Any, float]
) -> tuple[list[float], float]:
    """Seconds of the quiet workspace's runs beside other work, and the result of that work."""
    over = asyncio.Event()
    seconds: list[float] = []
    running = asyncio.create_task(_keep_running(quiet, automation_id, seconds, over))
    given = await meanwhile
    over.set()
    await running
    return seconds, given


async def _keep_running(
    quiet: Platform, automation_id: str, seconds: list[float], over: asyncio.Event
) -> None:
    """Measure one run after the other until `over`."""
    while not over.is_set():
        started = time.perf_counter()
        await quiet.run_one(automation_id)
        seconds.append(time.perf_counter() - started)
        await asyncio.sleep(PAUSE)


async def _queue_up(platform: Platform, automation_id: str) -> None:
    """A backlog, as a worker finds it that comes back."""
    with platform.paused_worker():
        await platform.accept_all(automation_id, QUEUED, AT_ONCE)


async def _drained(platform: Platform, automation_id: str) -> float:
    """Runs a second from a backlog until the last of them has ended."""
    started = time.perf_counter()
    query = (
        "SELECT count(*) FROM automation_run"
        " WHERE automation_id = %s AND status IN ('queued', 'running')"
    )
    while True:
        row = await (await platform.database.execute(query, [automation_id])).fetchone()
        if row == (0,):
            return QUEUED / (time.perf_counter() - started)
        await asyncio.sleep(0.05)


@asynccontextmanager
async def another_workspace(platform: Platform) -> AsyncIterator[Platform]:
    """The platform as a client of another workspace sees it."""
    headers = {"Authorization": f"Bearer {platform.connection['sessionToken']}"}
    base_url = platform.connection["baseUrl"]
    async with httpx2.AsyncClient(base_url=base_url, headers=headers, timeout=60) as http:
        response = await http.post("/v1/workspaces", json={"name": "Quiet"})
        response.raise_for_status()
        workspace_id = response.json()["data"]["workspace"]["id"]
        yield replace(
            platform,
            http=http,
            connection={**platform.connection, "workspaceId": workspace_id},
        )
