"""The counters of a month: what is settled and what came since are all there is, exactly."""

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import insert

from models.automation.automation_runs.tables import automation_run
from models.people.request_logs import request_log
from models.workspace.usage import UsageCounter, month_of, month_totals, settle_totals
from runtime.ids import new_id
from tests.support.ageing import make_automation, run_row
from tests.support.spaces import Space


async def call(space: Space, at: datetime) -> None:
    row = {
        "id": new_id(),
        "workspace_id": space.id,
        "principal_type": "api_key",
        "principal_id": space.user_id,
        "method": "GET",
        "path": "/v1/items",
        "status": 200,
        "duration_ms": 1.0,
        "created_at": at,
    }
    async with space.database.transaction() as work:
        await work.execute(insert(request_log).values(row))


async def settled(space: Space, at: datetime) -> int:
    """Settle at a moment until nothing is due; the number of turns that did something."""
    turns = 0
    while True:
        async with space.database.transaction() as work:
            work.now = at
            if not await settle_totals(work):
                return turns
        turns += 1


async def counted(space: Space, at: datetime) -> int:
    async with space.database.transaction() as work:
        work.now = at
        return (await month_totals(work, space.id))[UsageCounter.API_CALLS]


NOON = datetime(2031, 3, 15, 12, tzinfo=UTC)
"""In a month of its own: what other tests call is not counted in it."""
MONTH = month_of(NOON)


@pytest.mark.long
async def test_totals_count_each_call_once(space: Space) -> None:
    for at in (
        MONTH - timedelta(microseconds=1),
        MONTH,
        NOON - timedelta(hours=2),
        NOON - timedelta(seconds=1),
    ):
        await call(space, at)
    assert await counted(space, NOON) == 3
    assert await settled(space, NOON) >= 1
    assert await counted(space, NOON) == 3
    assert await settled(space, NOON) == 0, "nothing is due twice within minutes"
    await call(space, NOON)
    later = NOON + timedelta(hours=3)
    await settled(space, later)
    assert await counted(space, later) == 4


@pytest.mark.long
async def test_a_settled_call_still_counts_when_its_log_is_removed(space: Space) -> None:
    await call(space, MONTH)
    await call(space, NOON)
    await settled(space, NOON)
    async with space.database.transaction() as work:
        await work.execute(request_log.delete().where(request_log.c.created_at == MONTH))
    assert await counted(space, NOON) == 2


@pytest.mark.long
async def test_a_total_of_another_month_counts_for_nothing(space: Space) -> None:
    await call(space, NOON)
    await settled(space, NOON)
    after = NOON + timedelta(days=31)
    assert await counted(space, after) == 0
    await call(space, after - timedelta(days=1))
    await settled(space, after)
    assert await counted(space, after) == 1


@pytest.mark.long
async def test_runs_are_counted_too(space: Space) -> None:
    version = await make_automation(space)
    async with space.database.transaction() as work:
        rows = [run_row(space, version, created_at=at) for at in (MONTH, NOON)]
        await work.execute(insert(automation_run), rows)
    await settled(space, NOON)
    async with space.database.transaction() as work:
        work.now = NOON
        assert (await month_totals(work, space.id))[UsageCounter.AUTOMATION_RUNS] == 2
