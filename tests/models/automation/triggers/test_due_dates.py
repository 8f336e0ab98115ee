"""When dates are due, over days that clocks make longer or shorter."""

from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.automation.triggers.rules import DateWatch
from models.data.fields.rules.fields import FieldKind

ZONES = ("UTC", "Europe/Berlin", "America/Sao_Paulo", "Asia/Kolkata", "Pacific/Apia")
"""Sao Paulo once skipped midnights; Apia once skipped a whole day, 30 December 2011."""


WHEN = st.datetimes(
    datetime.combine(date(2011, 12, 25), time()),
    datetime.combine(date(2026, 12, 31), time()),
    timezones=st.just(UTC),
)


def watch(kind: FieldKind, minutes: int = 0, zone: str = "UTC") -> DateWatch:
    return DateWatch("day", kind, timedelta(minutes=minutes), ZoneInfo(zone))


@pytest.mark.parametrize(
    ("zone", "minutes", "day", "due"),
    [
        ("UTC", 0, "2026-06-01", "2026-06-01T00:00Z"),
        ("Europe/Berlin", 0, "2026-06-01", "2026-05-31T22:00Z"),
        ("Europe/Berlin", 0, "2026-01-01", "2025-12-31T23:00Z"),
        # The clock skips 02:00 to 03:00 on 29 March and repeats it on 25 October.
        ("Europe/Berlin", 540, "2026-03-29", "2026-03-29T07:00Z"),
        ("Europe/Berlin", 540, "2026-03-28", "2026-03-28T08:00Z"),
        ("Europe/Berlin", 150, "2026-03-29", "2026-03-29T01:00Z"),
        ("Europe/Berlin", 150, "2026-10-25", "2026-10-25T00:30Z"),
        ("Europe/Berlin", -1440, "2026-03-30", "2026-03-28T23:00Z"),
        # There was no midnight: the day began at one o'clock.
        ("America/Sao_Paulo", 0, "2018-11-04", "2018-11-04T03:00Z"),
    ],
)
def test_a_day_is_due_on_the_clock_of_its_zone(zone: str, minutes: int, day: str, due: str) -> None:
    assert watch(FieldKind.DATE, minutes, zone).due(day) == datetime.fromisoformat(due)


def test_a_time_is_due_in_every_zone() -> None:
    kind = FieldKind.DATETIME
    due = datetime(2026, 3, 29, 1, 30, tzinfo=UTC)
    for zone in ZONES:
        assert watch(kind, -30, zone).due("2026-03-29T02:00:00.000Z") == due


@pytest.mark.parametrize("value", [None, 5, "", "soon", "2026-02-30", "9999-12-31"])
def test_a_value_that_is_no_date_is_never_due(value: object) -> None:
    assert watch(FieldKind.DATE, 60 * 24 * 300).due(value) is None


def test_an_archived_record_is_never_due() -> None:
    record = {"archived": False, "data": {"day": "2026-01-01"}, "system": {}}
    one = watch(FieldKind.DATE)
    assert one.due_of(record) == datetime(2026, 1, 1, tzinfo=UTC)
    assert one.due_of({**record, "archived": True}) is None
    assert one.due_of(None) is None


@given(
    zone=st.sampled_from(ZONES),
    minutes=st.integers(-3_000, 3_000),
    start=WHEN,
    steps=st.lists(st.integers(1, 3_000), min_size=1, max_size=12),
)
def test_windows_side_by_side_find_every_day_once(
    zone: str, minutes: int, start: datetime, steps: list[int]
) -> None:
    one = watch(FieldKind.DATE, minutes, zone)
    edges = [start]
    for step in steps:
        edges.append(edges[-1] + timedelta(minutes=step))
    found = [day for low, high in pairwise(edges) for day in one.days(low, high)]
    assert found == one.days(edges[0], edges[-1])
    assert len(set(found)) == len(found)
    near = [start.date() + timedelta(days=n) for n in range(-5, 40)]
    due = [day for day in near if edges[0] < (one.due(day.isoformat()) or edges[0]) <= edges[-1]]
    assert [day for day in found if day in set(near)] == due


@given(
    zone=st.sampled_from(ZONES),
    after=WHEN,
)
def test_the_next_day_is_the_first_that_a_window_finds(zone: str, after: datetime) -> None:
    one = watch(FieldKind.DATE, 90, zone)
    due = one.next_day(after)
    assert due is not None
    assert one.days(after, due)
    assert one.days(after, due - timedelta(milliseconds=1)) == []
    assert isinstance(one.days(after, due)[0], date)
