"""Statistics of runs by the API: what ended in which hour, and how."""

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import insert, update

from models.automation.automation_runs.tables import automation_run
from runtime.clock import utc_now
from tests.support.ageing import make_automation, run_row
from tests.support.client import Client
from tests.support.items import read
from tests.support.spaces import Space


async def ended(space: Space, version: Any, status: str, ago: timedelta, took: timedelta) -> None:
    end = utc_now() - ago
    times = {"created_at": end - took, "started_at": end - took}
    row = run_row(space, version, status="running", **times)
    async with space.database.transaction() as work:
        await work.execute(insert(automation_run).values(row))
        await work.execute(
            update(automation_run)
            .where(automation_run.c.id == row["id"])
            .values(status=status, completed_at=end)
        )


async def test_runs_are_counted_by_outcome_and_period(client: Client, space: Space) -> None:
    version, other = await make_automation(space), await make_automation(space)
    second, day = timedelta(seconds=1), timedelta(days=1)
    await ended(space, version, "succeeded", second, 2 * second)
    await ended(space, version, "failed", second, second)
    await ended(space, version, "succeeded", 2 * day, second)
    await ended(space, other, "cancelled", second, second)
    path = f"{space.path}/automation-runs/statistics"
    hours = read(await client.get(path))
    assert hours["total"]["outcomes"] == {
        "succeeded": 1,
        "failed": 1,
        "cancelled": 1,
        "timed_out": 0,
    }
    assert (hours["by"], len(hours["periods"]), hours["total"]["runs"]) == ("hour", 24, 3)
    assert hours["total"]["duration"]["p99"] == pytest.approx(2_000, rel=0.06)
    assert hours["failingNodes"] == [{"automationId": str(version.automation_id), "runs": 1}]
    days = read(await client.get(path, params={"by": "day"}))
    assert (len(days["periods"]), days["total"]["runs"]) == (30, 4)
    own = f"{space.path}/automations/{version.automation_id}/runs/statistics"
    assert read(await client.get(own, params={"by": "day"}))["total"]["runs"] == 3
    chosen = {"by": "day", "automationId": str(other.automation_id)}
    assert read(await client.get(path, params=chosen))["total"]["outcomes"]["cancelled"] == 1


async def test_bad_periods_and_foreign_automations_are_refused(
    client: Client, space: Space, foreign: Space
) -> None:
    path = f"{space.path}/automation-runs/statistics"
    theirs = await make_automation(foreign)
    for status, query in (
        (400, {"by": "week"}),
        (400, {"since": "yesterday"}),
        (400, {"since": "2026-05-02T00:00:00Z", "until": "2026-05-01T00:00:00Z"}),
        (400, {"since": "2020-05-02T00:00:00Z"}),
        (404, {"automationId": str(theirs.automation_id)}),
    ):
        assert (await client.get(path, params=query)).status_code == status, query
    own = f"{space.path}/automations/{theirs.automation_id}/runs/statistics"
    assert (await client.get(own)).status_code == 404
