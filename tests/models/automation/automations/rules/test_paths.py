"""Paths: what they find, and that hostile ones are refused quickly."""

import time
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonpath_ng.parser import parse

from models.automation.automations.rules.language.paths import compile_path
from models.core.expressions.rules.errors import BindingError

DATA: Any = {
    "a": {"b": [{"c": 1}, {"c": 2}]},
    "x-y": {"ünï": 3},
    "a b": 4,
    "0": "zero",
    "s": "text",
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("", DATA),
        ("$", DATA),
        ("a.b[1].c", 2),
        ("$.a.b[-1].c", 2),
        (" $.a.b.0.c ", 1),
        ("x-y.ünï", 3),
        ("['a b']", 4),
        ('$["a b"]', 4),
        ("0", "zero"),
        ("a.b[7].c", None),
        ("a.b.c", None),
        ("s.length", None),
        ("s[0]", None),
        ("a[0]", None),
        ("__class__", None),
        ("a.__class__.__mro__", None),
        ("$.a.b[*].c", [1, 2]),
        ("a.b[0:1].c", [1]),
        ("a.b[0,1].c", [1, 2]),
        ("a.b[0,0,00].c", [1]),
        ("$..c", [1, 2]),
        ("$['s','0']", ["text", "zero"]),
        ("$..nothing", []),
    ],
)
def test_a_path_finds_its_value(path: str, found: object) -> None:
    assert compile_path(path).get(DATA) == found


@pytest.mark.parametrize(
    "path",
    [
        "a" * 10_000,
        "a" * 257,
        ".a" * 40,
        "$" + ".a" * 33,
        ".a",
        "a.",
        "a..",
        "$a",
        "a b",
        "a[",
        "a[x]",
        "a[1",
        "a[99999999999]",
        "a[?(@.x > 1)]",
        "a[?(@.x =~ '(a+)+$')]",
        "$.a + $.b",
        "$.a.`len`",
        "$.a.`sub(/a/, b)`",
        "$..a..b",
        "$..*..*",
        "a[0,-1]",
        "a | b",
        "a\x00b",
        "['a\x00b']",
        "a'b",
        "['a\\'b']",
        "${a}",
        "a[1]b",
    ],
)
def test_a_path_that_is_none_is_refused(path: str) -> None:
    with pytest.raises(BindingError) as refusal:
        compile_path(path)
    assert len(refusal.value.message) < 300


@pytest.mark.parametrize(
    "path", ["[0,0,0,0]" * 28, "$" + "[*]" * 32, "$..*" + "[*]" * 31, "$" + "['a','a','b']" * 19]
)
def test_a_path_matches_a_value_once(path: str) -> None:
    deep: Any = 1
    for _ in range(40):
        deep = {"a": [deep], "b": [0, 0]} if isinstance(deep, list) else [deep]
    began = time.thread_time()
    matches = compile_path(path).get(deep)
    assert isinstance(matches, list)
    assert len(matches) < 1_000
    assert time.thread_time() - began < 3


@pytest.mark.parametrize("path", ["$..*", "$..a", "$[*][*][0]"])
def test_a_path_that_would_search_for_long_ends_soon(path: str) -> None:
    data: Any = [[[1], *[1] * 9] for _ in range(60_000)]
    began = time.thread_time()
    with pytest.raises(BindingError, match="deeper"):
        compile_path(path).get(data)
    assert time.thread_time() - began < 3


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner),
    max_leaves=10,
)
_STEPS = st.lists(
    st.sampled_from(
        [".a", ".b", "[0]", "[-1]", "['c']", "[*]", ".*", "[0:2]", "[0,1]", "['a','b']"]
    )
)


@settings(deadline=None)
@given(_JSON, _STEPS, st.booleans())
def test_no_data_crashes_a_path(data: Any, steps: list[str], deep: bool) -> None:
    path = "$" + ("..a" if deep else "") + "".join(steps[:8])
    found = compile_path(path).get(data)
    if deep or any(mark in path for mark in "*:,"):
        assert found == [match.value for match in parse(path).find(data)]


@settings(deadline=None)
@given(st.text(max_size=40))
def test_no_text_crashes_the_path_parser(text: str) -> None:
    with suppress(BindingError):
        compile_path(text).get({"a": [1]})
