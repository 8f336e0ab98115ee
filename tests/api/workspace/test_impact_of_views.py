"""Every key of a view that can name a field, and defaults that name options, are found."""

import json
from typing import Any

import pytest

from models.data.views.shapes import Manifest
from tests.api.workspace.test_impact import ask, field_of, make_database, places
from tests.support.automations import publish
from tests.support.client import Client
from tests.support.items import read
from tests.support.spaces import Space

Json = dict[str, Any]

FILTER = {"field": "price", "op": "gt", "value": 5}
SUM = {"op": "sum", "field": "price"}
PLANTED: dict[str, tuple[str, Any]] = {
    "filter": ("number", {"and": [{"or": [FILTER]}]}),
    "sorts": ("number", [{"field": "price"}]),
    "groupBy": ("number", [{"field": "price"}]),
    "aggregates": ("number", [SUM]),
    "fields": ("number", [{"key": "price"}]),
    "stackFieldKey": ("select", "price"),
    "orderFieldKey": ("number", "price"),
    "dateFieldKey": ("date", "price"),
    "endDateFieldKey": ("date", "price"),
    "coverFieldKey": ("url", "price"),
    "cardFields": ("number", ["price"]),
    "colors": ("number", [{"filter": {"not": FILTER}, "color": "red"}]),
    "chart": ("number", {"type": "bar", "xFieldKey": "price", "aggregate": SUM}),
    "form": ("number", {"fields": [{"key": "title"}, {"key": "price", "visibleIf": FILTER}]}),
}
"""The kind of a field, and what names it under each key of a view."""


def test_each_key_of_a_view_is_planted() -> None:
    keys = {one.alias or name for name, one in Manifest.model_fields.items()}
    assert keys - {"search"} == PLANTED.keys()


async def make_priced(client: Client, space: Space, kind: str) -> Json:
    return await make_database(client, space, {"label": "Price", "kind": kind})


async def rename(client: Client, made: Json) -> None:
    path = f"/v1/databases/{made['id']}/fields/{field_of(made, 'price')['id']}/rename"
    read(await client.post(path, json={"key": "cost", "rewrite": True}))


@pytest.mark.parametrize("key", PLANTED)
async def test_a_key_of_a_view_is_found_and_renamed(client: Client, space: Space, key: str) -> None:
    kind, value = PLANTED[key]
    made = await make_priced(client, space, kind)
    path = f"/v1/databases/{made['id']}/views"
    view = read(await client.post(path, json={"label": "One", "manifest": {key: value}}), 201)
    answer = await ask(client, space, kind="field", id=field_of(made, "price")["id"])
    found = [one for one in answer["places"] if one["id"] == view["id"]]
    assert len(found) == json.dumps(value).count('"price"')
    assert all(one["path"].startswith(f"manifest.{key}") for one in found)
    await rename(client, made)
    renamed = read(await client.get(f"{path}/{view['id']}"))["manifest"]
    assert renamed == {key: json.loads(json.dumps(value).replace('"price"', '"cost"'))}


async def test_the_colors_of_a_query_are_found(client: Client, space: Space) -> None:
    made = await make_priced(client, space, "number")
    config = {"databaseId": made["id"], "query": {"colors": PLANTED["colors"][1]}}
    graph = {"nodes": [{"id": "read", "kind": "query_records", "config": config}]}
    await publish(client, space, graph=graph)
    answer = await ask(client, space, kind="field", id=field_of(made, "price")["id"])
    assert ("automation", "read", "config.query.colors.0.filter.not.field", "read", True) in places(
        answer
    )


@pytest.mark.parametrize(
    ("kind", "default"),
    [("select", "open"), ("select", "Open"), ("multi_select", '["done", "Open"]')],
)
async def test_an_option_that_is_a_default_is_found(
    client: Client, space: Space, kind: str, default: str
) -> None:
    options = [{"name": "Open"}, {"name": "Done"}, {"name": "Late"}]
    field = {"label": "Status", "kind": kind, "options": options, "defaultValue": default}
    made = await make_database(client, space, field)
    question = {"kind": "option", "id": field_of(made, "status")["id"]}
    answer = await ask(client, space, **question, key="open")
    assert places(answer) == {("field", None, "defaultValue", "read", True)}
    assert (await ask(client, space, **question, key="late"))["total"] == 0
