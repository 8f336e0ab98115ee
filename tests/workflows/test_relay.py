"""Which rows of the outbox a relay takes next (design section 1)."""

import os
import uuid
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, cast

import pytest
import pytest_asyncio
from sqlalchemy import delete, insert, select
from temporalio.client import Client

from activities.relay import Relay
from models.automation_runs.tables import automation_run
from models.automations.commands import create_automation
from models.automations.shapes import CreateAutomation
from runtime.database import Database
from runtime.families import Family
from runtime.ids import new_id
from runtime.outbox import Intent, append, outbox
from tests.support.engine import KEYS, graph, node
from tests.support.postgres import migrated_database
from tests.support.spaces import Space, make_space


@pytest.fixture(scope="module")
def quiet_url() -> Iterator[str]:
    """A database that no running relay watches."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", uuid.uuid4().hex)
    worker = os.environ.get("PYTEST_XDIST_WORKER", "solo")
    with migrated_database(run, f"{worker}_relay") as url:
        yield url


@pytest_asyncio.fixture
async def quiet(quiet_url: str) -> AsyncIterator[Database]:
    database = Database(quiet_url)
    async with database.transaction() as work:
        await work.execute(delete(outbox))
    yield database
    await database.close()


def relay(database: Database, running_cap: int = 100) -> Relay:
    """A relay that only claims: it never gets as far as asking Temporal."""
    return Relay(database, cast("Client", None), {}, running_cap=running_cap)


async def intend(
    database: Database, workspace_id: uuid.UUID, intent: Intent, count: int
) -> Sequence[uuid.UUID]:
    subjects = [new_id() for _ in range(count)]
    async with database.transaction() as work:
        for subject in subjects:
            await append(
                work,
                intent=intent,
                family=Family.AUTOMATION_RUN,
                workspace_id=workspace_id,
                subject_id=subject,
            )
    return subjects


async def claimed(relay: Relay, limit: int) -> list[Any]:
    return sorted(await relay._claim(limit), key=lambda row: row.id)


async def test_a_small_workspace_does_not_wait_behind_a_large_one(quiet: Database) -> None:
    large, small = new_id(), new_id()
    await intend(quiet, large, Intent.START, 50)
    late = await intend(quiet, small, Intent.START, 3)
    rows = await claimed(relay(quiet), 6)
    assert [row.subject_id for row in rows if row.workspace_id == small] == late
    assert sum(row.workspace_id == large for row in rows) == 3


async def test_the_order_inside_a_workspace_is_kept(quiet: Database) -> None:
    workspace_id = new_id()
    wanted = await intend(quiet, workspace_id, Intent.START, 10)
    taker = relay(quiet)
    first = [row.subject_id for row in await claimed(taker, 4)]
    assert first == wanted[:4]
    assert [row.subject_id for row in await claimed(taker, 4)] == wanted[4:8]


async def test_a_cancel_goes_before_starts(quiet: Database) -> None:
    workspace_id = new_id()
    await intend(quiet, workspace_id, Intent.START, 5)
    (cancelled,) = await intend(quiet, workspace_id, Intent.CANCEL, 1)
    assert [row.subject_id for row in await claimed(relay(quiet), 1)] == [cancelled]


async def test_a_claimed_row_is_nobody_elses_until_its_claim_runs_out(quiet: Database) -> None:
    await intend(quiet, new_id(), Intent.START, 1)
    assert len(await claimed(relay(quiet), 5)) == 1
    assert await claimed(relay(quiet), 5) == []


async def test_a_workspace_at_its_cap_starts_nothing_but_is_cancelled(quiet: Database) -> None:
    space = await make_space(quiet, KEYS)
    await running(quiet, space, 2)
    await intend(quiet, space.id, Intent.START, 3)
    (cancelled,) = await intend(quiet, space.id, Intent.CANCEL, 1)
    (other,) = await intend(quiet, new_id(), Intent.START, 1)
    taken = {row.subject_id for row in await claimed(relay(quiet, running_cap=2), 10)}
    assert taken == {cancelled, other}


async def test_what_was_delivered_is_deleted_with_the_next_claim(quiet: Database) -> None:
    await intend(quiet, new_id(), Intent.START, 2)
    taker = relay(quiet)
    first, second = await claimed(taker, 2)
    taker._delivered.append(first.id)
    await claimed(taker, 2)
    async with quiet.transaction() as work:
        assert await work.scalar(select(outbox.c.id)) == second.id


async def running(database: Database, space: Space, count: int) -> None:
    """Rows of runs that are running."""
    body = CreateAutomation.model_validate({"label": "Busy", "graph": graph(node("a", "join"))})
    async with database.transaction() as work:
        automation = await create_automation(work, space.actor, KEYS, body)
        for _ in range(count):
            await work.execute(
                insert(automation_run).values(
                    id=new_id(),
                    workspace_id=space.id,
                    automation_id=automation.id,
                    automation_version_id=automation.version_id,
                    graph_checksum="",
                    status="running",
                    source="manual",
                    trigger_payload={},
                    options={},
                    created_at=work.now,
                    started_at=work.now,
                )
            )
