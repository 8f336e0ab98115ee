"""Statistics of runs are exact: they agree with a recount of the rows, settled or not."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from math import ceil
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import insert, select, update

from models.automation.automation_runs.rules import RunStatus
from models.automation.automation_runs.tables import automation_run, node_run
from models.automation.run_statistics import (
    NEVER,
    Grain,
    RunStatistics,
    Span,
    ended_run,
    get_statistics,
    milliseconds,
    percentile,
    purge_sums,
    run_statistic,
    settle_runs,
    span,
)
from models.core.access.rules import Actor
from models.core.base import Id
from runtime.errors import ValidationError
from runtime.ids import new_id
from tests.support.ageing import make_automation, run_row
from tests.support.spaces import Space

NOON = datetime(2026, 5, 17, 12, tzinfo=UTC)
ENDS = [RunStatus.SUCCEEDED, RunStatus.FAILED, RunStatus.CANCELLED, RunStatus.TIMED_OUT]
DAYS = Span(Grain.DAY, NOON - timedelta(days=3, hours=12), NOON + timedelta(hours=12))


async def ended(space: Space, version: Any, status: RunStatus, **values: Any) -> Id:
    """A run that went on, and then ended."""
    open_run = {"status": "running", "completed_at": None}
    row = run_row(space, version, **{"started_at": None, **values, **open_run})
    async with space.database.transaction() as work:
        await work.execute(insert(automation_run).values(row))
        if status is RunStatus.FAILED:
            node = {"workspace_id": space.id, "run_id": row["id"], "scope_key": "", "attempt": 1}
            failure = {"node_id": "call", "status": "failed", "error_code": "upstream_error"}
            await work.execute(insert(node_run).values(**node, **failure, node_kind="http_request"))
        await work.execute(
            update(automation_run)
            .where(automation_run.c.id == row["id"])
            .values(status=status.value, completed_at=values["completed_at"])
        )
    return Id(str(row["id"]))


async def some_ended(space: Space, version: Any, number: int, seed: int) -> None:
    """Runs that ended within three days, as differently as they can."""
    random = Random(seed)  # noqa: S311
    for _ in range(number):
        end = NOON - timedelta(seconds=random.randrange(3 * 86_400))
        lasted = timedelta(milliseconds=round(10 ** random.uniform(0, 6)))
        waited = timedelta(milliseconds=round(10 ** random.uniform(0, 4)))
        start = None if random.random() < 0.1 else end - lasted
        times = {"created_at": end - lasted - waited, "started_at": start, "completed_at": end}
        await ended(space, version, random.choice(ENDS), **times)


async def settled(space: Space) -> int:
    """Settle until nothing is left; the number of runs."""
    total = 0
    while True:
        async with space.database.transaction() as work:
            number = await settle_runs(work)
        if not number:
            return total
        total += number


async def statistics(
    space: Space, over: Span, automation_id: Id | None = None, actor: Actor | None = None
) -> RunStatistics:
    async with space.database.transaction() as work:
        return await get_statistics(work, actor or space.actor, automation_id, over)


async def recounted(space: Space, over: Span) -> tuple[dict[Any, int], list[float], list[float]]:
    """The same from the rows: runs by period and outcome, durations, and times in the queue."""
    async with space.database.transaction() as work:
        rows = await work.rows(
            select(automation_run).where(
                automation_run.c.workspace_id == space.id,
                automation_run.c.completed_at >= over.since,
                automation_run.c.completed_at < over.until,
            )
        )
    counts = Counter((over.by.start_of(row.completed_at), row.status) for row in rows)
    began = [row for row in rows if row.started_at is not None]
    durations = [(row.completed_at - row.started_at) / timedelta(milliseconds=1) for row in began]
    queueing = [(row.started_at - row.created_at) / timedelta(milliseconds=1) for row in began]
    return dict(counts), sorted(durations), sorted(queueing)


async def agrees(space: Space, over: Span) -> None:
    told = await statistics(space, over)
    counts, durations, queueing = await recounted(space, over)
    periods = {
        (period.start, status.value): number
        for period in told.periods
        for status, number in period.outcomes.items()
        if number
    }
    assert periods == counts
    assert told.total.runs == sum(counts.values())
    for percentiles, exact in ((told.total.duration, durations), (told.total.queueing, queueing)):
        assert percentiles is not None
        for share, value in ((0.5, percentiles.p50), (0.95, percentiles.p95)):
            nearest = exact[ceil(share * len(exact)) - 1]
            assert value == pytest.approx(nearest, rel=0.06, abs=1)


@pytest.mark.parametrize("by", list(Grain))
async def test_the_sums_agree_with_a_recount_before_between_and_after_they_are_settled(
    space: Space, by: Grain
) -> None:
    version = await make_automation(space)
    over = DAYS if by is Grain.DAY else Span(by, DAYS.since, DAYS.until)
    await some_ended(space, version, 40, seed=1)
    await agrees(space, over)
    assert await settled(space) >= 40
    await agrees(space, over)
    await some_ended(space, version, 20, seed=2)
    await agrees(space, over)
    await settled(space)
    await settled(space)
    await agrees(space, over)


async def test_failures_are_counted_by_the_node_that_failed(space: Space) -> None:
    version = await make_automation(space)
    times = {"created_at": NOON, "started_at": NOON, "completed_at": NOON + timedelta(seconds=1)}
    for status in (RunStatus.FAILED, RunStatus.FAILED, RunStatus.TIMED_OUT, RunStatus.SUCCEEDED):
        await ended(space, version, status, **times)
    for _ in range(2):
        told = await statistics(space, DAYS, version.automation_id)
        assert [(one.node_id, one.error_code, one.runs) for one in told.failing_nodes] == [
            ("call", "upstream_error", 2),
            (None, None, 1),
        ]
        await settled(space)


async def test_tests_are_not_counted(space: Space) -> None:
    version = await make_automation(space)
    times = {"created_at": NOON, "started_at": NOON, "completed_at": NOON}
    await ended(space, version, RunStatus.SUCCEEDED, **times, source="test")
    await ended(space, version, RunStatus.SUCCEEDED, **times, options={"test": True})
    assert (await statistics(space, DAYS)).total.runs == 0
    await settled(space)
    assert (await statistics(space, DAYS)).total.runs == 0


async def test_other_workspaces_and_closed_automations_are_not_counted(
    space: Space, foreign: Space
) -> None:
    version = await make_automation(space)
    times = {"created_at": NOON, "started_at": NOON, "completed_at": NOON}
    await ended(space, version, RunStatus.SUCCEEDED, **times)
    assert (await statistics(foreign, DAYS)).total.runs == 0
    await settled(space)
    assert (await statistics(foreign, DAYS)).total.runs == 0
    assert (await statistics(space, DAYS)).total.runs == 1


async def test_busy_keys_are_shown_with_the_holders_of_their_slots(space: Space) -> None:
    version = await make_automation(space)
    async with space.database.transaction() as work:
        for key, admitted in (("a", NOON), ("a", None), ("a", None), ("b", NOON), (None, None)):
            open_run = {"status": "queued", "concurrency_key": key, "admitted_at": admitted}
            await work.execute(insert(automation_run).values(run_row(space, version, **open_run)))
    keys = (await statistics(space, DAYS)).busiest_keys
    assert [(one.key, one.admitted, one.queued) for one in keys] == [("a", 1, 2), ("b", 1, 0)]


async def test_a_run_that_is_gone_is_no_longer_noted(space: Space) -> None:
    async with space.database.transaction() as work:
        await work.execute(insert(ended_run).values(run_id=new_id(), workspace_id=space.id))
    assert (await statistics(space, DAYS)).total.runs == 0
    assert await settled(space) >= 1
    async with space.database.transaction() as work:
        mine = select(ended_run.c.run_id).where(ended_run.c.workspace_id == space.id)
        assert await work.scalar(mine) is None


async def test_sums_go_when_their_time_is_over(space: Space) -> None:
    version = await make_automation(space)
    times = {"created_at": NOON, "started_at": NOON, "completed_at": NOON}
    await ended(space, version, RunStatus.FAILED, **times)
    await settled(space)

    async def kept(days: int) -> set[str]:
        async with space.database.transaction() as work:
            work.now = NOON + timedelta(days=days)
            while await purge_sums(work):
                pass
            mine = run_statistic.c.workspace_id == space.id
            return {row.grain for row in await work.rows(select(run_statistic.c.grain).where(mine))}

    assert await kept(30) == {"hour", "day"}
    assert await kept(36) == {"day"}
    assert await kept(401) == set()


@pytest.mark.parametrize(
    ("by", "since", "until"),
    [
        (Grain.HOUR, NOON, NOON - timedelta(hours=1)),
        (Grain.HOUR, NOON - timedelta(days=8), NOON),
        (Grain.DAY, NOON - timedelta(days=367), NOON),
        (Grain.DAY, None, datetime.min.replace(tzinfo=UTC)),
        (Grain.HOUR, None, datetime.max.replace(tzinfo=UTC)),
        (Grain.HOUR, NOON, datetime.max.replace(tzinfo=UTC)),
        (Grain.HOUR, datetime.max.replace(tzinfo=UTC), None),
        (Grain.DAY, datetime.min.replace(tzinfo=UTC), None),
    ],
)
def test_a_span_that_is_empty_or_too_long_is_refused(
    by: Grain, since: datetime | None, until: datetime | None
) -> None:
    with pytest.raises(ValidationError):
        span(NOON, by, since, until)


def test_a_span_is_of_whole_periods() -> None:
    moment = NOON + timedelta(minutes=20)
    assert span(moment, Grain.HOUR, None, None).until == NOON + timedelta(hours=1)
    assert span(moment, Grain.HOUR, moment, moment + timedelta(minutes=1)) == Span(
        Grain.HOUR, NOON, NOON + timedelta(hours=1)
    )
    days = span(moment, Grain.DAY, None, None)
    assert (days.until - days.since, days.until.hour) == (timedelta(days=30), 0)


@pytest.mark.long
@given(st.dictionaries(st.integers(0, 220), st.integers(1, 1_000), min_size=1), st.floats(0.01, 1))
def test_a_percentile_is_the_nearest_rank(counts: dict[int, int], share: float) -> None:
    ranked = [bucket for bucket in sorted(counts) for _ in range(counts[bucket])]
    nearest = ranked[max(1, ceil(share * len(ranked))) - 1]
    assert percentile({**counts, NEVER: 7}, share) == milliseconds(nearest)


def test_nothing_has_no_percentile() -> None:
    assert percentile({NEVER: 3}, 0.5) is None
