"""Nodes that could never write, or ask, what they say are refused; what a run decides is not."""

import uuid
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.automation.automations.rules.graph.catalog import ReferenceCatalog, Resource
from models.automation.automations.rules.graph.kinds import NodeKind
from models.automation.automations.rules.graph.node_checks import record_problems
from models.core.base import Id
from models.data.fields.rules.fields import FieldKind, FieldSpec, Option
from tests.support.exploring import examples

DATABASE = str(uuid.UUID(int=1))
OPTION = Option(id="1", key="open", name="Open", color="gray", order=0)


def field(key: str, kind: FieldKind, **facts: Any) -> FieldSpec:
    return FieldSpec(id=Id(DATABASE), key=key, label=key, kind=kind, **facts)


FIELDS = (
    field("title", FieldKind.TEXT),
    field("price", FieldKind.NUMBER, settings={"min": 0}),
    field("due", FieldKind.DATE),
    field("state", FieldKind.SELECT, options=(OPTION,)),
    field("total", FieldKind.FORMULA),
    field("at", FieldKind.CREATED_AT),
    field("tags", FieldKind.JSON),
    field("mood", FieldKind.SELECT, settings={"allowCreate": True}),
    field("links", FieldKind.RELATION, settings={"cardinality": "one"}),
)
VIEW = str(uuid.UUID(int=2))
NEEDED = (
    *FIELDS,
    field("code", FieldKind.TEXT, required=True),
    field("level", FieldKind.TEXT, required=True, default="low"),
)
GOOD = {"field": "price", "op": "gt", "value": {"type": "trigger", "value": "x"}}
PAST = {"unit": "day", "count": 7, "direction": "past"}
BOUND = {"type": "trigger", "value": "x"}


def problems(
    kind: NodeKind, fields: tuple[FieldSpec, ...] = FIELDS, /, **value: Any
) -> dict[str, str]:
    catalog = ReferenceCatalog(
        databases={DATABASE: {spec.key: spec for spec in fields}},
        existing={Resource.VIEW: frozenset({VIEW})},
    )
    return dict(record_problems(kind, {"databaseId": DATABASE, **value}, catalog))


@pytest.mark.parametrize("kind", [NodeKind.CREATE_RECORD, NodeKind.UPDATE_RECORD])
@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"price": "5"}, "must be a number"),
        ({"price": -1}, "must be at least 0"),
        ({"due": "tomorrow"}, "must be a date"),
        ({"state": "gone"}, "option"),
        ({"total": 1}, "cannot be written: it is a formula field"),
        ({"total": BOUND}, "cannot be written: it is a formula field"),
        ({"at": BOUND}, "the platform writes this field"),
        ({"none": BOUND}, "is not the key of a field"),
        ({"none": 1}, "is not the key of a field"),
        ({"links": BOUND}, "set it as relations.links"),
    ],
)
def test_a_value_its_field_never_takes_is_refused(
    kind: NodeKind, data: dict[str, Any], words: str
) -> None:
    (key,) = data
    (found,) = problems(kind, data=data).items()
    assert found[0] == f"data.{key}"
    assert words in found[1]


@pytest.mark.parametrize("kind", [NodeKind.CREATE_RECORD, NodeKind.UPDATE_RECORD])
@pytest.mark.parametrize(
    "data",
    [
        {"price": 5, "due": "2026-01-31", "state": "open", "title": "a"},
        {"price": BOUND, "due": BOUND, "state": BOUND, "title": BOUND},
        {"price": None},
        {"tags": {"at": [BOUND]}},
        {"mood": "as bright as never before"},
        BOUND,
        {},
    ],
)
def test_values_with_bindings_are_not_checked_before_the_run(
    kind: NodeKind, data: dict[str, Any]
) -> None:
    assert problems(kind, data=data) == {}


