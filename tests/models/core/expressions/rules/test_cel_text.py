"""Rewriting CEL text without moving what it says."""

import pytest

from models.core.expressions.rules.cel_text import dotted, paths, selections, with_doubles


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("record['a'] + 1", "record.a    + 1"),
        ('record["ab"].size()', "record.ab   .size()"),
        ("record[ 'a' ]", "record.a     "),
        ("x.record['a']", "x.record['a']"),
        ("record['a b']", "record['a b']"),
        ("record[a]", "record[a]"),
        ("'record[\"a\"]' + record['b']", "'record[\"a\"]' + record.b   "),
        ("record['in']", "record.IN   "),
        ("record['a b'] + record[b] + record['c']", "record['a b'] + record[b] + record.c   "),
        ("record", "record"),
        ("record['a", "record['a"),
    ],
)
def test_an_index_is_written_as_a_selection_of_the_same_width(text: str, written: str) -> None:
    assert dotted(text, "record", lambda key: "IN" if key == "in" else key) == written
    assert len(written) == len(text)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("2 * x + 10", "2.0 * x + 10.0"),
        ("1.5 + 2u + 0x1F + 1e3", "1.5 + 2u + 0x1F + 1e3"),
        (".5 * x + x[.25e1] + 3", ".5 * x + x[.25e1] + 3.0"),
        ("'2' + x2 // 2", "'2' + x2 // 2"),
        ("", ""),
    ],
)
def test_whole_numbers_become_doubles(text: str, written: str) -> None:
    assert with_doubles(text) == written


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("data.id == trigger.order.id", {("order", "id")}),
        ("trigger['a'].?b[?'c'] == has(trigger.a)", {("a", "b", "c"), ("a",)}),
        ("trigger.rows[0].id + trigger.rows.size()", {("rows",)}),
        ("trigger == data || trigger[data.key]", {()}),
        ("data.trigger.id == 'trigger.id'", set()),
    ],
)
def test_the_paths_read_of_a_variable(text: str, read: set[tuple[str, ...]]) -> None:
    assert paths(text, "trigger") == read
    keys = None if () in read else {path[0] for path in read}
    assert selections(text, "trigger") == keys
