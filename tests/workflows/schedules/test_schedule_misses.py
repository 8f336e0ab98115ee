"""Due times that pass while the server is away: caught up within the window, else missed."""

import asyncio
import signal
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import psutil
import pytest
import pytest_asyncio

from runtime.database import Database
from tests.support.engine import Engine, running_engine
from tests.support.postgres import migrated_database
from tests.support.run_rows import runs_of
from tests.support.schedules import described, scheduled, soon, until_runs, until_schedule
from tests.support.temporal import dev_server

pytestmark = [pytest.mark.takes(seconds=30), pytest.mark.long]

LATE_SECONDS = 13
"""Longer than the shortest window Temporal knows, which is ten seconds."""


@pytest_asyncio.fixture
async def alone() -> AsyncIterator[tuple[Engine, psutil.Process]]:
    """An engine with a server of its own, and the process of that server."""
    before = set(psutil.Process().children())
    async with dev_server() as environment:
        [server] = set(psutil.Process().children()) - before
        with migrated_database("misses") as url:
            database = Database(url)
            async with running_engine(database, url, environment.client) as engine:
                yield engine, server
            await database.close()


async def test_a_server_that_comes_back_catches_up(
    alone: tuple[Engine, psutil.Process],
) -> None:
    engine, server = alone
    due = soon(datetime.now(UTC), 8)
    timing: dict[str, Any] = {"intervalSeconds": 3_600, "startAt": due.isoformat()}
    patient = await scheduled(engine, **timing)
    strict = await scheduled(engine, **timing, catchupWindowSeconds=0)
    assert datetime.now(UTC) < due
    server.send_signal(signal.SIGSTOP)
    try:
        await asyncio.sleep((due - datetime.now(UTC)).total_seconds() + LATE_SECONDS)
    finally:
        server.send_signal(signal.SIGCONT)
    [run] = await until_runs(engine, patient.id, "succeeded")
    assert run.trigger_payload["scheduledAt"] == f"{due:%Y-%m-%dT%H:%M:%S}.000Z"
    assert (run.created_at - due).total_seconds() > LATE_SECONDS - 1
    # Temporal may count a due time twice, when it repeats the look that found it.
    await until_schedule(
        engine, strict.id, lambda found: found.info.num_actions_missed_catchup_window >= 1
    )
    assert await runs_of(engine, strict.id) == []
    found = await described(engine.client, patient.id)
    assert found is not None
    assert (found.info.num_actions, found.info.num_actions_missed_catchup_window) == (1, 0)
