"""The rate of a place, the room of a place, and how long calls stay away."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.sources.outbound_limits.rules import (
    AHEAD,
    MOST_CATCH_UP,
    Pace,
    next_round,
    slower,
    stay,
)

NOW = datetime(2030, 1, 1, tzinfo=UTC)
_SECONDS = st.floats(0, 5, allow_nan=False)


def _at(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


@given(
    rate=st.floats(0.1, 100),
    arrivals=st.lists(_SECONDS, min_size=1, max_size=60),
    lateness=st.lists(_SECONDS, min_size=60, max_size=60),
)
def test_no_window_has_more_calls_than_the_rate_gives_it(
    rate: float, arrivals: list[float], lateness: list[float]
) -> None:
    pace, gone = Pace(per_second=rate), list[datetime]()
    for arrival, late in zip(sorted(arrivals), lateness, strict=False):
        now = _at(arrival)
        moment = pace.first_moment(now)
        pace = Pace(per_second=rate, next_at=moment + pace.interval, free_at=pace.free_at)
        asked = max(moment, now) + timedelta(seconds=late)
        went = max(asked, pace.turn(moment, 0), *gone[-1:])
        pace = Pace(per_second=rate, next_at=pace.next_at, free_at=pace.free_after(went))
        gone.append(went)
    for first, start in enumerate(gone):
        for last in range(first, len(gone)):
            seconds = (gone[last] - start).total_seconds()
            burst = 1 + min(1.0, MOST_CATCH_UP.total_seconds() * rate)
            assert last - first + 1 <= seconds * rate + burst + 1e-3


@given(rate=st.floats(0.01, 100), waiting=st.integers(0, 50), ahead=_SECONDS)
def test_moments_are_given_in_order_and_only_a_little_ahead(
    rate: float, waiting: int, ahead: float
) -> None:
    pace = Pace(per_second=rate, next_at=_at(ahead))
    turns = next_round(pace, NOW, held=0, waiting=waiting)
    assert list(turns.moments) == sorted(turns.moments)
    assert all(_at(ahead) <= moment <= NOW + AHEAD for moment in turns.moments)
    if waiting and ahead <= AHEAD.total_seconds():
        assert turns.moments, "who is first is never passed over"
        assert turns.next_at == turns.moments[-1] + pace.interval


@given(at_once=st.integers(1, 20), held=st.integers(0, 30), waiting=st.integers(0, 50))
def test_a_bound_is_filled_and_never_passed(at_once: int, held: int, waiting: int) -> None:
    turns = next_round(Pace(at_once=at_once), NOW, held, waiting)
    assert len(turns.moments) == min(max(0, at_once - held), waiting)
    assert set(turns.moments) <= {NOW}


def test_no_call_has_a_time_in_a_pause() -> None:
    pace = Pace(per_second=5, paused_until=_at(60))
    assert not next_round(pace, NOW, held=0, waiting=3).moments
    assert stay(pace, NOW, held=0, before=2, waited=timedelta()) == timedelta(seconds=60.4)
    after = next_round(pace, _at(59), held=0, waiting=1)
    assert list(after.moments) == [_at(60)]


def test_no_call_uses_a_paused_connection_and_checks_grow_rare() -> None:
    paused = Pace(per_second=5, at_once=3, stopped=True)
    assert not next_round(paused, NOW, held=0, waiting=3).moments
    stays = [stay(paused, NOW, 0, 0, timedelta(seconds=waited)) for waited in (0, 60, 86_400)]
    assert stays == [timedelta(seconds=10), timedelta(minutes=1), timedelta(minutes=30)]


@pytest.mark.parametrize(
    ("per_second", "release_rate", "rate"),
    [(None, None, None), (5, None, 5), (None, 60, 1), (5, 60, 1), (0.5, 60, 0.5)],
)
def test_a_release_goes_by_the_slower_of_its_rate_and_the_limit(
    per_second: float | None, release_rate: int | None, rate: float | None
) -> None:
    assert slower(per_second, release_rate) == rate


def test_a_call_that_waits_for_room_checks_less_and_less_often() -> None:
    full = Pace(at_once=1)
    stays = [stay(full, NOW, 1, 0, timedelta(seconds=waited)) for waited in (0, 60, 3_600)]
    assert stays == [timedelta(seconds=10), timedelta(minutes=1), timedelta(minutes=5)]


def test_a_wait_of_an_hour_has_few_rounds() -> None:
    rounds, waited = 0, timedelta()
    while waited < timedelta(hours=1):
        waited += stay(Pace(at_once=1), NOW, 1, 5, waited)
        rounds += 1
    assert rounds < 20
