"""Deliveries to a webhook endpoint, against bare workflows of one activity each."""

import asyncio

from temporalio.client import Client

from bench.endpoint import endpoint
from bench.figures import Figure
from bench.floor_workflows import OneActivity, run_all
from bench.platform import Platform
from bench.rounds import Rounds
from bench.runs import IN_FLIGHT, in_parallel, rate

_PENDING = "SELECT count(*) FROM delivery WHERE status = 'pending'"


async def delivery_rate(platform: Platform, client: Client, rounds: Rounds, count: int) -> Figure:
    """Signed calls a second that arrive, each a durable delivery of its own."""
    figure = Figure("webhook delivered vs one regular activity", "1/s", at_least=0.5)
    place = f"/v1/workspaces/{platform.connection['workspaceId']}/webhook-endpoints"
    async with endpoint() as url:
        made = await platform.post(place, {"url": url, "eventTypes": ["workspace.deleted"]})

        async def send() -> None:
            await platform.post(f"{place}/{made['id']}/test", {})

        async def arrived() -> None:
            while await _pending(platform):
                await asyncio.sleep(0.02)

        await in_parallel(IN_FLIGHT, send)
        await run_all(client, OneActivity, IN_FLIGHT, IN_FLIGHT)
        await arrived()
        for _ in rounds:
            with platform.paused_worker():
                await in_parallel(count, send)
            ours = await rate(count, arrived)
            theirs = await rate(count, lambda: run_all(client, OneActivity, count, IN_FLIGHT))
            figure.add(ours, theirs)
    await platform.http.delete(f"{place}/{made['id']}")
    return figure


async def _pending(platform: Platform) -> int:
    row = await (await platform.database.execute(_PENDING)).fetchone()
    assert row is not None
    return int(row[0])
