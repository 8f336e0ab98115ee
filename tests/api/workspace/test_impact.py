"""The impact of changes over HTTP: every place that names a thing, and what breaks."""

from typing import Any

from tests.support.automations import publish
from tests.support.automations import read as data_of
from tests.support.client import Client
from tests.support.spaces import Space

Json = dict[str, Any]


async def make_database(client: Client, space: Space, *fields: Json, label: str = "Orders") -> Json:
    body = {"label": label, "fields": list(fields)}
    return data_of(await client.post(f"{space.path}/databases", json=body), 201)


def field_of(database: Json, key: str) -> Json:
    return next(one for one in database["fields"] if one["key"] == key)


async def ask(client: Client, space: Space, **body: Any) -> Json:
    return data_of(await client.post(f"{space.path}/impact", json=body))


PRICE = {"label": "Price", "kind": "number"}
STATUS = {"label": "Status", "kind": "select", "options": [{"name": "Open"}, {"name": "Done"}]}


def places(answer: Json) -> set[tuple[Any, ...]]:
    return {
        (one["kind"], one.get("nodeId"), one["path"], one["access"], one["breaks"])
        for one in answer["places"]
    }


async def test_a_graph_names_fields_at_each_place(client: Client, space: Space) -> None:
    made = await make_database(client, space, PRICE, STATUS)
    trigger = {
        "kind": "record_updated",
        "databaseId": made["id"],
        "fieldKeys": ["price"],
        "filter": "record.data.status == 'open' && record.data.price > 1.0",
    }
    nodes = [
        {
            "id": "read",
            "kind": "query_records",
            "config": {
                "databaseId": made["id"],
                "query": {"filter": {"field": "price", "op": "gt", "value": 5}},
            },
        },
        {
            "id": "each",
            "kind": "for_each",
            "config": {"items": {"type": "node", "value": "read.records"}},
        },
        {
            "id": "write",
            "kind": "update_record",
            "config": {
                "recordId": {"type": "item", "value": "id"},
                "data": {"price": {"type": "expression", "value": "item.data.price * 2.0"}},
            },
        },
    ]
    edges = [
        {"from": "read", "to": "each"},
        {"from": "each", "to": "write", "outcome": "item"},
    ]
    graph = {"nodes": nodes, "edges": edges}
    await publish(client, space, label="Double", triggerConfig=trigger, graph=graph)
    price = field_of(made, "price")
    answer = await ask(client, space, kind="field", id=price["id"], change="delete")
    assert places(answer) == {
        ("automation", None, "triggerConfig.fieldKeys.0", "read", True),
        ("automation", None, "triggerConfig.filter", "read", True),
        ("automation", "read", "config.query.filter.field", "read", True),
        ("automation", "write", "config.data.price", "write", True),
        ("automation", "write", "config.data.price.value", "read", True),
    }
    assert (answer["total"], answer["breaking"], answer["hidden"]) == (5, 5, 0)
    assert {one["version"] for one in answer["places"]} == {1}
    status = field_of(made, "status")
    answer = await ask(client, space, kind="option", id=status["id"], key="open")
    assert places(answer) == {("automation", None, "triggerConfig.filter", "read", True)}
    answer = await ask(client, space, kind="database", id=made["id"])
    assert {one["path"] for one in answer["places"]} == {
        "triggerConfig.databaseId",
        "config.databaseId",
    }
