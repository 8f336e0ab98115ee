"""What metadata may be, and what copies are called."""

from typing import Any

import pytest

from models.content.items.rules import (
    MAX_METADATA_BYTES,
    MAX_METADATA_DEPTH,
    MAX_TITLE,
    WRITE_SCOPES,
    ItemKind,
    copy_title,
    metadata_problem,
)


def test_every_kind_has_a_write_scope() -> None:
    assert WRITE_SCOPES.keys() == set(ItemKind)


def test_metadata_is_bounded_in_size_as_bytes() -> None:
    frame = len('{"a": ""}')
    assert metadata_problem({"a": "x" * (MAX_METADATA_BYTES - frame)}) is None
    assert metadata_problem({"a": "x" * (MAX_METADATA_BYTES - frame + 1)}) is not None
    assert metadata_problem({"a": "é" * (MAX_METADATA_BYTES // 2)}) is not None


def test_metadata_is_bounded_in_depth() -> None:
    deep: Any = 1
    for _ in range(MAX_METADATA_DEPTH - 1):
        deep = {"a": deep}
    assert metadata_problem(deep) is None
    assert metadata_problem({"a": deep}) is not None
    assert metadata_problem({"a": [[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]}) is not None


@pytest.mark.parametrize(
    ("title", "taken", "chosen"),
    [
        ("Plan", [], "Plan copy"),
        ("Plan", ["Plan copy"], "Plan copy 2"),
        ("Plan", ["Plan copy", "Plan copy 2", "Plan copy 4"], "Plan copy 3"),
        ("Plan copy", ["Plan copy"], "Plan copy 2"),
        ("Plan copy 2", ["Plan copy", "Plan copy 2"], "Plan copy 3"),
        ("copy", [], "copy copy"),
        ("x" * MAX_TITLE, [], "x" * (MAX_TITLE - 12) + " copy"),
    ],
)
def test_copies_are_numbered(title: str, taken: list[str], chosen: str) -> None:
    assert copy_title(title, taken) == chosen
    assert len(chosen) <= MAX_TITLE


def test_metadata_has_up_to_16_levels() -> None:
    def nested(levels: int) -> Any:
        return {"a": nested(levels - 1)} if levels else 1

    assert metadata_problem(nested(15)) is None
    assert metadata_problem(nested(16)) == "is nested deeper than 16 levels"
