"""References of graphs: each planted one is found, no decoy is, and a rewritten graph compiles."""

import hashlib
import json
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.automation.automations.rules.graph.catalog import ReferenceCatalog
from models.automation.automations.rules.graph.compiler import compile_graph
from models.automation.automations.rules.graph.references import (
    REFERENCES_VERSION,
    graph_references,
)
from models.automation.automations.rules.graph.shapes import Graph
from models.core.references.rules import (
    Reference,
    as_stored,
    field_subject,
    from_stored,
    rewritten,
)
from models.data.fields.rules.fields import FieldKind, FieldSpec
from tests.support.exploring import examples

Json = dict[str, Any]

OWN, OTHER = (f"0198c5c2-7a3b-7c1d-9e4f-2b6a8d1c0e{end}" for end in ("5f", "60"))
KEY, NEW_KEY = "price", "unit_cost"

READS = [
    "trigger.record.data.price",
    "trigger.record.data['price'] == 1.0",
    'trigger.before.data["price"] != null',
    "coalesce(trigger.record.data.price, 0.0) > 1.0",
    "has(trigger.record.data.price) || trigger.record.title == 'price'",
    "trigger.record.?data.?price.orValue(0.0)",
    "trigger.record.data[?'price'].orValue(0.0)",
    "(true ? trigger.record : trigger.before).data.price",
    "nodes.own.records.map(r, r.data.price)",
    "nodes.own.records.filter(r, has(r.data.price)).size() > 0",
    "nodes.own.records.filter(r, has(r.data.price)).map(r, r.data.price)",
    "nodes.own.records[nodes.own.records.size() - 1].data.price",
    "nodes.own.records.exists(price, price.data.price == 1.0)",
    "nodes.own.records[0].data.price + nodes.own.records[1].data.price",
    "nodes.own.records.map(r, r.data)[0].price",
    "[trigger.record, trigger.before].map(r, {'r': r})[0].r.data.price",
    "'price' in trigger.changedKeys",
    "trigger.changedKeys.exists(key, key == 'price')",
]
DECOYS = [
    "nodes.other.records.map(r, r.data.price)",
    "nodes.other.records[0].data['price'] == 1.0",
    "trigger.record.title == 'price'",
    "{'price': 1}.price == 1",
    "nodes.own.records.map(price, price.title)",
    "vars.price == 'price'",
    "run.id + 'trigger.record.data.price'",
    "nodes.own.records.size() // trigger.record.data.price",
]
PATHS = [
    ("trigger", "record.data.price"),
    ("trigger", "$.record.data['price']"),
    ("trigger", "before.data.price"),
    ("node", "own.records[0].data.price"),
    ("node", "own.records[*].data.price"),
    ("node", "own.records[0:2].data['price']"),
    ("node", "passed.kept.data.price"),
]
OTHER_PATHS = [
    ("node", "other.records[0].data.price"),
    ("node", "other.records[*].data['price']"),
    ("trigger", "price"),
]


def _expression(text: str) -> Json:
    return {"type": "expression", "value": text}


def _template(text: str) -> Json:
    return {"type": "template", "value": f"price: {{{{ {text} }}}} and {{{{ 'price' }}}}"}


def _path(pair: tuple[str, str]) -> Json:
    return {"type": pair[0], "value": pair[1]}


planted = st.one_of(
    st.sampled_from(READS).map(_expression),
    st.sampled_from(READS).map(_template),
    st.sampled_from(PATHS).map(_path),
)
decoys = st.one_of(
    st.sampled_from(DECOYS).map(_expression),
    # A comment would hide the end of the template.
    st.sampled_from([one for one in DECOYS if "//" not in one]).map(_template),
    st.sampled_from(OTHER_PATHS).map(_path),
    st.just({"type": "literal", "value": {"price": "trigger.record.data.price"}}),
    st.just("price"),
)
bindings = st.lists(
    st.one_of(planted.map(lambda one: (one, True)), decoys.map(lambda one: (one, False))),
    min_size=1,
    max_size=6,
)


