"""The guard of a data source against refreshes that remove many rows."""

import pytest

from models.sources.data_source_runs.rules import exceeds_guard


@pytest.mark.parametrize(
    ("removed", "known", "percent", "is_exceeded"),
    [
        (0, 0, 0, False),
        (1, 100, 0, True),
        (20, 100, 20, False),
        (21, 100, 20, True),
        (1, 3, 33, True),
        (1, 3, 34, False),
        (99, 100, 100, False),
        (200_001, 1_000_000, 20, True),
    ],
)
def test_a_guard_allows_its_share_and_no_row_more(
    removed: int, known: int, percent: int, is_exceeded: bool
) -> None:
    assert exceeds_guard(removed, known, percent) is is_exceeded
