"""Very many runs that are open at once: all of them wait for one event, then all of them end."""

import asyncio
import time
from typing import Any

from rich.console import Console

from bench.figures import Figure
from bench.platform import Platform

IN_FLIGHT = 20
GRAPH: dict[str, Any] = {
    "nodes": [
        {"id": "wait", "kind": "wait_event", "config": {"eventKey": "bench-go"}},
        {"id": "after", "kind": "transform", "config": {"output": {"ok": True}}},
    ],
    "edges": [{"from": "wait", "to": "after"}],
}


async def concurrent_runs(platform: Platform, count: int) -> list[Figure]:
    """`count` runs wait at the same time and all end; seconds of each phase, no floor."""
    automation = await platform.publish("Concurrent", GRAPH)
    started = time.perf_counter()
    await platform.accept_all(automation, count, IN_FLIGHT)
    await _counted(platform, automation, "waiting", count)
    waiting = time.perf_counter()
    events = platform.automations.replace("automations", "automation-events")
    answer = await platform.post(events, {"eventKey": "bench-go", "data": {}})
    await _counted(platform, automation, "succeeded", count)
    ended = time.perf_counter()
    Console().print(
        f"{count} runs: all waiting after {waiting - started:.0f} s, one event resumed"
        f" {answer['resumed']}, all succeeded {ended - waiting:.0f} s later"
    )
    return []


async def _counted(platform: Platform, automation: str, status: str, count: int) -> None:
    query = "SELECT count(*) FROM automation_run WHERE automation_id = %s AND status = %s"
    async with asyncio.timeout(1_800):
        while True:
            row = await (await platform.database.execute(query, [automation, status])).fetchone()
            assert row is not None
            if row[0] == count:
                return
            await asyncio.sleep(0.5)
