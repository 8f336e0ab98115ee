"""Manifests of views over HTTP: what they may say, and what is left of one whose field changes."""

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from models.data.databases.field_changes import remove_invalid_usages
from models.data.fields.queries import load_schema
from models.data.fields.rules.fields import FieldKind
from models.data.views import commands
from tests.support.client import Client
from tests.support.spaces import Space
from tests.support.views import FIELDS, make_database, make_view, views_of

WHOLE: dict[str, Any] = {
    "filter": {"and": [{"field": "price", "op": "gte", "value": 5}]},
    "sorts": [{"field": "price", "direction": "desc"}],
    "search": "red",
    "groupBy": {"field": "state"},
    "aggregates": [{"op": "count"}, {"op": "sum", "field": "price", "as": "total"}],
    "fields": [{"key": "title"}, {"key": "price", "visible": False, "width": 120}],
    "stackFieldKey": "state",
    "dateFieldKey": "start",
    "endDateFieldKey": "end",
    "coverFieldKey": "link",
    "cardFields": ["price", "state"],
    "chart": {
        "type": "bar",
        "xFieldKey": "state",
        "aggregate": {"op": "avg", "field": "price"},
    },
    "form": {
        "title": "Tell us",
        "fields": [
            {"key": "title", "required": True, "label": "What?", "help": "In a few words"},
            {"key": "price", "visibleIf": {"field": "title", "op": "is_not_empty"}},
        ],
        "submitLabel": "Send",
        "confirmation": "Thank you",
    },
    "colorRules": [{"any": "thing"}],
}


@pytest.mark.parametrize(
    "kind", ["table", "board", "list", "gallery", "calendar", "timeline", "chart", "form"]
)
async def test_a_manifest_is_kept_as_it_was_said(client: Client, space: Space, kind: str) -> None:
    database = await make_database(client, space)
    made = await make_view(client, database["id"], kind=kind, manifest=WHOLE)
    assert (made["kind"], made["manifest"]) == (kind, WHOLE)


def nested(depth: int) -> Any:
    """A list in a list, to this depth."""
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


REFUSED = {
    "unknown field in a filter": (
        {"filter": {"field": "nope", "op": "eq", "value": 1}},
        "manifest.filter.field",
    ),
    "operand of another type": (
        {"filter": {"and": [{"field": "price", "op": "eq", "value": "5"}]}},
        "manifest.filter.and.0.value",
    ),
    "unknown field in an order": ({"sorts": [{"field": "nope"}]}, "manifest.sorts.0.field"),
    "unknown key in an order": (
        {"sorts": [{"field": "price", "up": True}]},
        "manifest.sorts.0.up",
    ),
    "unknown group": ({"groupBy": {"field": "nope"}}, "manifest.groupBy.0.field"),
    "unknown figure": (
        {"aggregates": [{"op": "count"}, {"op": "guess", "field": "price"}]},
        "manifest.aggregates.1.op",
    ),
    "figure of nothing": (
        {"aggregates": [{"op": "sum", "field": "nope"}]},
        "manifest.aggregates.0.field",
    ),
    "chart of nothing": (
        {"chart": {"type": "number", "aggregate": {"op": "sum", "field": "nope"}}},
        "manifest.chart.aggregate.field",
    ),
    "search too long": ({"search": "x" * 201}, "manifest.search"),
    "unknown column": ({"fields": [{"key": "nope"}]}, "manifest.fields.0.key"),
    "column named twice": (
        {"fields": [{"key": "price"}, {"key": "price"}]},
        "manifest.fields.1.key",
    ),
    "width that is text": (
        {"fields": [{"key": "price", "width": "12"}]},
        "manifest.fields.0.width",
    ),
    "unknown key of a column": (
        {"fields": [{"key": "price", "wide": 1}]},
        "manifest.fields.0.wide",
    ),
    "stacked by a number": ({"stackFieldKey": "price"}, "manifest.stackFieldKey"),
    "a day that is text": ({"dateFieldKey": "title"}, "manifest.dateFieldKey"),
    "an end that is nothing": ({"endDateFieldKey": "nope"}, "manifest.endDateFieldKey"),
    "a cover that is a number": ({"coverFieldKey": "price"}, "manifest.coverFieldKey"),
    "unknown card field": ({"cardFields": ["price", "nope"]}, "manifest.cardFields.1"),
    "unknown chart": ({"chart": {"type": "cake"}}, "manifest.chart.type"),
    "chart over nothing": ({"chart": {"type": "bar"}}, "manifest.chart.xFieldKey"),
    "form without questions": ({"form": {"fields": []}}, "manifest.form.fields"),
    "question the platform answers": (
        {"form": {"fields": [{"key": "number"}]}},
        "manifest.form.fields.0.key",
    ),
    "condition over nothing": (
        {"form": {"fields": [{"key": "price", "visibleIf": {"field": "x", "op": "eq"}}]}},
        "manifest.form.fields.0.visibleIf.field",
    ),
    "nested too deep": ({"mine": nested(33)}, "manifest"),
    "too large": ({"mine": ["x" * 9_000] * 10}, "manifest"),
    "no object": ([], "manifest"),
}  # fmt: skip


