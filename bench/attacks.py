"""Attacks: what requests of another workspace feel of expressions that are made to take long."""

import asyncio
import time

from bench.fairness import another_workspace
from bench.figures import Figure, quantile
from bench.graphs import ONE_QUICK
from bench.platform import Platform
from bench.rounds import Rounds

AT_ONCE = 20
"""Concurrent attacks, half of them requests and half of them runs."""
SECONDS = 5.0
PAUSE = 0.02
_CROWDED = 429

GROWING = "'a'" + ".replace('a','aaaaaaaaaa')" * 9
"""Takes all the processor time that one evaluation may."""


async def attacked(platform: Platform, rounds: Rounds) -> list[Figure]:
    """Reads and writes, and runs, of a quiet workspace alone and beside attacks."""
    figures = {
        "request": Figure(f"requests beside {AT_ONCE} attacks, p95", "ms", at_most=1.5),
        "run": Figure(f"runs beside {AT_ONCE} attacks, p95", "ms", at_most=3.0),
    }
    attack = await platform.publish("Attack", _computing(GROWING))
    databases = [await _database(platform, f"Attacked {one}") for one in range(AT_ONCE // 2)]
    async with another_workspace(platform) as quiet:
        calm = await quiet.publish("Quiet", ONE_QUICK)
        await quiet.run_one(calm)
        table = await _database(quiet, "Quiet")
        for _ in rounds:
            alone = await _measured(quiet, calm, table)
            attacks = [
                *(asyncio.create_task(_save_formulas(platform, one)) for one in databases),
                *(asyncio.create_task(_run(platform, attack)) for _ in databases),
            ]
            beside = await _measured(quiet, calm, table)
            for task in attacks:
                task.cancel()
            await asyncio.gather(*attacks, return_exceptions=True)
            await _cancel_runs(platform)
            for kind, figure in figures.items():
                figure.add(*(quantile(times[kind], 0.95) * 1000 for times in (beside, alone)))
                figure.tail(beside[kind], alone[kind])
    return list(figures.values())


def _computing(expression: str) -> dict[str, object]:
    output = {"x": {"type": "expression", "value": expression}}
    return {"nodes": [{"id": "n", "kind": "transform", "config": {"output": output}}], "edges": []}


async def _database(platform: Platform, label: str) -> str:
    space = f"/v1/workspaces/{platform.connection['workspaceId']}"
    return str((await platform.post(f"{space}/databases", {"label": label}))["id"])


async def _save_formulas(platform: Platform, database_id: str) -> None:
    settings = {"expression": GROWING, "resultKind": "text"}
    field = {"label": "Attack", "kind": "formula", "settings": settings}
    while True:
        refused = await platform.http.post(f"/v1/databases/{database_id}/fields", json=field)
        assert refused.status_code in {400, 429, 503}, refused.text
        await asyncio.sleep(PAUSE)


async def _run(platform: Platform, automation_id: str) -> None:
    query = "SELECT status FROM automation_run WHERE id = %s"
    while True:
        run_id, status = await platform.start(automation_id), "queued"
        while status in {"queued", "running"}:
            await asyncio.sleep(0.2)
            row = await (await platform.database.execute(query, [run_id])).fetchone()
            assert row is not None
            status = row[0]


async def _cancel_runs(platform: Platform) -> None:
    """End the runs, once the running evaluations leave the attacker a place."""
    place = f"/v1/workspaces/{platform.connection['workspaceId']}/automation-runs/cancel"
    while (answer := await platform.http.post(place, json={})).status_code == _CROWDED:
        await asyncio.sleep(PAUSE)
    answer.raise_for_status()
    await platform.settled()


async def _measured(quiet: Platform, automation_id: str, table: str) -> dict[str, list[float]]:
    """Seconds of each request and of each run over this time."""
    times: dict[str, list[float]] = {"request": [], "run": []}
    ends = time.perf_counter() + SECONDS

    async def requests() -> None:
        records = f"/v1/databases/{table}/records"
        while time.perf_counter() < ends:
            started = time.perf_counter()
            await quiet.post(records, {"title": "Calm"})
            (await quiet.http.get(records)).raise_for_status()
            times["request"].append((time.perf_counter() - started) / 2)
            await asyncio.sleep(PAUSE)

    async def runs() -> None:
        while time.perf_counter() < ends:
            started = time.perf_counter()
            await quiet.run_one(automation_id)
            times["run"].append(time.perf_counter() - started)
            await asyncio.sleep(5 * PAUSE)

    await asyncio.gather(requests(), runs())
    return times