def _query(node: str, database: str, tested: str) -> Json:
    leaf = {"field": tested, "op": "is_not_empty"}
    query = {"filter": {"and": [leaf]}, "colors": [{"filter": leaf, "color": "red"}], "limit": 2}
    return {"id": node, "kind": "query_records", "config": {"databaseId": database, "query": query}}


def _graph(values: list[tuple[Any, bool]], writes: bool) -> tuple[Json, set[tuple[str, str]]]:
    """A graph with these values in it, and the places that name the field."""
    output = {f"v{place}": value for place, (value, _) in enumerate(values)}
    written = {KEY: 1} if writes else {"note": "price"}
    nodes: list[Json] = [
        _query("own", OWN, KEY if writes else "note"),
        _query("other", OTHER, KEY),
        {
            "id": "loop",
            "kind": "for_each",
            "config": {"items": {"type": "node", "value": "own.records"}},
        },
        {
            "id": "write",
            "kind": "update_record",
            "config": {"recordId": {"type": "item", "value": "id"}, "data": written},
        },
        {
            "id": "passed",
            "kind": "transform",
            "config": {"output": {"kept": {"type": "trigger", "value": "record"}}},
        },
        {"id": "last", "kind": "transform", "config": {"output": output}},
    ]
    ways = [
        ("own", "other"),
        ("other", "loop"),
        ("loop", "write"),
        ("loop", "passed"),
        ("passed", "last"),
    ]
    outcomes = {("loop", "write"): "item", ("loop", "passed"): "done"}
    edges = [{"from": a, "to": b, "outcome": outcomes.get((a, b), "always")} for a, b in ways]
    places = {
        ("last", f"config.output.v{place}.value")
        for place, (_, is_planted) in enumerate(values)
        if is_planted
    }
    if writes:
        places |= {("own", "config.query.filter.and.0.field"), ("write", "config.data.price")}
        places |= {("own", "config.query.colors.0.filter.field")}
    graph = Graph.model_validate({"nodes": nodes, "edges": edges, "variables": {"price": "x"}})
    return graph.to_json(), places


TRIGGER: Json = {"kind": "record_updated", "databaseId": OWN, "fieldKeys": [], "debounceSeconds": 0}


def _named(references: list[Reference], key: str) -> set[tuple[str, str]]:
    return {(one.node, one.path) for one in references if one.subject == field_subject(OWN, key)}


def _issues(document: Json, key: str) -> list[str]:
    def spec(one: str) -> FieldSpec:
        return FieldSpec(id=UUID(int=1), key=one, label=one, kind=FieldKind.NUMBER)

    note = FieldSpec(id=UUID(int=2), key="note", label="Note", kind=FieldKind.TEXT)
    databases = {OWN: {key: spec(key), "note": note}, OTHER: {KEY: spec(KEY)}}
    catalog = ReferenceCatalog(databases=databases)
    graph = Graph.model_validate(document["graph"])
    compiled = compile_graph(graph, document["triggerConfig"], catalog)
    return [issue.message for issue in compiled.issues]


@pytest.mark.long
@settings(max_examples=examples(60), deadline=None)
@given(bindings, st.booleans())
def test_each_planted_reference_is_found_and_follows_a_rename(
    values: list[tuple[Any, bool]], writes: bool
) -> None:
    graph, places = _graph(values, writes)
    references = graph_references(TRIGGER, graph, {})
    assert _named(references, KEY) == places
    assert from_stored(json.loads(json.dumps(as_stored(references)))) == references
    document = {"triggerConfig": TRIGGER, "graph": graph}
    before = _issues(document, KEY)
    own = [one for one in references if one.subject == field_subject(OWN, KEY)]
    renamed = rewritten(document, own, NEW_KEY)
    after = graph_references(TRIGGER, renamed["graph"], {})
    assert _named(after, NEW_KEY) == {
        (node, path.replace("data.price", f"data.{NEW_KEY}")) for node, path in places
    }
    assert not _named(after, KEY)
    assert before == []
    assert _issues(renamed, NEW_KEY) == []
    back = [one for one in after if one.subject == field_subject(OWN, NEW_KEY)]
    assert rewritten(renamed, back, KEY) == document