def test_a_new_record_has_what_its_database_requires() -> None:
    assert problems(NodeKind.CREATE_RECORD, NEEDED) == {"data.code": "is required"}
    assert problems(NodeKind.CREATE_RECORD, NEEDED, data={"code": BOUND}) == {}
    assert problems(NodeKind.CREATE_RECORD, NEEDED, data=BOUND) == {}
    assert problems(NodeKind.UPDATE_RECORD, NEEDED) == {}
    cleared = problems(NodeKind.UPDATE_RECORD, NEEDED, data={"code": None})
    assert cleared == {"data.code": "is required and cannot be empty"}


def test_an_upsert_may_find_what_it_does_not_write() -> None:
    data = {"price": BOUND}
    assert problems(NodeKind.CREATE_RECORD, NEEDED, upsertBy=["price"], data=data) == {}


@pytest.mark.parametrize(
    ("upsert_by", "data", "place", "words"),
    [
        (["none"], {}, "upsertBy.0", "is not the key of a field"),
        (["price", "tags"], {"price": 1, "tags": BOUND}, "upsertBy.1", "cannot be matched by"),
        (["price"], {}, "data.price", "is needed to find the record"),
        (["price"], {"price": None}, "data.price", "is needed to find the record"),
        (["due"] * 6, {"due": BOUND}, "upsertBy", "1 to 5 fields"),
        (["none"], BOUND, "upsertBy.0", "is not the key of a field"),
        (["tags"], BOUND, "upsertBy.0", "cannot be matched by"),
    ],
)
def test_an_upsert_names_values_to_find_its_record_by(
    upsert_by: list[str], data: dict[str, Any], place: str, words: str
) -> None:
    found = problems(NodeKind.CREATE_RECORD, upsertBy=upsert_by, data=data)
    assert words in found[place]


def test_an_upsert_may_match_by_values_with_bindings() -> None:
    assert problems(NodeKind.CREATE_RECORD, upsertBy=["price", "title"], data=BOUND) == {}
    assert problems(NodeKind.CREATE_RECORD, upsertBy=BOUND, data={"price": 1}) == {}


@pytest.mark.parametrize("kind", [NodeKind.CREATE_RECORD, NodeKind.UPDATE_RECORD])
@pytest.mark.parametrize(
    ("relations", "wrong"),
    [
        ({"links": [VIEW]}, False),
        ({"links": [BOUND]}, False),
        ({"links": BOUND}, False),
        ({"links": None}, False),
        (BOUND, False),
        (None, False),
        ({"links": ["nobody"]}, True),
        ({"links": VIEW}, False),
        ({"links": [VIEW, DATABASE]}, True),
        ({"price": [VIEW]}, True),
        ({"price": BOUND}, True),
        ({"none": BOUND}, True),
    ],
)
def test_relations_are_those_of_the_database(kind: NodeKind, relations: Any, wrong: bool) -> None:
    found = problems(kind, relations=relations)
    assert list(found) == ([f"relations.{next(iter(relations))}"] if wrong else [])


def test_a_record_title_is_given_only_once() -> None:
    create = NodeKind.CREATE_RECORD
    assert list(problems(create, title="a", data={"title": "b"})) == ["data.title"]
    assert problems(create, title="a", data={"title": "a"}) == {}
    assert problems(create, title="a", data={"title": BOUND}) == {}
    needed = (field("title", FieldKind.TEXT, required=True),)
    assert problems(create, needed, title=BOUND) == {}
    assert problems(create, needed, title="a") == {}
    assert list(problems(create, needed)) == ["data.title"]


