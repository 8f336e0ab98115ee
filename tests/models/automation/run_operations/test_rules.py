"""The pace of an operation over many runs."""

import pytest

from models.automation.run_operations.rules import chunk_of


@pytest.mark.parametrize(
    ("rate", "runs"), [(None, 250), (0.01, 1), (0.99, 1), (1, 1), (7.9, 7), (250, 250), (1000, 250)]
)
def test_a_transaction_treats_the_runs_of_a_second(rate: float | None, runs: int) -> None:
    assert chunk_of(rate) == runs
