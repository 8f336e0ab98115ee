"""When a receiver that fails is asked again."""

from datetime import UTC, datetime, timedelta

import pytest

from models.messages.deliveries.lines import (
    FIRST_CIRCUIT_PAUSE,
    LONGEST_CIRCUIT_PAUSE,
    MOST_FAILURES,
    SPREAD,
    Circuit,
    after_failure,
    after_success,
    pause_of,
)
from models.messages.deliveries.rules import CircuitState

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def failed(times: int) -> Circuit:
    found = Circuit()
    for _ in range(times):
        found = after_failure(found, NOW, 0)
    return found


def test_it_opens_after_failures_in_a_row() -> None:
    assert failed(MOST_FAILURES - 1).state(NOW) is CircuitState.CLOSED
    once_more = after_failure(after_success(failed(MOST_FAILURES - 1), NOW), NOW, 0)
    assert (once_more.state(NOW), once_more.failures) == (CircuitState.CLOSED, 1)
    opened = failed(MOST_FAILURES)
    assert (opened.state(NOW), opened.since, opened.failures) == ("open", NOW, MOST_FAILURES)
    assert opened.retry_at == NOW + timedelta(seconds=FIRST_CIRCUIT_PAUSE)
    assert opened.state(NOW + timedelta(seconds=FIRST_CIRCUIT_PAUSE)) is CircuitState.HALF_OPEN


def test_an_attempt_begun_before_it_opened_does_not_prolong_it() -> None:
    opened = failed(MOST_FAILURES)
    later = after_failure(opened, NOW + timedelta(seconds=1), 0)
    assert (later.retry_at, later.failures) == (opened.retry_at, MOST_FAILURES + 1)


def test_each_trial_that_fails_doubles_the_pause_and_a_success_closes_it() -> None:
    opened, moment = failed(MOST_FAILURES), NOW
    for doubled in (2, 4, 8):
        moment = opened.retry_at or moment
        opened = after_failure(opened, moment, 0)
        assert opened.retry_at == moment + timedelta(seconds=FIRST_CIRCUIT_PAUSE * doubled)
        assert opened.since == NOW
    closed = after_success(opened, moment)
    assert closed == Circuit(since=moment, succeeded_at=moment)
    assert closed.state(moment) is CircuitState.CLOSED


@pytest.mark.parametrize("opened", [0, 3, 20, 10_000])
def test_a_pause_has_an_end_and_is_spread(opened: int) -> None:
    longest, shortest = pause_of(opened, 0), pause_of(opened, 1)
    assert FIRST_CIRCUIT_PAUSE <= longest <= LONGEST_CIRCUIT_PAUSE
    assert shortest == pytest.approx(longest * (1 - SPREAD))


def test_a_receiver_that_names_a_later_time_is_not_tried_before() -> None:
    asked = after_failure(failed(MOST_FAILURES - 1), NOW, 0, retry_after=900)
    assert asked.retry_at == NOW + timedelta(seconds=900)
