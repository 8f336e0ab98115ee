"""Plans: every accepted plan can be built."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.workspace.changes.operations import check_operations
from models.workspace.starters.rules.operations import counts_of, operations_of
from models.workspace.starters.rules.plan import (
    MAX_DEPTH,
    MAX_NODES,
    normalized,
    plan_fields,
    plan_views,
)
from models.workspace.starters.seeding import templates
from models.workspace.starters.shapes import StarterPlan
from runtime.errors import ValidationError

Json = dict[str, Any]


def database(label: str, **more: Any) -> Json:
    return {"type": "database", "label": label, **more}


def plan(*nodes: Any) -> StarterPlan:
    return normalized({"headline": "Plan", "nodes": list(nodes)})


def depth(made: StarterPlan) -> int:
    parents = {node.ref: node.parent_ref for node in made.nodes}

    def above(ref: str | None) -> int:
        return 0 if ref is None else 1 + above(parents[ref])

    return max(above(node.ref) for node in made.nodes)


@pytest.mark.parametrize(
    "nothing",
    [
        {},
        None,
        [],
        "plan",
        {"nodes": []},
        {"nodes": {"type": "database", "label": "A"}},
        {"nodes": [None, 1, "page", [], {}]},
        {"nodes": [{"type": "spaceship", "label": "A"}, {"type": 7, "label": "B"}]},
        {"nodes": [{"type": "database"}, {"type": "page", "label": "<b> </b>"}]},
        {"nodes": [{"type": "form", "label": "Into no database"}]},
    ],
)
def test_an_empty_plan_is_refused(nothing: Any) -> None:
    with pytest.raises(ValidationError, match="plan is empty"):
        normalized(nothing)


def test_cycles_are_opened() -> None:
    one = {"type": "folder", "ref": "a", "label": "A", "parentRef": "b"}
    other = {"type": "folder", "ref": "b", "label": "B", "parentRef": "a"}
    own = {"type": "page", "ref": "c", "label": "C", "parentRef": "c"}
    made = plan(one, other, own, database("D", parentRef="b"))
    assert {node.label for node in made.nodes} == {"A", "B", "C", "D"}
    assert depth(made) <= MAX_DEPTH


def test_a_thousand_nodes_are_cut_off() -> None:
    made = plan(*(database(f"Database {place}") for place in range(1_000)))
    assert len(made.nodes) == MAX_NODES
    deep: Json = {"type": "page", "label": "Leaf"}
    for place in range(60):
        deep = {"type": "folder", "label": f"Folder {place}", "children": [deep]}
    assert depth(plan(deep)) == MAX_DEPTH


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("<script>alert(1)</script>Tasks", "Tasks"),
        ("<img src=x onerror=alert(1)>Tasks", "Tasks"),
        ("<scr<script></script>ipt>alert(1)</script>Tasks", "ipt>alert(1) Tasks"),
        ("Ta\x00sks\u202e", "Ta sks"),
        ("3 < 5 and 7 > 2", "3 < 5 and 7 > 2"),
        ("  Tea\n\tand  cake ", "Tea and cake"),
    ],
)
def test_labels_are_plain_words(written: str, shown: str) -> None:
    assert plan(database(written)).nodes[0].label == shown


def test_unknown_kinds_become_known_ones() -> None:
    fields = [
        {"key": "name", "label": "Company", "kind": "text"},
        {"label": "Shape", "kind": "hologram"},
        {"label": "Nowhere", "kind": "relation", "target": "gone"},
        {"label": "Stage", "kind": "status"},
        "no field",
    ]
    records = [
        {"title": "Acme", "data": {"stage": "in progress", "shape": 7, "unknown": "x"}},
        {"title": ""},
        "Plain",
    ]
    (made,) = plan(database("Leads", fields=fields, records=records)).nodes
    assert [(one.key, one.kind.value) for one in made.fields] == [
        ("title", "text"),
        ("shape", "text"),
        ("nowhere", "text"),
        ("stage", "status"),
    ]
    assert made.fields[0].label == "Company"
    assert [(one.title, one.data) for one in made.records] == [
        ("Acme", {"stage": "in_progress"}),
        ("Plain", None),
    ]


_NAMES = st.sampled_from(["a", "b", "c", "A b", "<b>", ""])
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | _NAMES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=3),
    max_leaves=5,
)
_FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "key": _NAMES | _JSON,
        "label": _NAMES | _JSON,
        "kind": st.sampled_from(["text", "status", "relation", "date", "rating"]) | _JSON,
        "options": st.lists(_NAMES | _JSON, max_size=3) | _JSON,
        "target": _NAMES,
    },
)
_NODES = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["folder", "database", "page", "dashboard", "form"]) | _JSON,
        "ref": _NAMES | _JSON,
        "label": _NAMES | _JSON,
        "parentRef": _NAMES | _JSON,
        "fields": st.lists(_FIELDS | _JSON, max_size=4) | _JSON,
        "records": st.lists(st.fixed_dictionaries({"title": _NAMES, "data": _JSON}), max_size=3),
        "children": _JSON,
        "content": _JSON,
        "views": _JSON,
        "databaseRef": _NAMES,
    },
)


@given(st.fixed_dictionaries({"nodes": st.lists(_NODES, max_size=6)}))
def test_any_plan_is_refused_or_can_be_built(written: Json) -> None:
    try:
        made = normalized(written)
    except ValidationError:
        return
    check_operations(operations_of(made))
    assert depth(made) <= MAX_DEPTH
    again = normalized(made.model_dump(mode="json", by_alias=True))
    assert again == made


@pytest.mark.parametrize("key", templates())
def test_shipped_templates_are_whole(key: str) -> None:
    template = templates()[key]
    assert template.key == key
    check_operations(template.operations)
    counts = counts_of(template.operations)
    assert counts.database_count >= 2
    assert counts.record_count >= 1
    assert counts.page_count >= 1
    assert counts.dashboard_count >= 1
    assert counts.view_count >= 2 * counts.database_count


def test_there_are_at_least_eight_templates() -> None:
    assert len(templates()) >= 8


FIELDS = [
    {"label": "Due", "kind": "date"},
    {"label": "State", "kind": "select", "options": ["open", "done"]},
    {"label": "Phase", "kind": "select", "options": ["first", "last"]},
]


@pytest.mark.parametrize(
    ("view", "served"),
    [
        ({"kind": "board"}, "State"),
        ({"kind": "board", "field": "Due"}, "State"),
        ({"kind": "board", "field": "Phase"}, "Phase"),
        ({"kind": "calendar", "field": "Phase"}, "Due"),
    ],
)
def test_a_view_stands_on_a_field_that_serves_it(view: Json, served: str) -> None:
    fields = plan_fields(FIELDS)
    keys = {field.label: field.key for field in fields}
    named = view | ({"field": keys[view["field"]]} if "field" in view else {})
    (made,) = plan_views([{"label": "View", **named}], fields)
    assert made.field == keys[served]


def test_an_icon_has_up_to_8_characters() -> None:
    (node,) = plan(database("A", icon="12345678901")).nodes
    assert node.icon == "12345678"


@pytest.mark.parametrize(
    ("kind", "values", "kept"),
    [
        ("rating", [-1, 0, 5, 6, 2.5, True, "3"], [None, 0, 5, None, None, None, None]),
        ("number", [-1, 2.345, 1e12, True, "3", math.inf], [-1, 2.35, None, None, None, None]),
        ("checkbox", [True, False, 1, "yes"], [True, False, None, None]),
    ],
)
def test_an_example_has_values_of_the_kind_alone(
    kind: str, values: list[Any], kept: list[Any]
) -> None:
    records = [{"title": "A", "data": {"value": value}} for value in values]
    fields = [{"label": "Value", "kind": kind}]
    (made,) = plan(database("B", fields=fields, records=records)).nodes
    assert [(one.data or {}).get("value") for one in made.records] == kept


def test_nodes_behind_what_is_none_are_kept() -> None:
    made = plan(None, database("A"), 7, database("B", children=[None, database("C")]))
    assert [node.label for node in made.nodes] == ["A", "B", "C"]
