"""Classes of starts: how long what triggers start waits beside a long line of manual runs."""

import asyncio
from typing import Any

from bench.figures import Figure, quantile
from bench.graphs import ONE_QUICK, THREE_QUICK
from bench.platform import Platform
from bench.rounds import Rounds
from bench.webhooks import call_hook, publish_hook

QUEUED = 400
"""Manual runs that are queued at the start; as many more follow while they are drained."""
AT_ONCE = 20
PAUSE = 0.1
"""Seconds between two turns of a record, a webhook and a run that fails."""

FAILING = {"nodes": [{"id": "no", "kind": "stop", "config": {"result": "failed"}}], "edges": []}
SOURCES = ("record", "webhook", "failure")


async def class_waits(platform: Platform, rounds: Rounds) -> list[Figure]:
    """Medians from accepted to begun, by source, against that of manual runs."""
    figures = {
        source: Figure(f"{source} runs beside {QUEUED} manual ones, wait", "ms", at_most=2.0)
        for source in SOURCES
    }
    busy = await platform.publish("Busy", THREE_QUICK)
    turn = await _turns(platform)
    for _ in rounds:
        row = await (await platform.database.execute("SELECT now()")).fetchone()
        assert row is not None
        with platform.paused_worker():
            await platform.accept_all(busy, QUEUED, AT_ONCE)
        over = asyncio.Event()
        others = asyncio.create_task(_every(PAUSE, turn, over))
        await platform.accept_all(busy, QUEUED, AT_ONCE // 4)
        over.set()
        await others
        await platform.settled()
        waits = await _waits(platform, row[0])
        manual = waits["manual"]
        for source, figure in figures.items():
            figure.add(quantile(waits[source], 0.5) * 1000, quantile(manual, 0.5) * 1000)
            figure.tail(waits[source], manual)
    return list(figures.values())


async def _turns(platform: Platform) -> Any:
    """What makes one run of every source, called again and again."""
    space = f"/v1/workspaces/{platform.connection['workspaceId']}"
    database = await platform.post(f"{space}/databases", {"label": "Watched"})
    watched = {"kind": "record_created", "databaseId": database["id"]}
    await platform.publish("On record", ONE_QUICK, watched)
    handler = await platform.publish("On failure", ONE_QUICK)
    failing = await platform.publish("Fails", {**FAILING, "failureAutomationId": handler})
    hook = await publish_hook(platform)

    async def turn() -> None:
        records = f"/v1/databases/{database['id']}/records"
        await platform.post(records, {"title": "Seen"})
        (await call_hook(platform, hook)).raise_for_status()
        await platform.start(failing)

    return turn


async def _every(pause: float, turn: Any, over: asyncio.Event) -> None:
    while not over.is_set():
        await turn()
        await asyncio.sleep(pause)


async def _waits(platform: Platform, since: Any) -> dict[str, list[float]]:
    """Seconds from accepted to begun of the runs accepted since then, by source."""
    query = (
        "SELECT source, extract(epoch FROM started_at - created_at)::float8"
        " FROM automation_run WHERE created_at >= %s AND started_at IS NOT NULL"
    )
    waits: dict[str, list[float]] = {}
    for source, seconds in await (await platform.database.execute(query, [since])).fetchall():
        waits.setdefault(source, []).append(seconds)
    return waits
