"""A hundred thousand queued runs under a pause: each operation reads only the rows it concerns."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any
from uuid import UUID

import psycopg
import pytest
from sqlalchemy import func, select, text

from models.automation.run_operations.rules import SELECTED_AT_ONCE
from models.core.pauses import store
from models.core.pauses.intents import resting_intent
from models.core.pauses.rules import CHUNK, PauseCause
from models.core.pauses.store import MOST_COUNTED, release_oldest
from runtime.configuration.settings import Settings
from runtime.database import libpq_url
from runtime.temporal.outbox import outbox
from tests.support.automations import path_of, publish, read
from tests.support.client import Client
from tests.support.pauses import attend_once
from tests.support.plans import forget_rows, recorded_statements, rows_read
from tests.support.run_operations import step
from tests.support.spaces import Space

pytestmark = pytest.mark.takes(seconds=90)

Json = dict[str, Any]

RUNS = 100_000
MOST = 20 * CHUNK
"""Rows that a statement may look at: some chunks, and never all that rest."""
MANY_RUNS = """
INSERT INTO automation_run SELECT made.* FROM automation_run AS one, generate_series(1, :runs) n,
    jsonb_populate_record(one, jsonb_build_object('id', uuidv7(),
        'created_at', one.created_at + n * interval '1 microsecond')) AS made
WHERE one.id = :id
"""
MANY_RESTING = """
INSERT INTO resting_intent SELECT made.* FROM resting_intent AS one, automation_run AS run,
    jsonb_populate_record(one, jsonb_build_object('work_id', run.id,
        'accepted_at', run.created_at)) AS made
WHERE one.work_id = :id AND run.automation_id = :automation_id AND run.id <> :id
"""


@pytest.fixture
async def paused(client: Client, space: Space, settings: Settings) -> AsyncIterator[Json]:
    """A paused automation under which many runs rest."""
    made = await publish(client, space)
    read(await client.post(f"{path_of(made)}/pause", json={}))
    first = read(await client.post(f"{path_of(made)}/run", json={}))["id"]
    values = {"id": UUID(first), "automation_id": UUID(made["id"]), "runs": RUNS}
    async with space.database.transaction() as work:
        await work.execute(text(MANY_RUNS), values)
        await work.execute(text("ANALYZE automation_run"))
        await work.execute(text(MANY_RESTING), values)
        for table in ("automation_run", "resting_intent", "outbox"):
            await work.execute(text(f"ANALYZE {table}"))
    yield made
    left = ("resting_intent", "outbox", "node_run", "automation_run", "workspace_event")
    url = libpq_url(settings.database_url.get_secret_value())
    await forget_rows(url, "workspace_id = %s", space.id, left)


@pytest.fixture
async def looked(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Callable[[Callable[[], Awaitable[Any]]], Awaitable[float]]]:
    """Do something, and tell the most rows that one of its statements looks at."""
    url = libpq_url(settings.database_url.get_secret_value())
    async with await psycopg.AsyncConnection.connect(url) as connection:

        async def look(step: Callable[[], Awaitable[Any]]) -> float:
            with recorded_statements(monkeypatch, writes=True) as statements:
                await step()
            rows = []
            for one in statements:
                rows.append(await rows_read(connection, one))
                # A statement that writes was executed once more.
                await connection.rollback()
            assert rows
            return max(rows)

        yield look


async def resting_of(space: Space) -> int:
    async with space.database.reading() as work:
        mine = select(func.count()).where(resting_intent.c.workspace_id == space.id)
        return int(await work.scalar(mine))


@pytest.mark.long
async def test_paused_runs_are_listed_cancelled_and_released_in_parts(
    client: Client, space: Space, paused: Json, looked: Any
) -> None:
    path = path_of(paused)
    assert await resting_of(space) == RUNS + 1
    runs = read(await client.get(f"{path}/runs"))["runs"]
    assert {one["metadata"]["waitingFor"]["kind"] for one in runs} == {"paused"}
    for listed in (f"{path}/runs", f"{space.path}/automation-runs?status=queued"):
        assert await looked(lambda listed=listed: client.get(listed)) < MOST
    assert await looked(lambda: client.get(f"{path}/pause")) < 1.1 * MOST_COUNTED
    one = f"{path}/runs/{runs[0]['id']}"
    assert await looked(lambda: client.get(one)) < MOST
    assert await looked(lambda: client.post(f"{one}/cancel")) < MOST
    assert await resting_of(space) == RUNS

    wanted = {"action": "cancel", "filter": {"automationId": paused["id"], "status": "queued"}}
    operation = read(await client.post(f"{space.path}/run-operations", json=wanted), 202)
    treated = lambda: step(space.database, operation["id"])  # noqa: E731
    for _ in range(RUNS // SELECTED_AT_ONCE):
        # The runs that are selected, and their places in the operation.
        assert await looked(treated) < 2.1 * SELECTED_AT_ONCE
    async with space.database.transaction() as work:
        await work.execute(text("ANALYZE run_operation_result"))
    while await resting_of(space) > RUNS - 2 * CHUNK:
        assert await looked(treated) < MOST
    after = await resting_of(space)
    assert after == RUNS - 2 * CHUNK

    read(await client.post(f"{path}/resume", json={}))
    attended = lambda: attend_once(space.database, paused["id"])  # noqa: E731
    assert await looked(attended) < MOST
    assert await resting_of(space) == after - CHUNK
    read(await client.post(f"{path}/pause", json={}))
    assert await looked(attended) < MOST


@pytest.mark.long
async def test_a_trial_of_a_breaker_takes_the_oldest_alone(
    space: Space, paused: Json, looked: Any
) -> None:
    async def let_one_go() -> None:
        async with space.database.transaction() as work:
            person = PauseCause.PERSON
            assert await release_oldest(work, UUID(paused["id"]), person) is not None

    assert await looked(let_one_go) < MOST
    assert await resting_of(space) == RUNS


@pytest.mark.long
async def test_a_release_waits_for_room_in_the_line_of_the_workspace(
    client: Client, space: Space, paused: Json, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "MOST_WAITING_STARTS", 2 * CHUNK)
    read(await client.post(f"{path_of(paused)}/resume", json={}))
    for _ in range(5):
        await attend_once(space.database, paused["id"])
    async with space.database.reading() as work:
        mine = select(func.count()).where(outbox.c.workspace_id == space.id)
        assert await work.scalar(mine) == 2 * CHUNK
    assert await resting_of(space) == RUNS + 1 - 2 * CHUNK
