"""The pace of an operation over many runs."""

import pytest

from models.automation.run_operations.rules import chunk_of, reason_of
from runtime.errors import ConflictError


@pytest.mark.parametrize(
    ("rate", "runs"), [(None, 250), (0.01, 1), (0.99, 1), (1, 1), (7.9, 7), (250, 250), (1000, 250)]
)
def test_a_transaction_treats_the_runs_of_a_second(rate: float | None, runs: int) -> None:
    assert chunk_of(rate) == runs


def test_a_reason_has_up_to_500_characters() -> None:
    assert reason_of(ConflictError("x" * 501)) == "x" * 500
