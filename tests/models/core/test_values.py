"""Equality of JSON values."""

from typing import Any

import pytest

from models.core.values import same_json


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (1, 1.0, True),
        (1, True, False),
        (0, False, False),
        ("", None, False),
        ({"a": 1, "b": [1]}, {"b": [1.0], "a": 1}, True),
        ([1, 2], [2, 1], False),
        ({"a": None}, {}, False),
        ([True], [1], False),
        (0.1 + 0.2, 0.3, False),
        (10**23, 1e23, True),
        (2**53 + 1, float(2**53), False),
    ],
    ids=range(11),
)
def test_equality_of_json(one: Any, other: Any, same: bool) -> None:
    assert same_json(one, other) is same
    assert same_json(other, one) is same