@pytest.mark.parametrize("case", sorted(REFUSED))
async def test_a_manifest_that_does_not_fit_is_refused_at_its_place(
    client: Client, space: Space, case: str
) -> None:
    manifest, path = REFUSED[case]
    database = await make_database(client, space)
    answer = await client.post(
        views_of(database["id"]), json={"label": "Bad", "manifest": manifest}
    )
    assert answer.status_code == 400, answer.text
    assert [detail["path"] for detail in answer.json()["details"]] == [path]
    listed = await client.get(views_of(database["id"]))
    assert len(listed.json()["data"]["views"]) == 1


@pytest.mark.parametrize(
    ("kind", "missing"),
    [
        ("board", ["stackFieldKey"]),
        ("calendar", ["dateFieldKey"]),
        ("timeline", ["dateFieldKey", "endDateFieldKey"]),
        ("chart", ["chart"]),
        ("form", ["form"]),
    ],
)
async def test_a_kind_needs_its_fields(
    client: Client, space: Space, kind: str, missing: list[str]
) -> None:
    database = await make_database(client, space)
    answer = await client.post(views_of(database["id"]), json={"label": "Bad", "kind": kind})
    assert answer.status_code == 400
    paths = [detail["path"] for detail in answer.json()["details"]]
    assert paths == [f"manifest.{name}" for name in missing]


async def test_a_field_that_goes_is_forgotten(client: Client, space: Space) -> None:
    database = await make_database(client, space)
    made = await make_view(
        client,
        database["id"],
        kind="board",
        manifest={**WHOLE, "filter": {"or": [WHOLE["filter"], {"not": WHOLE["filter"]}]}},
    )
    untouched = await make_view(client, database["id"], manifest={"search": "pricey"})
    async with space.database.transaction() as work:
        mine = (work, space.id, made["databaseId"])
        await commands.remove_usages(*mine, "price")
    path = f"{views_of(database['id'])}/{made['id']}"
    left = (await client.get(path)).json()["data"]
    assert (left["kind"], left["definitionVersion"]) == ("board", 2)
    assert left["manifest"] == {
        **{key: value for key, value in WHOLE.items() if key not in {"filter", "chart"}},
        "sorts": [],
        "aggregates": [{"op": "count"}],
        "fields": [{"key": "title"}],
        "cardFields": ["state"],
        "form": {**WHOLE["form"], "fields": [WHOLE["form"]["fields"][0]]},
    }
    async with space.database.transaction() as work:
        await commands.remove_usages(work, space.id, made["databaseId"], "state")
    left = (await client.get(path)).json()["data"]
    assert (left["kind"], left["definitionVersion"]) == ("table", 3)
    assert {"stackFieldKey", "groupBy"}.isdisjoint(left["manifest"])
    same = await client.get(f"{views_of(database['id'])}/{untouched['id']}")
    assert same.json()["data"] == untouched


