"""The runs that an operation applies to, and its pace."""

import pytest

from models.automation.run_operations.rules import chunk_of, fitting, reason_of
from models.core.base import JsonObject
from runtime.errors import ConflictError


@pytest.mark.parametrize(
    ("rate", "runs"), [(None, 250), (0.01, 1), (0.99, 1), (1, 1), (7.9, 7), (250, 250), (1000, 250)]
)
def test_a_transaction_treats_the_runs_of_a_second(rate: float | None, runs: int) -> None:
    assert chunk_of(rate) == runs


def test_a_reason_has_up_to_500_characters() -> None:
    assert reason_of(ConflictError("x" * 501)) == "x" * 500


OPEN = {"queued", "running", "waiting"}
ENDED = {"succeeded", "failed", "cancelled", "timed_out"}


@pytest.mark.parametrize(
    ("action", "parameters", "statuses"),
    [
        ("cancel", {}, OPEN),
        ("retry", {}, ENDED),
        ("retry", {"from": "start"}, ENDED),
        ("retry", {"from": "failed"}, ENDED - {"succeeded"}),
        ("resume", {}, {"running", "waiting"}),
        ("undo", {"from": "failed"}, ENDED),
    ],
)
def test_an_action_applies_to_runs_of_its_statuses(
    action: str, parameters: JsonObject, statuses: set[str]
) -> None:
    assert set(fitting(action, parameters)) == statuses