@pytest.mark.parametrize(
    ("query", "place"),
    [
        ({"filter": {"field": "price", "op": "contains", "value": "x"}}, "query.filter"),
        ({"filter": {"field": "price", "op": "gt", "value": "x"}}, "query.filter"),
        ({"filter": {"and": [{"field": "none", "op": "is_empty"}]}}, "query.filter.and.0"),
        ({"filter": {"and": [{"field": "none", "op": "eq", "value": BOUND}]}}, "query.filter."),
        ({"sorts": [{"field": "tags", "direction": "asc"}]}, "query.sorts.0"),
        ({"aggregates": [{"op": "sum", "field": "due"}]}, "query.aggregates.0"),
        ({"fields": ["price", "none"]}, "query.fields.1"),
        ({"timezone": "Nowhere/Land"}, "query.timezone"),
        ({"filter": {"field": "price", "op": "contains", "value": BOUND}}, "query.filter.op"),
        ({"filter": {"field": "price", "op": "equals", "value": BOUND}}, "query.filter.op"),
        ({"filter": {"field": "price", "op": "gt", "value": BOUND, "x": 1}}, "query.filter.x"),
        ({"filter": {"not": {"or": [GOOD, {"feild": "price"}]}}}, "query.filter.not.or.1"),
        ({"filter": {"and": [GOOD], "or": []}}, "query.filter"),
        ({"filter": {"or": [GOOD, {"field": "price", "op": "gt", "value": "x"}]}}, "query.filter."),
        ({"filter": {"not": [GOOD]}}, "query.filter.not"),
        ({"filter": {"and": [[GOOD]]}}, "query.filter.and.0"),
        ({"filter": {"and": GOOD}}, "query.filter.and"),
        ({"filter": {"or": {"and": BOUND}}}, "query.filter.or"),
        ({"filter": {"or": [7, GOOD]}}, "query.filter.or.0"),
        ({"limit": BOUND, "sorts": [{"field": "tags"}]}, "query.sorts.0"),
        ({"search": BOUND, "aggregates": [{"op": "sum", "field": "due"}]}, "query.aggregates.0"),
        ({"sorts": [{"field": BOUND}, {"field": "none"}]}, "query.sorts.1.field"),
        ({"viewId": DATABASE}, "query.viewId"),
    ],
)
def test_a_question_the_database_never_answers_is_refused(
    query: dict[str, Any], place: str
) -> None:
    (found,) = problems(NodeKind.QUERY_RECORDS, query=query)
    assert found.startswith(place)


@pytest.mark.parametrize(
    "query",
    [
        BOUND,
        {},
        {"filter": {"field": "price", "op": "gt", "value": 1}},
        {"filter": GOOD},
        {"filter": BOUND},
        {"filter": {"and": BOUND}},
        {"filter": {"not": {"and": [GOOD, BOUND]}}},
        {"filter": {"field": BOUND, "op": "resembles", "value": 1}},
        {"filter": {"field": "due", "op": "eq", "value": "2026-01-31", "timezone": BOUND}},
        {"sorts": [{"field": BOUND}], "fields": BOUND, "viewId": VIEW},
        {"limit": 1_000},
        {"filter": {"field": "due", "op": "within", "value": PAST}},
        {"sorts": [{"field": "price", "direction": "desc"}], "groupBy": {"field": "state"}},
    ],
)
def test_a_question_with_an_answer_is_published(query: Any) -> None:
    assert problems(NodeKind.QUERY_RECORDS, query=query) == {}


LEAF = st.sampled_from(["price", "none", "gt", "and", 7, None, True, BOUND, VIEW])
KEY = st.sampled_from(
    ["filter", "and", "not", "field", "op", "value", "sorts", "groupBy", "price", "links", "viewId"]
)
JSON = st.recursive(
    LEAF, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEY, inner, max_size=3)
)


@pytest.mark.long
@settings(max_examples=examples(60, explored=6_000), deadline=None)
@given(
    kind=st.sampled_from(list(NodeKind)),
    value=st.dictionaries(
        st.sampled_from(["query", "data", "relations", "upsertBy", "title"]),
        JSON | st.dictionaries(KEY, JSON),
    ),
)
def test_a_config_of_any_shape_is_judged(kind: NodeKind, value: dict[str, Any]) -> None:
    for path, message in problems(kind, NEEDED, **value).items():
        assert path
        assert message
