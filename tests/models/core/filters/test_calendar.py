"""The periods that names and shifts of days stand for."""

from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import pytest

from models.core.filters.operands import (
    Unit,
    end_of,
    period_days,
    shift_days,
    shift_moment,
    start_of,
)

SUNDAY = date(2024, 3, 31)


@pytest.mark.parametrize(
    ("name", "first", "after"),
    [
        ("today", date(2024, 3, 31), date(2024, 4, 1)),
        ("yesterday", date(2024, 3, 30), date(2024, 3, 31)),
        ("tomorrow", date(2024, 4, 1), date(2024, 4, 2)),
        ("this_week", date(2024, 3, 25), date(2024, 4, 1)),
        ("last_week", date(2024, 3, 18), date(2024, 3, 25)),
        ("next_week", date(2024, 4, 1), date(2024, 4, 8)),
        ("this_month", date(2024, 3, 1), date(2024, 4, 1)),
        ("last_month", date(2024, 2, 1), date(2024, 3, 1)),
        ("next_month", date(2024, 4, 1), date(2024, 5, 1)),
        ("this_quarter", date(2024, 1, 1), date(2024, 4, 1)),
        ("last_quarter", date(2023, 10, 1), date(2024, 1, 1)),
        ("next_quarter", date(2024, 4, 1), date(2024, 7, 1)),
        ("this_year", date(2024, 1, 1), date(2025, 1, 1)),
        ("last_year", date(2023, 1, 1), date(2024, 1, 1)),
        ("next_year", date(2025, 1, 1), date(2026, 1, 1)),
    ],
)
def test_period(name: str, first: date, after: date) -> None:
    assert period_days(name, SUNDAY) == (first, after)


@pytest.mark.parametrize(
    ("unit", "count", "day"),
    [
        (Unit.DAY, 1, date(2024, 4, 1)),
        (Unit.DAY, -31, date(2024, 2, 29)),
        (Unit.WEEK, 1, date(2024, 4, 7)),
        (Unit.WEEK, -2, date(2024, 3, 17)),
        (Unit.MONTH, -15, date(2022, 12, 31)),
        (Unit.YEAR, 2, date(2026, 3, 31)),
    ],
)
def test_a_shift_of_a_day(unit: Unit, count: int, day: date) -> None:
    assert shift_days(SUNDAY, unit, count) == day


def test_a_month_later_is_the_last_day_of_a_shorter_month() -> None:
    assert shift_days(date(2024, 1, 31), Unit.MONTH, 1) == date(2024, 2, 29)
    assert shift_days(date(2024, 2, 29), Unit.YEAR, -1) == date(2023, 2, 28)


@pytest.mark.parametrize(("unit", "count"), [(Unit.YEAR, 9_000), (Unit.DAY, -(10**6))])
def test_beyond_the_calendar(unit: Unit, count: int) -> None:
    with pytest.raises(OverflowError):
        shift_days(SUNDAY, unit, count)


def test_days_follow_the_wall_clock_and_hours_the_clock() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    before = datetime(2024, 3, 30, 11, tzinfo=UTC)  # noon; the clocks change in the night
    assert shift_moment(before, Unit.DAY, 1, berlin) == datetime(2024, 3, 31, 10, tzinfo=UTC)
    assert shift_moment(before, Unit.HOUR, 24, berlin) == datetime(2024, 3, 31, 11, tzinfo=UTC)
    assert shift_moment(before, Unit.MINUTE, -90, berlin) == datetime(
        2024, 3, 30, 9, 30, tzinfo=UTC
    )


def test_a_day_begins_where_its_zone_says() -> None:
    assert start_of(SUNDAY, ZoneInfo("Asia/Tokyo")) == datetime(2024, 3, 30, 15, tzinfo=UTC)
    # Midnight did not exist that day; it begins when the clocks went to one o'clock.
    gap = start_of(date(2018, 11, 4), ZoneInfo("America/Sao_Paulo"))
    assert gap == datetime(2018, 11, 4, 3, tzinfo=UTC)


def test_the_calendar_ends_with_its_last_moment() -> None:
    new_york, berlin = ZoneInfo("America/New_York"), ZoneInfo("Europe/Berlin")
    assert start_of(date.min, berlin) == datetime.min.replace(tzinfo=UTC)
    assert (
        end_of(date.max, berlin) == end_of(date.max, new_york) == datetime.max.replace(tzinfo=UTC)
    )
    assert end_of(SUNDAY, ZoneInfo("UTC")) == datetime(2024, 4, 1, tzinfo=UTC)
