"""The first page: failures by what they have in common, runs by the hour, data that came in."""

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import insert, update

from api.console.charts import HEIGHT, chart_of
from models.automation.automation_runs.rules import RunStatus
from models.automation.automation_runs.tables import automation_run
from models.automation.run_statistics.queries import EndedRuns, Period, RunStatistics
from models.automation.run_statistics.sums import Grain
from runtime.clock import utc_now
from tests.support.ageing import make_automation, run_row
from tests.support.spaces import Space
from tests.support.visitor import Visitor

HOSTILE = "<img src=x onerror=alert(1)>'\"{{7*7}}"


async def ended(space: Space, version: Any, status: str, **values: Any) -> None:
    at = utc_now() - timedelta(minutes=1)
    row = run_row(space, version, status="running", created_at=at, started_at=at)
    async with space.database.transaction() as work:
        await work.execute(insert(automation_run).values(row))
        await work.execute(
            update(automation_run)
            .where(automation_run.c.id == row["id"])
            .values(status=status, completed_at=utc_now(), **values)
        )


async def test_failures_are_told_by_what_they_have_in_common(space: Space, owner: Visitor) -> None:
    version = await make_automation(space)
    home = f"/workspaces/{space.id}"
    assert "<figure" not in (await owner.get(home)).text
    for _ in range(3):
        await ended(space, version, "failed", error=f"No stock {HOSTILE}")
    await ended(space, version, "failed", error="Something else")
    await ended(space, version, "succeeded")
    page = (await owner.get(home)).text
    failed = page.partition('id="failed"')[2].partition("</section>")[0]
    assert (failed.count("<tr>"), ">3</a>" in failed) == (3, True)
    assert "No stock &lt;img" in failed
    chart = page.partition("<figure")[2].partition("</figure>")[0]
    assert "5 runs: 1 succeeded, 4 failed" in chart
    statistics = (await owner.get(f"{home}/runs/statistics")).text
    assert "5 runs: 1 succeeded, 4 failed" in statistics
    assert '<td class="tight">Run</td>' in statistics
    by_day = await owner.get(f"{home}/runs/statistics?by=day")
    assert "By day" in by_day.text
    assert (await owner.get(f"{home}/runs/statistics?by=week")).status_code == 400


@pytest.mark.parametrize(
    "outcomes",
    [
        {"succeeded": 10_000, "failed": 1, "cancelled": 1, "timed_out": 1},
        {"succeeded": 1},
        {"failed": 3, "succeeded": 3},
        {},
    ],
)
def test_bars_fill_their_column_and_show_each_outcome(outcomes: dict[str, int]) -> None:
    counts = {RunStatus(name): number for name, number in outcomes.items()}
    runs = sum(counts.values())
    total = EndedRuns(runs=runs, outcomes=counts, duration=None, queueing=None)
    period = Period(start=utc_now(), runs=runs, outcomes=counts, duration=None, queueing=None)
    statistics = RunStatistics(
        by=Grain.HOUR,
        since=period.start,
        until=period.start,
        total=total,
        periods=[period],
        failing_nodes=[],
        busiest_keys=[],
    )
    (column,) = chart_of(statistics).columns
    assert {bar.status for bar in column.bars} == set(counts)
    assert sum(bar.height for bar in column.bars) == pytest.approx(HEIGHT if runs else 0, abs=8)
    assert all(bar.height >= 2 and 0 <= bar.y <= HEIGHT for bar in column.bars)
