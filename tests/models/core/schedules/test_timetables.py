"""When a schedule is due; `tests/workflows/schedules/test_due_times.py` asks Temporal."""

from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from models.automation.automations.rules.triggers.configs import parse_trigger_config, read_trigger
from models.automation.automations.rules.triggers.kinds import ScheduleTrigger
from models.core.schedules.clock_changes import clock_changes, clock_notes
from models.core.schedules.cron import parse_cron
from models.core.schedules.timetables import Timetable, due_run_id

YEAR = datetime(2026, 1, 1, tzinfo=UTC)


def timetable(**config: Any) -> Timetable:
    read = read_trigger(parse_trigger_config({"kind": "schedule", **config}))
    assert isinstance(read, ScheduleTrigger)
    return read.timetable


def local(given: Timetable, after: datetime, count: int) -> list[str]:
    """The next due times as clocks show them, with their offset."""
    zone = ZoneInfo(given.zone)
    return [f"{due.astimezone(zone):%d %H:%M %z}" for due in islice(given.after(after), count)]


@pytest.mark.parametrize(
    ("zone", "after", "cron", "expected"),
    [
        # The clock goes forward: what it skips does not come.
        ("Europe/Berlin", "2026-03-27T12:00Z", "30 2 * * *",
         ["28 02:30 +0100", "30 02:30 +0200"]),
        ("Europe/Berlin", "2026-03-29T00:00Z", "30 * * * *",
         ["29 01:30 +0100", "29 03:30 +0200"]),
        ("America/New_York", "2026-03-07T12:00Z", "30 2 * * *",
         ["09 02:30 -0400", "10 02:30 -0400"]),
        ("America/New_York", "2026-03-08T06:00Z", "*/30 * * * *",
         ["08 01:30 -0500", "08 03:00 -0400"]),
        # The clock goes back: east of Greenwich the hour before is the one that comes twice.
        ("Europe/Berlin", "2026-10-24T12:00Z", "30 2 * * *",
         ["25 02:30 +0100", "26 02:30 +0100"]),
        ("Europe/Berlin", "2026-10-24T12:00Z", "30 1 * * *",
         ["25 01:30 +0200", "25 02:30 +0200", "26 01:30 +0100"]),
        ("America/New_York", "2026-10-31T12:00Z", "30 1 * * *",
         ["01 01:30 -0400", "01 01:30 -0500", "02 01:30 -0500"]),
        ("America/New_York", "2026-10-31T12:00Z", "30 2 * * *",
         ["01 02:30 -0500", "02 02:30 -0500"]),
    ],
)  # fmt: skip
def test_daylight_saving(zone: str, after: str, cron: str, expected: list[str]) -> None:
    moment = datetime.fromisoformat(after)
    assert local(timetable(cron=cron, timezone=zone), moment, len(expected)) == expected


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York"])
def test_intervals_know_no_daylight_saving(zone: str) -> None:
    given = timetable(intervalSeconds=3_600, timezone=zone)
    due = list(islice(given.after(YEAR), 366 * 24))
    gaps = {later - earlier for earlier, later in pairwise(due)}
    assert gaps == {timedelta(hours=1)}


