"""The times of an entry, and the days of a summary."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from models.data.time_entries.rules import (
    EntryAction,
    EntryMode,
    EntryStatus,
    Times,
    next_status,
    read_days,
    rounded_time,
    starts_of_days,
)
from runtime.errors import ConflictError, ValidationError

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)


def at(minutes: float) -> datetime:
    return NOON + minutes * MINUTE


def test_pauses_move_the_end_of_a_countdown() -> None:
    running = Times(NOON, EntryMode.COUNTDOWN, HOUR)
    assert running.due_at == at(60)
    paused = running.pause(at(20))
    assert (paused.due_at, paused.elapsed(at(50))) == (None, 20 * MINUTE)
    resumed = paused.resume(at(50))
    assert (resumed.due_at, resumed.paused) == (at(90), 30 * MINUTE)
    assert resumed.elapsed(at(500)) == HOUR
    ended = resumed.end(at(90))
    assert (ended.elapsed(at(500)), ended.due_at) == (HOUR, None)


def test_pauses_outside_a_moved_entry_are_cut_off() -> None:
    times = Times(NOON, EntryMode.STOPWATCH).pause(at(10)).resume(at(20)).end(at(60))
    assert times.elapsed(at(60)) == 50 * MINUTE
    assert times.move(at(15), None).elapsed(at(60)) == 40 * MINUTE
    assert times.move(None, at(15)).elapsed(at(60)) == 10 * MINUTE
    assert times.move(at(12), at(18)).elapsed(at(60)) == timedelta()


def test_nothing_takes_less_than_no_time() -> None:
    assert Times(at(5), EntryMode.STOPWATCH).elapsed(NOON) == timedelta()


@pytest.mark.parametrize(
    "times",
    [
        Times(at(1), EntryMode.STOPWATCH),
        Times(NOON, EntryMode.FIXED, ended_at=at(-1)),
        Times(at(-60), EntryMode.FIXED, ended_at=at(1)),
        Times(NOON.replace(year=1999), EntryMode.STOPWATCH),
        Times(at(-30), EntryMode.STOPWATCH, paused_at=at(-40)),
    ],
)
def test_times_that_cannot_be_are_refused(times: Times) -> None:
    with pytest.raises(ValidationError):
        times.check(NOON)


@pytest.mark.parametrize(
    ("minutes", "step", "found"),
    [(7, 15, 0), (7.5, 15, 15), (22.4, 15, 15), (52, 15, 45), (0, 15, 0), (7, None, 7)],
)
def test_counted_time_is_rounded(minutes: float, step: int | None, found: int) -> None:
    assert rounded_time(minutes * MINUTE, step) == found * MINUTE


def test_an_ended_entry_stays_as_it_is() -> None:
    for status in (EntryStatus.COMPLETED, EntryStatus.DISCARDED):
        for action in (None, EntryAction.COMPLETE, EntryAction.DISCARD):
            assert next_status(status, action) is status
        for action in (EntryAction.PAUSE, EntryAction.RESUME):
            with pytest.raises(ConflictError):
                next_status(status, action)


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [
        ("Europe/Berlin", date(2026, 3, 29), 23),
        ("Europe/Berlin", date(2026, 10, 25), 25),
        ("Australia/Lord_Howe", date(2026, 4, 5), 24.5),
        # A day that has no midnight, and one that has two.
        ("Asia/Beirut", date(2026, 3, 29), 23),
        ("America/Havana", date(2025, 11, 2), 25),
        ("UTC", date(2026, 3, 29), 24),
    ],
)
def test_a_day_is_as_long_as_its_clock_makes_it(zone: str, day: date, hours: float) -> None:
    begins = starts_of_days(day - timedelta(days=1), day + timedelta(days=1), ZoneInfo(zone))
    assert begins[2] - begins[1] == timedelta(hours=hours)
    assert sorted(begins) == begins


def test_a_summary_has_thirty_days_until_today() -> None:
    begin, end = read_days(None, None, NOON, ZoneInfo("UTC"))
    assert (begin, end) == (date(2026, 5, 3), date(2026, 6, 1))
    assert read_days(None, "2000-01-05", NOON, ZoneInfo("UTC"))[0] == date(2000, 1, 1)


@pytest.mark.parametrize(
    ("first", "last", "is_refused"),
    [("2025-06-01", "2026-06-01", False), ("2025-05-31", "2026-06-01", True)],
)
def test_a_summary_has_at_most_366_days(first: str, last: str, is_refused: bool) -> None:
    if is_refused:
        with pytest.raises(ValidationError):
            read_days(first, last, NOON, ZoneInfo("UTC"))
    else:
        read_days(first, last, NOON, ZoneInfo("UTC"))


@pytest.mark.parametrize(
    ("day", "is_one"),
    [
        ("2000-01-01", True),
        ("9990-01-01", True),
        ("1999-12-31", False),
        ("9990-01-02", False),
        ("2026-02-30", False),
    ],
)
def test_days_of_a_summary_are_from_the_year_2000_on(day: str, is_one: bool) -> None:
    if is_one:
        assert read_days(day, day, NOON, ZoneInfo("UTC")) == (date.fromisoformat(day),) * 2
    else:
        with pytest.raises(ValidationError):
            read_days(day, day, NOON, ZoneInfo("UTC"))
