"""What a look changes, as pure functions."""

from datetime import UTC, datetime, timedelta

import pytest
from pydantic import ValidationError

from models.automation.alert_rules.shapes import (
    AlertChange,
    AlertState,
    change_of,
    minutes_since,
    read_condition,
    spoken,
)

NOON = datetime(2026, 5, 17, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
OK, FIRING = AlertState.OK, AlertState.FIRING


@pytest.mark.parametrize(
    ("state", "holds", "told", "repeat", "change"),
    [
        (OK, False, None, None, None),
        (OK, True, None, None, AlertChange.FIRED),
        (OK, True, NOON, HOUR, AlertChange.FIRED),
        (FIRING, True, NOON - HOUR, None, None),
        (FIRING, True, NOON - HOUR, HOUR, AlertChange.REPEATED),
        (FIRING, True, NOON - HOUR + timedelta(seconds=1), HOUR, None),
        (FIRING, False, NOON - HOUR, HOUR, AlertChange.RESOLVED),
    ],
)
def test_a_change_is_notified_once_and_again_only_when_requested(
    state: AlertState,
    holds: bool,
    told: datetime | None,
    repeat: timedelta | None,
    change: AlertChange | None,
) -> None:
    assert change_of(state, holds, told, repeat, NOON) is change


@pytest.mark.parametrize(
    ("minutes", "words"),
    [
        (0, "0 minutes"),
        (1, "1 minute"),
        (90, "90 minutes"),
        (120, "2 hours"),
        (1440, "1 day"),
        (4320, "3 days"),
    ],
)
def test_times_are_written_in_words(minutes: int, words: str) -> None:
    assert spoken(minutes) == words


def test_clocks_that_differ_give_no_negative_time() -> None:
    assert minutes_since(NOON + HOUR, NOON) == 0
    assert minutes_since(NOON - timedelta(seconds=119), NOON) == 1


@pytest.mark.parametrize(
    "condition",
    [
        {"kind": "failures", "runs": 0, "minutes": 5},
        {"kind": "failures", "runs": 1_001, "minutes": 5},
        {"kind": "failures", "runs": 1, "minutes": 1_441},
        {"kind": "failures", "runs": 1, "minutes": 5, "query": {"status": "failed"}},
        {"kind": "failures", "runs": 1, "minutes": 5, "query": {"period": "day"}},
        {"kind": "duration", "minutes": 5, "query": {"minSeconds": 3}},
        {"kind": "silence", "minutes": 5, "query": {}},
        {"kind": "silence", "minutes": 5},
        {"kind": "worker_gone", "minutes": 0},
        {"kind": "connection_failing", "failures": 3},
        {"kind": "weather", "minutes": 5},
    ],
)
def test_conditions_out_of_their_bounds_are_refused(condition: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        read_condition(condition)
