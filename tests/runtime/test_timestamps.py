from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from runtime.clock import wire_timestamp


def test_an_hour_that_a_zone_repeats_is_two_moments() -> None:
    first = datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"))
    assert wire_timestamp(first) == "2026-10-25T00:30:00.000Z"
    assert wire_timestamp(first.replace(fold=1)) == "2026-10-25T01:30:00.000Z"


def test_less_than_a_millisecond_is_cut_off() -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, 678_999, tzinfo=UTC)
    assert wire_timestamp(moment) == "2026-01-02T03:04:05.678Z"