@pytest.mark.parametrize(
    ("written", "renamed"),
    [
        ({"data": {"price": 1, "note": "x"}}, {"data": {"unit_cost": 1, "note": "x"}}),
        ({"relations": {"price": []}}, {"relations": {"unit_cost": []}}),
        (
            {"data": _path(("trigger", "record.data")), "relations": {"price": []}},
            {"data": _path(("trigger", "record.data")), "relations": {"unit_cost": []}},
        ),
        (
            {"data": {"price": 1}, "relations": {"price": []}, "upsertBy": "price"},
            {"data": {"unit_cost": 1}, "relations": {"unit_cost": []}, "upsertBy": "unit_cost"},
        ),
    ],
)
def test_the_fields_that_a_node_writes_follow_a_rename(written: Json, renamed: Json) -> None:
    def graph(config: Json) -> Json:
        node = {"id": "new", "kind": "create_record", "config": {"databaseId": OWN, **config}}
        return {"nodes": [node], "edges": []}

    found = graph_references(TRIGGER, graph(written), {})
    own = [one for one in found if one.subject == field_subject(OWN, KEY)]
    document = rewritten({"triggerConfig": TRIGGER, "graph": graph(written)}, own, NEW_KEY)
    assert document["graph"] == graph(renamed)


def test_a_reference_of_the_other_database_is_none_of_this_one() -> None:
    graph, _ = _graph([(_path(OTHER_PATHS[0]), False)], False)
    references = graph_references(TRIGGER, graph, {})
    others = {one.path for one in references if one.subject == field_subject(OTHER, KEY)}
    assert others == {
        "config.query.filter.and.0.field",
        "config.query.colors.0.filter.field",
        "config.output.v0.value",
    }


@pytest.mark.parametrize(
    ("trigger", "places"),
    [
        ({"kind": "record_updated", "fieldKeys": ["note", "price"]}, {"fieldKeys.1"}),
        ({"kind": "button_pressed", "fieldKey": "price"}, {"fieldKey"}),
        ({"kind": "record_matches", "filter": "record.data.price > 1.0"}, {"filter"}),
        (
            {
                "kind": "record_updated",
                "filter": {
                    "and": [
                        {"field": "price", "op": "gt", "value": 1},
                        {"field": "changedKeys", "op": "contains", "value": "price"},
                        {"field": "note", "op": "eq", "value": "price"},
                    ]
                },
            },
            {"filter.and.0.field", "filter.and.1.value"},
        ),
        (
            {
                "kind": "record_created",
                "attributes": {"cost": {"type": "trigger", "value": "record.data.price"}},
                "concurrency": {"keyExpression": "string(trigger.record.data.price)"},
            },
            {"attributes.cost.value", "concurrency.keyExpression"},
        ),
    ],
)
def test_the_references_of_a_trigger_are_found(trigger: Json, places: set[str]) -> None:
    graph: Json = {"nodes": [], "edges": []}
    found = _named(graph_references({"databaseId": OWN, **trigger}, graph, {}), KEY)
    assert found == {("", f"triggerConfig.{place}") for place in places}
    # Without a database the same names are no fields.
    assert not _named(graph_references(trigger, graph, {}), KEY)


READINGS = {
    1: "cb3442fa6b522f3a4c955e6dc2435bf04e965a1def05509a4d309d78696d1e99",
    2: "48ab9d1cd9c0ae5ca3efff18f1081495a8132aa65e30ef4b96fe80711a620c10",
    3: "e162aa3a08361281e5dd09b0b999735cbc4f1aea306d72560441d0fd324821e9",
}
"""The digest of what each version of the reading finds in the graphs below."""


def test_a_change_of_the_reading_has_a_number() -> None:
    """What is stored with graphs is what the version that is stored beside it has found.

    When this fails, the reading finds something else: raise `REFERENCES_VERSION`, and add its
    digest.
    """
    every = [*map(_expression, READS + DECOYS), *map(_template, READS), *map(_path, PATHS)]
    values: list[tuple[Any, bool]] = [(one, True) for one in every]
    found = [graph_references(TRIGGER, _graph(values, writes)[0], {}) for writes in (True, False)]
    text = json.dumps([as_stored(one) for one in found], sort_keys=True)
    assert READINGS[REFERENCES_VERSION] == hashlib.sha256(text.encode()).hexdigest()
