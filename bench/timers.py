"""Starting timers, against committed INSERTs; and how late timers end that are due together."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2

from bench.figures import Figure, quantile
from bench.platform import Platform
from bench.rounds import Rounds

DUE = 1_000
"""Timers that are due within a minute, each of a user of its own."""
LATEST_MS = 2_000
"""How late the 99th of a hundred may be."""

_DUE_TIMERS = """
WITH person AS (
    INSERT INTO app_user (id, issuer, subject, created_at, updated_at)
    SELECT gen_random_uuid(), 'bench', gen_random_uuid()::text, now(), now()
    FROM generate_series(1, %(count)s) RETURNING id
), member AS (
    INSERT INTO workspace_member (workspace_id, user_id, role, created_at)
    SELECT %(workspace)s, id, 'editor', now() FROM person RETURNING user_id
), entry AS (
    INSERT INTO time_entry (id, workspace_id, user_id, target_kind, target_id, source, mode, status,
        started_at, due_at, accumulated_paused_ms, target_duration_ms, sound_id,
        created_by_user_id, updated_by_user_id, created_at, updated_at)
    SELECT gen_random_uuid(), %(workspace)s, user_id, 'workspace', %(workspace)s, 'timer',
        'countdown', 'active', date_trunc('milliseconds', now()),
        date_trunc('milliseconds', now()) + ms * interval '1 ms', 0, ms, 'none',
        user_id, user_id, now(), now()
    FROM (SELECT user_id, (60 * (1 + random()))::numeric(10, 3) * 1000 AS ms FROM member) AS each
    RETURNING id
)
INSERT INTO outbox (workspace_id, intent, workflow_kind, subject_id, request, created_at, attempts)
SELECT %(workspace)s, 'start', 'timer-due', id,
    jsonb_build_object('summary', 'Bench', 'resourceId', id::text), now(), 0
FROM entry
"""
_LATENESS = """
SELECT extract(epoch FROM closed_at - due_at_was) * 1000
FROM (SELECT closed_at, started_at + target_duration_ms * interval '1 ms' AS due_at_was
      FROM time_entry WHERE mode = 'countdown' AND status = 'completed') AS each
"""


async def timer_starts(
    platform: Platform, floor: httpx2.AsyncClient, rounds: Rounds, count: int
) -> Figure:
    """Timers that one person starts a second, one after the other; ending them is not measured."""
    figure = Figure("timer started vs committed INSERT", "1/s", at_least=0.5)
    path = f"/v1/workspaces/{platform.connection['workspaceId']}/time-entries"
    body = {"targetKind": "workspace", "summary": "Some words"}

    async def ours() -> httpx2.Response:
        return await platform.http.post(path, json=body)

    async def end(answer: httpx2.Response) -> None:
        entry = answer.json()["data"]["entry"]
        ended = await platform.http.patch(f"{path}/{entry['id']}", json={"action": "complete"})
        ended.raise_for_status()

    async def theirs() -> httpx2.Response:
        return await floor.post("/rows", json={"body": body})

    for _ in rounds:
        spent, least = 0.0, 0.0
        # In turns, so that other work, and the consequences of an end, affect both.
        for _ in range(count):
            seconds, answer = await _timed(ours)
            spent += seconds
            least += (await _timed(theirs))[0]
            await end(answer)
        figure.add(count / spent, count / least)
    return figure


async def _timed(call: Callable[[], Awaitable[httpx2.Response]]) -> tuple[float, httpx2.Response]:
    """The seconds of a call, and its answer."""
    started = time.perf_counter()
    answer = await call()
    seconds = time.perf_counter() - started
    answer.raise_for_status()
    return seconds, answer


async def due_timers(platform: Platform) -> Figure:
    """How late the timers of many people end that are due in one minute. None may end early."""
    figure = Figure(f"{DUE} timers due in a minute, p99 late vs 2 s", "ms", at_most=1.0)
    workspace = platform.connection["workspaceId"]
    await platform.database.execute(_DUE_TIMERS, {"workspace": workspace, "count": DUE})
    lateness: list[Any] = []
    while len(lateness) < DUE:
        await asyncio.sleep(2)
        rows = await (await platform.database.execute(_LATENESS)).fetchall()
        lateness = [float(row[0]) for row in rows]
    assert min(lateness) >= 0, f"a timer ended {-min(lateness)} ms early"
    figure.add(quantile(lateness, 0.99), LATEST_MS)
    figure.tails = f"max {max(lateness):.0f} ms, min {min(lateness):.0f} ms"
    return figure