async def test_a_view_lets_go_of_what_no_longer_fits_a_field(client: Client, space: Space) -> None:
    database = await make_database(client, space)
    path = views_of(database["id"])
    by_state = {"filter": {"field": "state", "op": "eq", "value": "done"}}
    board = {"stackFieldKey": "state", "sorts": [{"field": "price"}]}
    filtered = await make_view(client, database["id"], manifest=by_state)
    stacked = await make_view(client, database["id"], kind="board", manifest=board)
    template = await client.post(
        f"/v1/databases/{database['id']}/record-templates",
        json={"label": "T", "data": {"state": "done", "price": 1}},
    )
    assert template.status_code == 201
    state = next(one for one in database["fields"] if one["key"] == "state")
    fewer = {"options": [{"name": "Open", "key": "open"}]}
    answer = await client.patch(f"/v1/databases/{database['id']}/fields/{state['id']}", json=fewer)
    assert answer.status_code == 200, answer.text
    left = (await client.get(f"{path}/{filtered['id']}")).json()["data"]
    assert (left["manifest"], left["definitionVersion"]) == ({}, 2)
    assert (await client.get(f"{path}/{stacked['id']}")).json()["data"] == stacked
    templates = await client.get(f"/v1/databases/{database['id']}/record-templates")
    assert templates.json()["data"]["templates"][0]["data"] == {"price": 1}
    async with space.database.transaction() as work:
        schema = await load_schema(work, space.id, UUID(database["id"]))
        text = replace(schema.fields["state"], kind=FieldKind.TEXT, options=())
        await remove_invalid_usages(
            work, replace(schema, fields={**schema.fields, "state": text}), "state"
        )
    turned = (await client.get(f"{path}/{stacked['id']}")).json()["data"]
    assert (turned["kind"], turned["manifest"]) == ("table", {"sorts": [{"field": "price"}]})


async def test_boards_and_charts_name_fields_that_serve_them(client: Client, space: Space) -> None:
    more = [{"label": "Owner", "kind": "person"}, {"label": "Check", "kind": "checkbox"}]
    made = await make_database(client, space, fields=[*FIELDS, *more])

    async def problems(kind: str, **manifest: Any) -> set[str]:
        body = {"label": "One", "kind": kind, "manifest": manifest}
        answer = await client.post(views_of(made["id"]), json=body)
        return {one["path"] for one in answer.json().get("details", ())}

    for key in ("state", "owner", "check"):
        assert await problems("board", stackFieldKey=key) == set()
    assert await problems("board", stackFieldKey="price") == {"manifest.stackFieldKey"}
    order = {"stackFieldKey": "state", "orderFieldKey": "start"}
    assert await problems("board", **order) == {"manifest.orderFieldKey"}
    chart = {"type": "bar", "xFieldKey": "start", "granularity": "month"}
    assert await problems("chart", chart=chart) == set()
    assert await problems("chart", chart={**chart, "xFieldKey": "state"}) == {
        "manifest.chart.granularity"
    }


async def test_records_have_the_color_of_the_first_rule_that_they_pass(
    client: Client, space: Space
) -> None:
    made = await make_database(client, space)
    ids = {}
    for title, price in (("A", 1), ("B", 5), ("C", 9), ("D", None)):
        row = {"data": {"title": title, "price": price}}
        answer = await client.post(f"/v1/databases/{made['id']}/records", json=row)
        ids[title] = answer.json()["data"]["id"]
    high = {"field": "price", "op": "gt", "value": 6}
    colors = [
        {"filter": high, "color": "red"},
        {"filter": {"field": "price", "op": "gt", "value": 3}, "color": "blue"},
    ]
    view = await make_view(client, made["id"], manifest={"colors": colors})
    path = f"/v1/databases/{made['id']}/records/query"
    answer = (await client.post(path, json={"viewId": view["id"]})).json()["data"]
    assert answer["colors"] == {ids["B"]: "blue", ids["C"]: "red"}
    assert "colors" not in (await client.post(path, json={})).json()["data"]
    wrong = {"filter": {"field": "price", "op": "has_any", "value": [1]}, "color": "red"}
    body = {"label": "Wrong", "manifest": {"colors": [colors[0], wrong]}}
    refused = await client.post(views_of(made["id"]), json=body)
    (problem,) = refused.json()["details"]
    assert problem["path"] == "manifest.colors.1.filter.op"
    # A deleted field takes its rules along.
    (price,) = (one["id"] for one in made["fields"] if one["key"] == "price")
    await client.delete(f"/v1/databases/{made['id']}/fields/{price}")
    left = await client.get(f"{views_of(made['id'])}/{view['id']}")
    assert "colors" not in left.json()["data"]["manifest"]
