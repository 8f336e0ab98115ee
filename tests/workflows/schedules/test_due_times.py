"""Our evaluator and a real Temporal server agree on when a schedule is due (ADR 0128)."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4
from zoneinfo import ZoneInfo

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from temporalio.api.workflowservice.v1 import ListScheduleMatchingTimesRequest
from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleSpec,
    ScheduleState,
)
from temporalio.testing import WorkflowEnvironment

from activities.schedules import spec_of
from models.automation.automations.rules.triggers.configs import parse_trigger_config, read_trigger
from models.automation.automations.rules.triggers.kinds import ScheduleTrigger
from models.automation.automations.schedules import timing_of
from models.core.schedules.timetables import clock_changes

DAY = timedelta(days=1)
NOW = datetime(2026, 2, 1, tzinfo=UTC)
CHANGES = {
    "Europe/Berlin": (datetime(2026, 3, 29, 1, tzinfo=UTC), datetime(2026, 10, 25, 1, tzinfo=UTC)),
    "America/New_York": (
        datetime(2026, 3, 8, 7, tzinfo=UTC),
        datetime(2026, 11, 1, 6, tzinfo=UTC),
    ),
    # Half an hour, and at midnight.
    "Australia/Lord_Howe": (datetime(2026, 4, 4, 15, tzinfo=UTC),),
    "America/Havana": (datetime(2026, 3, 8, 5, tzinfo=UTC), datetime(2026, 11, 1, 5, tzinfo=UTC)),
    "Africa/Cairo": (datetime(2027, 4, 29, 22, tzinfo=UTC), datetime(2027, 10, 28, 21, tzinfo=UTC)),
    "America/Nuuk": (datetime(2028, 3, 26, 1, tzinfo=UTC), datetime(2028, 10, 29, 1, tzinfo=UTC)),
    "Africa/Casablanca": (datetime(2027, 2, 7, 2, tzinfo=UTC),),
}
CRONS = (
    *("0 0 * * *", "30 0 * * *", "0 1 * * *", "30 1 * * *", "0 2 * * *", "30 2 * * *"),
    *("59 2 * * *", "0 3 * * *", "30 3 * * *", "30 * * * *", "*/20 * * * *", "0 */2 * * *"),
    *("15,45 1-3 * * *", "30 2 * * sun", "0 0 * * 0,6", "*/7 2 8,29 3 *", "@hourly", "@weekly"),
    *(
        "0 9 * * 5",
        "0 * * * 5,6",
        "30 23 * * 6",
        "0 1-23/2 * * *",
        "*/20 2 29 * 0",
        "10 */12 * * *",
    ),
)


def trigger(**config: Any) -> ScheduleTrigger:
    read = read_trigger(parse_trigger_config({"kind": "schedule", **config}))
    assert isinstance(read, ScheduleTrigger)
    return read


async def theirs(
    client: Client, spec: ScheduleSpec, first: datetime, last: datetime
) -> list[datetime]:
    """The due times after `first` until `last` of a schedule that never fires."""
    handle = await client.create_schedule(
        f"due-times/{uuid4()}",
        Schedule(
            action=ScheduleActionStartWorkflow("Nothing", id="nothing", task_queue="nobody"),
            spec=spec,
            state=ScheduleState(paused=True),
        ),
    )
    start, end = Timestamp(), Timestamp()
    start.FromDatetime(first)
    end.FromDatetime(last)
    answer = await client.workflow_service.list_schedule_matching_times(
        ListScheduleMatchingTimesRequest(
            namespace=client.namespace, schedule_id=handle.id, start_time=start, end_time=end
        )
    )
    await handle.delete()
    return [moment.ToDatetime(UTC) for moment in answer.start_time]


def ours(given: ScheduleTrigger, first: datetime, last: datetime) -> list[datetime]:
    # `between` includes its first moment.
    return given.timetable.between(first + timedelta(microseconds=1), last, 1_000)


@pytest.mark.long
@pytest.mark.parametrize("zone", CHANGES)
async def test_due_times_around_clock_changes_equal_temporals(
    temporal: WorkflowEnvironment, zone: str
) -> None:
    compared = 0
    for change in CHANGES[zone]:
        for cron in CRONS:
            given = trigger(cron=cron, timezone=zone)
            span = (change - DAY, change + DAY)
            expected = await theirs(temporal.client, spec_of(timing_of(given), NOW), *span)
            assert ours(given, *span) == expected, cron
            compared += len(expected)
    assert compared > 100


@pytest.mark.long
@pytest.mark.parametrize(
    ("cron", "zone"),
    [
        ("*/15 * * * *", "Europe/Berlin"),
        ("*/5 * * * *", "Europe/London"),
        ("0 0-23 * * *", "Asia/Kathmandu"),
        ("0 * * * *", "Australia/Lord_Howe"),
        ("*/30 * * * 0", "America/St_Johns"),
        ("30 */2 * * *", "Africa/Casablanca"),
        ("30 2 * * *", "Europe/Berlin"),
        ("*/20 1,2 * * *", "America/New_York"),
        ("30 2 25-31 10 0", "Europe/Berlin"),
        ("0 9 1 * 5", "Africa/Cairo"),
    ],
)
async def test_temporal_fires_at_the_times_of_a_preview_across_clock_changes(
    temporal: WorkflowEnvironment, cron: str, zone: str
) -> None:
    """Around each change of two years, from where the walk of Temporal happens to begin."""
    given = trigger(cron=cron, timezone=zone)
    changes = list(clock_changes(ZoneInfo(zone), NOW, NOW + 730 * DAY))
    compared = 0
    for at in [one.at for one in changes] or [NOW]:
        for earlier in (timedelta(hours=25), timedelta(minutes=50), timedelta(minutes=-10)):
            span = (at - earlier, at + DAY)
            expected = await theirs(temporal.client, spec_of(timing_of(given), NOW), *span)
            assert ours(given, *span) == expected, span
            compared += len(expected)
    assert compared > 0


@pytest.mark.parametrize(
    "config",
    [
        {"cron": "0 0 29 2 *"},
        {"cron": "0 12 13 * fri"},
        {"cron": "5/15 8-18/2 1-7 jan-jun mon"},
        {"cron": "0 9 * * *", "timezone": "Asia/Kolkata"},
        {"cron": "0 9 * * *", "startAt": "2026-03-05T09:00:00Z", "endAt": "2026-03-09T09:00:00Z"},
        {"cron": "0 9 * * *", "startAt": "2026-03-05T09:00", "endAt": "2026-03-09T09:00"}
        | {"timezone": "Asia/Tokyo"},
        {"intervalSeconds": 60, "endAt": "2026-02-10T12:10:00Z"},
        {"intervalSeconds": 86_400},
        {"intervalSeconds": 90_000, "timezone": "Europe/Berlin"},
        {"intervalSeconds": 7_000, "startAt": "2026-02-10T11:59:59Z"},
        {"intervalSeconds": 604_800, "startAt": "2026-03-02T06:30:00+02:00"},
    ],
    ids=str,
)
async def test_due_times_of_every_form_are_those_of_temporal(
    temporal: WorkflowEnvironment, config: dict[str, Any]
) -> None:
    given = trigger(**config)
    span = (datetime(2026, 2, 10, 11, 59, tzinfo=UTC), datetime(2036, 2, 10, tzinfo=UTC))
    expected = (await theirs(temporal.client, spec_of(timing_of(given), NOW), *span))[:1_000]
    assert expected != []
    assert ours(given, *span) == expected


async def test_the_next_due_times_are_those_temporal_tells(temporal: WorkflowEnvironment) -> None:
    given = trigger(cron="*/10 * * * *", timezone="America/New_York")
    handle = await temporal.client.create_schedule(
        f"due-times/{uuid4()}",
        Schedule(
            action=ScheduleActionStartWorkflow("Nothing", id="nothing", task_queue="nobody"),
            spec=spec_of(timing_of(given), NOW),
            state=ScheduleState(paused=True),
        ),
    )
    found = (await handle.describe()).info.next_action_times
    due = given.timetable.after(found[0] - timedelta(seconds=1))
    assert [next(due) for _ in found] == found
    await handle.delete()
