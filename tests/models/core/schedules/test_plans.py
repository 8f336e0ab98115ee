"""The plans for Temporal around changes of the clock; `test_due_times.py` asks Temporal itself."""

from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import pytest

from models.core.schedules.plans import Plan, plan_of
from models.core.schedules.timetables import Timetable, parse_cron

NOW = datetime(2026, 2, 1, tzinfo=UTC)


def plan(cron: str, zone: str) -> Plan:
    return plan_of(Timetable(cron=parse_cron(cron), zone=zone), NOW)


@pytest.mark.parametrize(
    ("cron", "zone", "year", "moments"),
    [
        # What the clock skips, and what it shows twice.
        ("30 2 * * *", "Europe/Berlin", 2026, ["03-29 03:00 +0200", "10-25 02:30 +0200"]),
        ("30 2 * * *", "Europe/Berlin", 2028, ["03-26 03:00 +0200", "10-29 02:30 +0200"]),
        ("30 2 * * *", "Europe/Berlin", 2029, []),
        ("0 0,2 * * *", "Europe/Berlin", 2026, ["03-29 03:00 +0200", "10-25 02:00 +0200"]),
        ("0,1 4 25 10 *", "Europe/Berlin", 2026, []),
        ("30 2 29 3 *", "Europe/Berlin", 2026, ["03-29 03:00 +0200"]),
        ("30 2 13 * 0", "Europe/Berlin", 2026, ["03-29 03:00 +0200", "10-25 02:30 +0200"]),
        ("30 2 31 12 *", "Europe/Berlin", 2026, []),
        ("30 2 * * 1", "Europe/Berlin", 2026, []),
        ("30 1 * * *", "America/New_York", 2026, ["11-01 01:30 -0400"]),
        ("0 0 * * *", "America/Havana", 2026, ["03-08 01:00 -0400", "11-01 00:00 -0400"]),
        ("45 1 * * *", "Australia/Lord_Howe", 2026, ["04-05 01:45 +1100", "10-04 01:45 +1030"]),
        ("30 2 * * *", "Africa/Casablanca", 2027, ["02-07 02:30 +0100", "03-14 03:00 +0100"]),
        # The last hour of a day, and its midnight.
        ("30 23 * * 6", "America/Nuuk", 2028, ["03-26 00:00 -0100", "10-28 23:30 -0100"]),
        ("0 0 1 * 5", "Africa/Cairo", 2026, ["04-24 01:00 +0300"]),
        ("0 9 * * 5", "Africa/Cairo", 2027, []),
        # Around the clock it keeps its beat.
        ("0 */6 * * *", "Europe/Berlin", 2026, ["10-25 05:00 +0100"]),
        ("0 */12 1 11 *", "America/New_York", 2026, ["11-01 00:00 -0400", "11-01 11:00 -0500"]),
        ("30 * * * *", "Europe/Berlin", 2026, []),
    ],
)  # fmt: skip
def test_due_times_that_temporal_leaves_out_are_single_moments(
    cron: str, zone: str, year: int, moments: list[str]
) -> None:
    found = (moment.astimezone(ZoneInfo(zone)) for moment in plan(cron, zone).moments)
    assert [f"{one:%m-%d %H:%M %z}" for one in found if one.year == year] == moments


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [
        ("Europe/Berlin", date(2026, 10, 25), {1, 2}),
        ("Europe/Berlin", date(2026, 3, 29), set()),
        ("America/New_York", date(2026, 11, 1), {0, 1}),
        ("Australia/Lord_Howe", date(2026, 4, 5), {0, 1}),
        ("America/Havana", date(2026, 10, 31), {23}),
        ("America/Havana", date(2026, 11, 1), {0}),
    ],
)
def test_the_hours_around_times_that_come_twice_are_left_out(
    zone: str, day: date, hours: set[int]
) -> None:
    named = [one.hours for one in plan("0 * * 1-11 *", zone).calendars if one.names_day(day)]
    assert set(range(24)) - set().union(*named) == hours


def test_a_schedule_of_every_hour_is_one_of_utc() -> None:
    found = plan("30 * * * *", "Asia/Kathmandu")
    assert (found.zone, [one.minutes for one in found.calendars]) == ("UTC", [(45,)])


@pytest.mark.parametrize(
    ("cron", "zone", "day", "is_named"),
    [
        ("0 9 * * 4", "Africa/Cairo", date(2026, 4, 24), False),
        ("0 9 * * 5", "Africa/Cairo", date(2026, 4, 24), True),
        ("0 9 * * 6", "America/Havana", date(2026, 3, 8), False),
        ("0 9 * * 6", "America/Nuuk", date(2028, 3, 26), True),
        ("0 9 * * 6", "Europe/Berlin", date(2026, 3, 29), True),
    ],
)
def test_a_day_whose_midnight_is_skipped_is_not_taken_for_the_one_before(
    cron: str, zone: str, day: date, *, is_named: bool
) -> None:
    """Temporal looks at the weekday of the time that it takes for midnight."""
    assert any(one.names_date(day) for one in plan(cron, zone).calendars) == is_named