def test_intervals_count_from_the_epoch_or_from_their_start() -> None:
    assert timetable(intervalSeconds=7_000).next_after(YEAR) == datetime.fromtimestamp(
        (int(YEAR.timestamp()) // 7_000 + 1) * 7_000, UTC
    )
    given = timetable(intervalSeconds=7_200, startAt="2026-01-01T09:17:30+01:00")
    assert local(given, YEAR, 2) == ["01 08:17 +0000", "01 10:17 +0000"]
    assert given.next_after(YEAR + timedelta(hours=8, minutes=17, seconds=30)) == YEAR + timedelta(
        hours=10, minutes=17, seconds=30
    )


def test_both_bounds_are_due_themselves() -> None:
    given = timetable(
        cron="0 * * * *", startAt="2026-01-01T03:00:00Z", endAt="2026-01-01T05:00:00Z"
    )
    assert [due.hour for due in given.after(YEAR)] == [3, 4, 5]
    assert given.next_after(YEAR + timedelta(hours=5)) is None


@pytest.mark.parametrize(
    ("zone", "given", "moment"),
    [
        ("UTC", "2026-03-05T09:00", "2026-03-05T09:00Z"),
        ("Europe/Berlin", "2026-03-05T09:00:00.5", "2026-03-05T08:00Z"),
        ("Europe/Berlin", "2026-07-05", "2026-07-04T22:00Z"),
        ("America/New_York", "2026-03-05T09:00:00", "2026-03-05T14:00Z"),
        ("America/New_York", "2026-03-05T09:00:00+01:00", "2026-03-05T08:00Z"),
        # RFC 5545: the first of two, and as if the clock had not gone forward.
        ("Europe/Berlin", "2026-10-25T02:30", "2026-10-25T00:30Z"),
        ("Europe/Berlin", "2026-03-29T02:30", "2026-03-29T01:30Z"),
    ],
)
def test_a_bound_without_an_offset_is_a_time_of_the_zone(
    zone: str, given: str, moment: str
) -> None:
    read = timetable(cron="@daily", timezone=zone, startAt=given, endAt=given)
    assert read.start == read.end == datetime.fromisoformat(moment)


def test_a_period_includes_its_ends_and_is_bounded() -> None:
    given = timetable(intervalSeconds=3_600)
    assert len(given.between(YEAR, YEAR + timedelta(hours=3), 100)) == 4
    assert len(given.between(YEAR, YEAR + timedelta(days=3_000), 100)) == 100
    assert given.between(YEAR + timedelta(seconds=1), YEAR + timedelta(minutes=59), 100) == []


@pytest.mark.parametrize("year", [1, 1970, 1999, 2101, 9999])
@pytest.mark.parametrize("config", [{"cron": "* * * * *"}, {"intervalSeconds": 60}], ids=str)
def test_years_far_away_do_not_hurt(year: int, config: dict[str, Any]) -> None:
    due = timetable(**config, timezone="Pacific/Kiritimati").next_after(
        datetime(year, 12, 31, 23, 59, 59, tzinfo=UTC)
    )
    assert (due is None) is (year > 2_100)
    assert due is None or due == datetime(2000, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("cron", ["0 0 30 2 *", "0 0 31 4,6,9,11 *"])
def test_a_day_that_never_comes(cron: str) -> None:
    assert Timetable(cron=parse_cron(cron)).next_after(YEAR) is None


def test_fields_as_values() -> None:
    cron = parse_cron("5/20 8-10 */10 JAN,mar sun,5-7")
    assert (cron.minutes, cron.hours, cron.days) == ((5, 25, 45), (8, 9, 10), (1, 11, 21, 31))
    assert (cron.months, cron.weekdays) == ((1, 3), (0, 5, 6))
    assert parse_cron(" @Daily ") == parse_cron("0 0 * * *")


def test_the_run_of_a_due_time_never_changes() -> None:
    """A constant: another id would do what was done again."""
    schedule_id = "automation-schedule/01a1fbbc-c934-76cb-b464-8718bc1a17a6"
    assert due_run_id(schedule_id, YEAR) == due_run_id(
        schedule_id, YEAR.astimezone(ZoneInfo("Asia/Tokyo"))
    )
    assert str(due_run_id(schedule_id, YEAR)) == "fb9c9052-46c2-56c2-9057-ddbbb7aba0e3"


def test_changes_of_the_clock_are_found() -> None:
    changes = list(clock_changes(ZoneInfo("Europe/Berlin"), YEAR, datetime(2027, 1, 1, tzinfo=UTC)))
    assert [(f"{one.before:%m-%d %H:%M}", f"{one.after:%H:%M}") for one in changes] == [
        ("03-29 02:00", "03:00"),
        ("10-25 03:00", "02:00"),
    ]
    assert list(clock_changes(ZoneInfo("UTC"), YEAR, datetime(2030, 1, 1, tzinfo=UTC))) == []


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"cron": "30 2 * * *"}, ["2026-03-29 02:30 does not exist", "On 2026-10-25", "UTC"]),
        ({"cron": "30 1 * * *"}, ["On 2026-10-25", "UTC"]),
        ({"cron": "30 2 * * mon"}, []),
        ({"cron": "0 12 * * *"}, []),
        ({"cron": "30 2 * * *", "timezone": "UTC"}, []),
        ({"intervalSeconds": 3_600}, []),
    ],
    ids=str,
)
def test_what_is_said_about_the_clock(config: dict[str, Any], words: list[str]) -> None:
    given = timetable(**{"timezone": "Europe/Berlin", **config})
    notes = clock_notes(given, YEAR, datetime(2027, 1, 1, tzinfo=UTC))
    assert len(notes) == len(words)
    assert all(word in note for word, note in zip(words, notes, strict=True))
