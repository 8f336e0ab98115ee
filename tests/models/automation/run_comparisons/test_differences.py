"""Differences of JSON values: none of equal ones, each of the others, and never too many."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from models.automation.run_comparisons import (
    LONGEST,
    MOST_VALUES,
    Difference,
    ValueChange,
    differences,
)

SCALARS = st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3)
KEYS = st.sampled_from(["a", "b", "a.b", "", "0", "ü", 'q"'])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)


def listed(before: object, after: object) -> list[tuple[str, str, str | None, str | None]]:
    found, is_complete = differences(before, after, 100)
    assert is_complete
    return [(one.path, one.change.value, one.before, one.after) for one in found]


def canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True)


@given(VALUES, VALUES)
def test_values_differ_exactly_where_differences_are_reported(before: Any, after: Any) -> None:
    found, is_complete = differences(before, after, 1_000)
    assert is_complete
    assert bool(found) == (canonical(before) != canonical(after))
    paths = [one.path for one in found]
    assert len(set(paths)) == len(paths), "each place has a path of its own"
    for one in found:
        assert (one.before is None) == (one.change is ValueChange.ADDED)
        assert (one.after is None) == (one.change is ValueChange.REMOVED)


@given(VALUES, VALUES)
def test_the_way_back_is_reported_in_the_same_places(before: Any, after: Any) -> None:
    turned = {
        ValueChange.ADDED: ValueChange.REMOVED,
        ValueChange.REMOVED: ValueChange.ADDED,
        ValueChange.CHANGED: ValueChange.CHANGED,
    }
    there, _ = differences(before, after, 1_000)
    back, _ = differences(after, before, 1_000)
    assert {(one.path, one.change, one.before, one.after) for one in there} == {
        (one.path, turned[one.change], one.after, one.before) for one in back
    }


@given(VALUES, VALUES, st.integers(0, 3))
def test_no_more_are_reported_than_allowed(before: Any, after: Any, most: int) -> None:
    every, _ = differences(before, after, 1_000)
    some, is_complete = differences(before, after, most)
    assert some == every[:most]
    assert is_complete == (len(every) <= most)


def test_paths_name_keys_and_places() -> None:
    before = {"items": [{"n": 1}, {"n": 2}], "a b": 1, "gone": True, "same": [1]}
    after = {"items": [{"n": 1}, {"n": 3}, {}], "a b": "1", "same": [1], "new": None}
    assert listed(before, after) == [
        ("items[1].n", "changed", "2", "3"),
        ("items[2]", "added", None, "{}"),
        ('["a b"]', "changed", "1", '"1"'),
        ("gone", "removed", "true", None),
        ("new", "added", None, "null"),
    ]


def test_true_is_not_one_and_one_is_one() -> None:
    assert listed({"a": True, "b": 1}, {"a": 1, "b": 1.0}) == [("a", "changed", "true", "1")]


def test_of_long_texts_the_part_that_differs_is_reported() -> None:
    before, after = "x" * 5_000 + "old", "x" * 5_000 + "new"
    (one,), _ = differences({"t": before}, {"t": after}, 9)
    assert isinstance(one, Difference)
    assert one.before is not None
    assert one.after is not None
    assert (one.before[0], one.before[-4:]) == ("…", 'old"')
    assert (one.after[0], one.after[-4:]) == ("…", 'new"')
    assert max(len(one.before), len(one.after)) <= LONGEST + 2


def test_deep_and_wide_values_cost_a_bounded_time() -> None:
    deep: Any = 1
    for _ in range(20_000):
        deep = [deep]
    assert differences(deep, deep, 9) == ([], True)
    wide = list(range(2 * MOST_VALUES))
    found, is_complete = differences(wide, [*wide[:-1], 0], 9)
    assert (found, is_complete) == ([], False), "it was not looked at, and says so"
