"""When a schedule is due; `tests/workflows/schedules/test_due_times.py` asks Temporal."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.automation.automations.rules.triggers.configs import parse_trigger_config, read_trigger
from models.automation.automations.rules.triggers.kinds import ScheduleTrigger
from models.core.schedules.timetables import (
    Cron,
    Timetable,
    clock_changes,
    clock_notes,
    due_run_id,
    fire_note,
    parse_cron,
    title_of,
)

YEAR = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
MINUTE = timedelta(minutes=1)
MICROSECOND = timedelta(microseconds=1)


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
        # The clock goes forward: what it skips comes when it is set.
        ("Europe/Berlin", "2026-03-27T12:00Z", "30 2 * * *",
         ["28 02:30 +0100", "29 03:00 +0200", "30 02:30 +0200"]),
        ("Europe/Berlin", "2026-03-28T12:00Z", "30 1-3 * * *",
         ["29 01:30 +0100", "29 03:00 +0200", "29 03:30 +0200"]),
        ("Europe/Berlin", "2026-03-28T12:00Z", "0 1,2,3 * * *",
         ["29 01:00 +0100", "29 03:00 +0200", "30 01:00 +0200"]),
        ("Europe/Berlin", "2026-03-28T12:00Z", "*/20 2 * * *",
         ["29 03:00 +0200", "30 02:00 +0200"]),
        ("America/New_York", "2026-03-07T12:00Z", "30 2 * * *",
         ["08 03:00 -0400", "09 02:30 -0400"]),
        # The day whose last hour is skipped is over by then.
        ("America/Nuuk", "2026-03-28T12:00Z", "30 23 * * 6",
         ["29 00:00 -0100", "04 23:30 -0100"]),
        ("Africa/Cairo", "2026-04-23T12:00Z", "0 0 * * 5",
         ["24 01:00 +0300", "01 00:00 +0300"]),
        # A day that does not exist has no times.
        ("Pacific/Apia", "2011-12-29T12:00Z", "0 9 * * *",
         ["29 09:00 -1000", "31 09:00 +1400"]),
        # The clock goes back: the first of two.
        ("Europe/Berlin", "2026-10-24T12:00Z", "30 2 * * *",
         ["25 02:30 +0200", "26 02:30 +0100"]),
        ("Europe/Berlin", "2026-10-24T12:00Z", "30 1 * * *",
         ["25 01:30 +0200", "26 01:30 +0100"]),
        ("Europe/Berlin", "2026-10-25T00:45Z", "*/20 2 * * *",
         ["26 02:00 +0100", "26 02:20 +0100"]),
        ("America/New_York", "2026-10-31T12:00Z", "30 1 * * *",
         ["01 01:30 -0400", "02 01:30 -0500"]),
        ("America/New_York", "2026-10-31T12:00Z", "30 2 * * *",
         ["01 02:30 -0500", "02 02:30 -0500"]),
        # Midnight comes twice. Zone data of 2026 have no such change in that year any more.
        ("America/Havana", "2025-11-01T12:00Z", "0 0 * * *",
         ["02 00:00 -0400", "03 00:00 -0500"]),
        # Around the clock, both times of two come, and no pause is longer than the step.
        ("Europe/Berlin", "2026-10-24T23:59Z", "0 * * * *",
         ["25 02:00 +0200", "25 02:00 +0100", "25 03:00 +0100"]),
        ("Europe/Berlin", "2026-03-28T22:59Z", "0 */2 * * *",
         ["29 00:00 +0100", "29 03:00 +0200", "29 04:00 +0200"]),
        ("Europe/Berlin", "2026-10-24T21:59Z", "0 0-23/3 * * *",
         ["25 00:00 +0200", "25 02:00 +0100", "25 03:00 +0100", "25 06:00 +0100"]),
        ("Australia/Lord_Howe", "2026-10-03T14:29Z", "0 * * * *",
         ["04 01:00 +1030", "04 02:30 +1100", "04 03:00 +1100"]),
        ("Australia/Lord_Howe", "2026-04-04T14:29Z", "*/30 * * * *",
         ["05 01:30 +1100", "05 01:30 +1030", "05 02:00 +1030"]),
        # Not on days that the expression does not name.
        ("Europe/Berlin", "2026-10-24T12:00Z", "0 */12 26 * *",
         ["26 00:00 +0100", "26 12:00 +0100"]),
    ],
)  # fmt: skip
def test_daylight_saving(zone: str, after: str, cron: str, expected: list[str]) -> None:
    moment = datetime.fromisoformat(after)
    assert local(timetable(cron=cron, timezone=zone), moment, len(expected)) == expected


ZONES = (
    *("Europe/Berlin", "Europe/London", "America/New_York", "America/St_Johns", "Asia/Kathmandu"),
    *("Australia/Lord_Howe", "Africa/Casablanca", "Pacific/Apia", "America/Nuuk", "Africa/Cairo"),
    *("America/Havana", "America/Santiago", "Asia/Beirut", "Atlantic/Azores", "Asia/Almaty"),
    "America/Mexico_City",
)
MINUTES = ("0", "30", "*", "5", "*/15", "*/20", "*/7", "15,45")
STEPS = (
    "*",
    "*/1",
    "*/2",
    "*/5",
    "*/12",
    "0-23",
    "0-23/3",
    "1-23/2",
    ",".join(map(str, range(24))),
)
HOURS = (*STEPS, "0", "1", "2", "23", "0,1,2", "1-3", "3,9", "8-18/2", "2,14")
DAYS = ("* * *", "* * 0", "* * sat,5", "1-7 * *", "25-31 * *", "13 * 1", "*/2 * 6", "? * 5")


def by_the_minute(cron: Cron, zone: ZoneInfo, first: datetime, last: datetime) -> list[datetime]:
    """The due times by a look at the clock each minute."""
    moment, due, shown, by_old, left = first - DAY * 2, list[datetime](), set[datetime](), DAY, 0
    before = moment.astimezone(zone).replace(tzinfo=None)
    while moment < last:
        moment += MINUTE
        now = moment.astimezone(zone).replace(tzinfo=None)
        expected, hit = before + MINUTE, names(cron, now)
        if now != expected:
            by_old, left = expected - now, 1_440
        if cron.around_the_clock:
            left = 0 if hit else left - 1
            hit = hit or (left > 0 and cron.names_day(now) and names(cron, now + by_old))
        else:
            hit = hit and now not in shown
            while expected < now:
                midnight = expected.replace(hour=0, minute=0)
                exists = midnight < before + MINUTE or midnight + DAY > now
                hit, expected = hit or (exists and names(cron, expected)), expected + MINUTE
            shown.add(now)
        if hit and moment > first:
            due.append(moment)
        before = now
    return due


def names(cron: Cron, wall: datetime) -> bool:
    return wall.minute in cron.minutes and wall.hour in cron.hours and cron.names_day(wall)


CRONS = st.builds("{} {} {}".format, *map(st.sampled_from, (MINUTES, HOURS, DAYS)))


@given(zone=st.sampled_from(ZONES), text=CRONS, year=st.integers(2010, 2030), data=st.data())
@settings(max_examples=15)
def test_due_times_are_those_of_a_look_each_minute(
    zone: str, text: str, year: int, data: st.DataObject
) -> None:
    place, start = ZoneInfo(zone), datetime(year, 1, 1, tzinfo=UTC)
    changes = [one.at for one in clock_changes(place, start, start + 800 * DAY)]
    earlier = data.draw(st.integers(0, 2 * 1_440)) * MINUTE
    first = data.draw(st.sampled_from(changes or [start])) - earlier
    last = first + 3 * DAY
    found = Timetable(zone=zone, cron=parse_cron(text)).between(first + MICROSECOND, last, 10_000)
    assert found == by_the_minute(parse_cron(text), place, first, last)


EACH_ZONE = [
    pytest.param(zone, marks=pytest.mark.long) if number % 5 else zone
    for number, zone in enumerate(ZONES)
]


@pytest.mark.parametrize("zone", EACH_ZONE)
@pytest.mark.parametrize("hours", ["*", "0-23/1"])
def test_the_beat_of_every_hour_is_constant(zone: str, hours: str) -> None:
    """Two years, every half hour: no zone shifts by less."""
    given = timetable(cron=f"*/30 {hours} * * *", timezone=zone)
    due = given.between(YEAR, YEAR + 730 * DAY, 50_000)
    assert {later - earlier for earlier, later in pairwise(due)} == {timedelta(minutes=30)}


@pytest.mark.parametrize("zone", EACH_ZONE)
@pytest.mark.parametrize(
    ("hours", "step"), [("*/2", 2), ("0-23/3", 3), ("1-23/2", 2), ("*/12", 12)]
)
def test_a_step_of_hours_never_pauses_for_longer(zone: str, hours: str, step: int) -> None:
    given = timetable(cron=f"10 {hours} * * *", timezone=zone)
    due = given.between(YEAR, YEAR + 730 * DAY, 50_000)
    gaps = Counter(later - earlier for earlier, later in pairwise(due))
    assert max(gaps) == timedelta(hours=step)
    assert sum(gaps.values()) - gaps[timedelta(hours=step)] <= 10


@pytest.mark.parametrize("zone", EACH_ZONE)
@pytest.mark.parametrize("hour", [0, 1, 2, 3, 23])
def test_a_fixed_time_comes_once_a_day(zone: str, hour: int) -> None:
    due = timetable(cron=f"30 {hour} * * *", timezone=zone).between(YEAR, YEAR + 730 * DAY, 1_000)
    # Half a day later it is the same day even where the clock skips its last hour.
    days = [(one - timedelta(hours=hour / 2)).astimezone(ZoneInfo(zone)).date() for one in due]
    assert len(set(days)) == len(due)
    assert {later - earlier for earlier, later in pairwise(days)} == {DAY}


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


@pytest.mark.parametrize(
    ("text", "days"),
    [
        # crontab(5): either, if both restrict; a field that begins with a star never does.
        ("0 0 13 * 5", [5, 12, 13, 19, 26]),
        ("0 0 13 * *", [13]),
        ("0 0 * * fri", [5, 12, 19, 26]),
        ("0 0 ? * 5", [5, 12, 19, 26]),
        ("0 0 13 * ?", [13]),
        ("0 0 */2 * 5", [5, 19]),
        ("0 0 13 * */5", []),
        ("0 0 1,13 jun mon-tue", [1, 2, 8, 9, 13, 15, 16, 22, 23, 29, 30]),
        ("0 0 * * sat-sun", [6, 7, 13, 14, 20, 21, 27, 28]),
        ("0 0 * * 6-0", [6, 7, 13, 14, 20, 21, 27, 28]),
        ("0 0 28-30 * 7", [7, 14, 21, 28, 29, 30]),
        ("@weekly", [7, 14, 21, 28]),
    ],
)
def test_days_of_the_month_and_of_the_week(text: str, days: list[int]) -> None:
    june, july = (datetime(2026, month, 1, tzinfo=UTC) for month in (6, 7))
    found = Timetable(cron=parse_cron(text)).between(june, july - MINUTE, 31)
    assert [due.day for due in found] == days


@pytest.mark.parametrize(
    ("hours", "expected"),
    [(hours, True) for hours in STEPS]
    + [(hours, False) for hours in ("2", "0,12", "2,14", "8-18/2", "0-22", "1-23", "*/24", "8-18")],
)
def test_hours_around_the_clock(hours: str, expected: bool) -> None:
    assert parse_cron(f"0 {hours} * * *").around_the_clock is expected


def test_the_run_of_a_due_time_never_changes() -> None:
    """A constant: another id would do what was done again."""
    schedule_id = "automation-schedule/01a1fbbc-c934-76cb-b464-8718bc1a17a6"
    assert due_run_id(schedule_id, YEAR) == due_run_id(
        schedule_id, YEAR.astimezone(ZoneInfo("Asia/Tokyo"))
    )
    assert str(due_run_id(schedule_id, YEAR)) == "fb9c9052-46c2-56c2-9057-ddbbb7aba0e3"


@pytest.mark.parametrize(
    ("cron", "due", "words"),
    [
        ("0 */6 * * *", "2026-10-25T04:00Z", "back from 03:00 to 02:00. The schedule keeps"),
        ("0 */6 * * *", "2026-10-25T05:00Z", None),
        ("0 */6 * * *", "2026-10-26T05:00Z", None),
        ("30 2 * * *", "2026-03-29T01:00Z", "2026-03-29 02:30 does not exist"),
        ("30 2 * * *", "2026-03-30T00:30Z", None),
        ("0 9 * * *", "2026-03-29T07:00Z", None),
    ],
)
def test_a_run_says_why_it_is_at_another_time(cron: str, due: str, words: str | None) -> None:
    moment = datetime.fromisoformat(due)
    given = timetable(cron=cron, timezone="Europe/Berlin")
    assert next(given.after(moment - MINUTE)) == moment
    note = fire_note(given, moment)
    assert (note is None) if words is None else (words in (note or ""))


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
        (
            {"cron": "30 2 * * *"},
            [
                "2026-03-29 02:30 does not exist: the clock of Europe/Berlin goes forward from",
                "from 03:00 to 02:00: 02:30 occurs twice. The schedule runs only the first time.",
            ],
        ),
        ({"cron": "*/15 * * * *"}, ["keeps its interval", "keeps its interval"]),
        # A time by the old clock follows long after the change.
        ({"cron": "0 */6 * * *"}, ["back from 03:00 to 02:00. The schedule keeps its interval"]),
        ({"cron": "30 1 * * *"}, []),
        ({"cron": "30 2 * * mon"}, []),
        ({"cron": "0 12 * * *"}, []),
        ({"cron": "30 2 * * *", "timezone": "UTC"}, []),
        ({"intervalSeconds": 3_600}, []),
    ],
    ids=str,
)
def test_notes_about_clock_changes(config: dict[str, Any], words: list[str]) -> None:
    given = timetable(**{"timezone": "Europe/Berlin", **config})
    notes = clock_notes(given, YEAR, datetime(2027, 1, 1, tzinfo=UTC))
    assert len(notes) == len(words)
    assert all(word in note for word, note in zip(words, notes, strict=True))


@pytest.mark.parametrize(
    ("label", "title"),
    [
        ("Prices", "Prices · refresh"),
        ("a" * 300, "a" * 189 + " · refresh"),
        ("é" * 300, "é" * 94 + " · refresh"),
    ],
)
def test_a_title_has_200_bytes_at_most(label: str, title: str) -> None:
    assert title_of(label, "refresh") == title
