"""The impact of changes over HTTP: every place that names a thing, and what breaks."""

from typing import Any
from uuid import UUID

import httpx2
import pytest
from fastapi import FastAPI
from sqlalchemy import select, update

from models.automation.automation_runs.tables import automation_run
from models.automation.automations.references import _Known
from models.automation.automations.rules.graph.references import (
    REFERENCES_VERSION,
    graph_references,
)
from models.automation.automations.tables import automation_graph
from models.core.access.rules import Role, Scope
from models.core.base import EXAMPLE_ID
from models.core.references.rules import from_stored
from tests.support.automations import create, publish
from tests.support.automations import read as data_of
from tests.support.client import Client
from tests.support.files import stored
from tests.support.items import make as make_thing
from tests.support.spaces import Space
from tests.support.visitor import signed_in

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


READ_ALL: Json = {
    "id": "read",
    "kind": "query_records",
    "config": {"query": {"filter": {"field": "price", "op": "gt", "value": 5}}},
}
EACH = {
    "id": "each",
    "kind": "for_each",
    "config": {"items": {"type": "node", "value": "read.records"}},
}
WRITE = {
    "id": "write",
    "kind": "update_record",
    "config": {
        "recordId": {"type": "item", "value": "id"},
        "data": {"price": {"type": "expression", "value": "item.data.price * 2.0"}},
    },
}
EDGES = [{"from": "read", "to": "each"}, {"from": "each", "to": "write", "outcome": "item"}]


async def publish_doubling(client: Client, space: Space, made: Json) -> Json:
    """An automation that names `price` in its trigger, in a query and in a loop."""
    trigger = {
        "kind": "record_updated",
        "databaseId": made["id"],
        "fieldKeys": ["price"],
        "filter": "record.data.status == 'open' && record.data.price > 1.0",
    }
    read_all = {**READ_ALL, "config": {**READ_ALL["config"], "databaseId": made["id"]}}
    graph = {"nodes": [read_all, EACH, WRITE], "edges": EDGES}
    return await publish(client, space, label="Double", triggerConfig=trigger, graph=graph)


async def test_a_graph_names_fields_at_each_place(client: Client, space: Space) -> None:
    made = await make_database(client, space, PRICE, STATUS)
    await publish_doubling(client, space, made)
    answer = await ask(client, space, kind="field", id=field_of(made, "price")["id"])
    assert places(answer) == {
        ("automation", None, "triggerConfig.fieldKeys.0", "read", True),
        ("automation", None, "triggerConfig.filter", "read", True),
        ("automation", "read", "config.query.filter.field", "read", True),
        ("automation", "write", "config.data.price", "write", True),
        ("automation", "write", "config.data.price.value", "read", True),
    }
    assert (answer["total"], answer["breaking"], answer["hidden"]) == (5, 5, 0)
    assert {(one["version"], one["state"]) for one in answer["places"]} == {(1, "published")}


async def test_options_and_databases_are_found(client: Client, space: Space) -> None:
    made = await make_database(client, space, PRICE, STATUS)
    await publish_doubling(client, space, made)
    status = field_of(made, "status")
    answer = await ask(client, space, kind="option", id=status["id"], key="open")
    assert places(answer) == {("automation", None, "triggerConfig.filter", "read", True)}
    answer = await ask(client, space, kind="database", id=made["id"])
    assert {one["path"] for one in answer["places"]} == {
        "triggerConfig.databaseId",
        "config.databaseId",
    }


FORMULA = {"label": "Tax", "kind": "formula", "settings": {"expression": "record.price * 0.2"}}
BUTTON = {"label": "Ship", "kind": "button"}


async def make_action(client: Client, space: Space, **body: Any) -> Json:
    return data_of(await client.post(f"{space.path}/actions", json=body), 201)


async def furnish(client: Client, space: Space) -> Json:
    """A database whose field `price` is named by one definition of each kind."""
    made = await make_database(client, space, PRICE, STATUS, FORMULA)
    path = f"/v1/databases/{made['id']}"
    config = {"databaseId": made["id"], "data": {"price": 1}}
    action = await make_action(client, space, label="Add", kind="create_record", config=config)
    settings = {
        "actionId": action["id"],
        "bindings": {"amount": {"type": "field", "value": "price"}},
    }
    data_of(await client.post(f"{path}/fields", json={**BUTTON, "settings": settings}), 201)
    view = {
        "label": "Cheap",
        "manifest": {
            "filter": {"field": "price", "op": "lt", "value": 5},
            "sorts": [{"field": "price", "direction": "asc"}],
            "fields": [{"key": "price"}],
        },
    }
    data_of(await client.post(f"{path}/views", json=view), 201)
    template = {"label": "Usual", "data": {"price": 3}}
    data_of(await client.post(f"{path}/record-templates", json=template), 201)
    form = {
        "label": "Order here",
        "databaseId": made["id"],
        "fields": [
            {"key": "price"},
            {"key": "status", "visibleIf": {"field": "price", "op": "gt", "value": 1}},
        ],
    }
    data_of(await client.post(f"{space.path}/forms", json=form), 201)
    data_of(await client.post(f"{path}/records", json={"data": {"price": 7}}), 201)
    return made


async def with_chart(client: Client, made: Json) -> None:
    made_item = await make_thing(client, "dashboard", "Figures")
    content = {
        "databaseId": made["id"],
        "type": "bar",
        "xFieldKey": "price",
        "aggregate": {"op": "sum", "field": "price"},
    }
    block = {"kind": "chart", "content": content, "x": 0, "y": 0, "w": 4, "h": 3}
    path = f"/v1/surfaces/{made_item['item']['targetId']}/blocks"
    answer = await client.post(path, json={"blocks": [block]})
    assert answer.is_success, answer.text


async def test_each_kind_of_definition_is_found(client: Client, space: Space) -> None:
    made = await furnish(client, space)
    answer = await ask(client, space, kind="field", id=field_of(made, "price")["id"])
    assert places(answer) == {
        ("action", None, "config.data.price", "write", True),
        ("field", None, "settings.expression", "read", True),
        ("field", None, "settings.bindings.amount.value", "read", True),
        ("view", None, "manifest.filter.field", "read", False),
        ("view", None, "manifest.sorts.0.field", "read", False),
        ("view", None, "manifest.fields.0.key", "read", False),
        ("record_template", None, "data.price", "write", False),
        ("record_layout", None, "recordLayout.propertyOrder.0", "read", False),
        ("form", None, "fields.0.key", "write", False),
        ("form", None, "fields.1.visibleIf.field", "read", False),
    }


async def try_rename(client: Client, made: Json, key: str, **body: Any) -> httpx2.Response:
    path = f"/v1/databases/{made['id']}/fields/{field_of(made, 'price')['id']}/rename"
    return await client.post(path, json={"key": key, **body})


async def rename(client: Client, made: Json, key: str, **body: Any) -> Json:
    return data_of(await try_rename(client, made, key, **body))


async def test_a_rename_changes_all_that_names_the_field(client: Client, space: Space) -> None:
    made = await furnish(client, space)
    before = await ask(client, space, kind="field", id=field_of(made, "price")["id"])
    renamed = await rename(client, made, "cost", rewrite=True)
    assert renamed["key"] == "cost"
    after = await ask(client, space, kind="field", id=field_of(made, "price")["id"])
    assert places(after) == {
        (kind, node, path.replace("price", "cost"), access, breaks)
        for kind, node, path, access, breaks in places(before)
    }
    records = data_of(await client.get(f"/v1/databases/{made['id']}/records"))["records"]
    assert records[0]["data"] == {"title": "", "cost": 7}
    assert records[0]["computed"]["tax"] == 1.4


async def test_a_rename_publishes_new_versions_of_graphs(client: Client, space: Space) -> None:
    made = await make_database(client, space, PRICE, STATUS)
    automation = await publish_doubling(client, space, made)
    refused = await try_rename(client, made, "cost")
    assert refused.status_code == 409
    assert "automation Double" in refused.json()["message"]
    await rename(client, made, "cost", rewrite=True)
    path = f"{space.path}/automations/{automation['id']}"
    now = data_of(await client.get(path))
    assert now["version"] == 2
    assert not now["hasUnpublishedChanges"]
    assert now["referenceIssues"] == []
    assert now["triggerConfig"]["fieldKeys"] == ["cost"]
    assert (
        now["triggerConfig"]["filter"] == "record.data.status == 'open' && record.data.cost > 1.0"
    )
    versions = data_of(await client.get(f"{path}/versions"))["versions"]
    assert versions[0]["note"] == "The field price was renamed to cost."


ALIKE: Json = {
    "first": "trigger.record.data.price > 1.0 && trigger.record.data.price < 9.0",
    "second": "trigger.record.data['price'] > 2.0 || 'price' == 'price'",
}
"""Nodes that name a field at the same path, one of them twice in one text."""


async def test_nodes_that_are_alike_are_each_found_and_renamed(
    client: Client, space: Space
) -> None:
    made = await make_database(client, space, PRICE)
    trigger = {"kind": "record_updated", "databaseId": made["id"]}
    conditions = [
        {"id": name, "kind": "condition", "config": {"expression": text}}
        for name, text in ALIKE.items()
    ]
    price = "{{ trigger.record.data.price }}"
    text = {"type": "template", "value": f"{price} price {price}"}
    chosen = {"type": "trigger", "value": "record.data['price']"}
    outputs = [
        {"id": name, "kind": "transform", "config": {"output": {"x": value}}}
        for name, value in (("third", text), ("fourth", chosen))
    ]
    graph = {"nodes": [*conditions, *outputs], "edges": []}
    automation = await publish(client, space, graph=graph, triggerConfig=trigger)
    answer = await ask(client, space, kind="field", id=field_of(made, "price")["id"])
    named = [one["nodeId"] for one in answer["places"] if one["kind"] == "automation"]
    assert sorted(named) == ["first", "fourth", "second", "third"]
    await rename(client, made, "cost", rewrite=True)
    path = f"{space.path}/automations/{automation['id']}"
    nodes = {one["id"]: one["config"] for one in data_of(await client.get(path))["graph"]["nodes"]}
    assert nodes["first"]["expression"] == ALIKE["first"].replace("price", "cost")
    assert (
        nodes["second"]["expression"] == "trigger.record.data['cost'] > 2.0 || 'price' == 'price'"
    )
    spelled = "{{ trigger.record.data.cost }} price {{ trigger.record.data.cost }}"
    assert nodes["third"]["output"]["x"]["value"] == spelled
    assert nodes["fourth"]["output"]["x"]["value"] == "record.data['cost']"


async def test_a_draft_is_rewritten_in_place(client: Client, space: Space) -> None:
    made = await make_database(client, space, PRICE, STATUS)
    automation = await publish_doubling(client, space, made)
    path = f"{space.path}/automations/{automation['id']}"
    changed = {"triggerConfig": {**automation["triggerConfig"], "debounceSeconds": 5}}
    draft = data_of(await client.patch(path, json=changed))
    await rename(client, made, "cost", rewrite=True)
    now = data_of(await client.get(path))
    assert now["draftVersionId"] == draft["draftVersionId"]
    assert now["publishedVersionId"] != automation["publishedVersionId"]
    assert now["triggerConfig"]["fieldKeys"] == ["cost"]


async def test_running_runs_keep_a_field_from_being_renamed(client: Client, space: Space) -> None:
    made = await make_database(client, space, PRICE, STATUS)
    automation = await publish_doubling(client, space, made)
    run = f"{space.path}/automations/{automation['id']}/run"
    data_of(await client.post(run, json={}))
    run_id = data_of(await client.get(f"{run}s"))["runs"][0]["id"]
    question = {"kind": "field", "id": field_of(made, "price")["id"], "change": "rename"}
    answer = await ask(client, space, **question)
    runs = [one for one in answer["places"] if one["kind"] == "automation_run"]
    assert {(one["runs"], one["state"]) for one in runs} == {(1, "open")}
    assert answer["immovableRuns"] == []
    async with space.database.transaction() as work:
        await work.execute(
            update(automation_run)
            .where(automation_run.c.workspace_id == space.id)
            .values(status="running")
        )
    (refusing,) = (await ask(client, space, **question))["immovableRuns"]
    assert (refusing["id"], refusing["automationId"]) == (run_id, automation["id"])
    assert (refusing["label"], refusing["reason"]) == ("Double", "executes a node")
    assert (await ask(client, space, **{**question, "change": "delete"}))["immovableRuns"] == []
    refused = await try_rename(client, made, "cost", rewrite=True)
    assert refused.status_code == 409
    assert "automation run Double" in refused.json()["message"]


async def stored_graphs(space: Space) -> list[Any]:
    async with space.database.transaction() as work:
        own = automation_graph.c.workspace_id == space.id
        return list(await work.rows(select(automation_graph).where(own)))


async def test_graphs_are_stored_with_what_they_name(client: Client, space: Space) -> None:
    """The stored references of every graph are those that reading it again finds."""
    made = await furnish(client, space)
    places_of = (await ask(client, space, kind="database", id=made["id"]))["places"]
    form_id = next(one["itemId"] for one in places_of if one["kind"] == "form")
    await publish_doubling(client, space, made)
    text = {"type": "trigger", "value": "record.data.price"}
    take = {"id": "take", "kind": "transform", "config": {"output": {"price": text}}}
    by_form = {"kind": "form_submitted", "formItemId": form_id.upper()}
    await publish(client, space, label="Form", triggerConfig=by_form, graph={"nodes": [take]})
    await rename(client, made, "cost", rewrite=True)
    stored = await stored_graphs(space)
    forms = {form_id: made["id"]}
    for row in stored:
        assert row.references_version == REFERENCES_VERSION
        found = graph_references(row.trigger_config, row.graph, forms)
        assert from_stored(row.graph_references) == found
        assert row.referenced_ids == sorted({one.subject.id for one in found})
    assert len([row for row in stored if made["id"] in row.referenced_ids]) == 4


async def test_a_graph_that_an_earlier_version_has_read_is_read_again(
    client: Client, space: Space
) -> None:
    made = await make_database(client, space, PRICE, STATUS)
    await publish_doubling(client, space, made)
    before = await ask(client, space, kind="field", id=field_of(made, "price")["id"])
    for values in (
        {
            "references_version": REFERENCES_VERSION - 1,
            "referenced_ids": [],
            "graph_references": [],
        },
        {"references_version": None, "referenced_ids": None, "graph_references": None},
    ):
        _Known.references.clear()
        async with space.database.transaction() as work:
            own = automation_graph.c.workspace_id == space.id
            await work.execute(update(automation_graph).where(own).values(values))
        answer = await ask(client, space, kind="field", id=field_of(made, "price")["id"])
        assert places(answer) == places(before)


async def test_a_form_that_is_not_there_yet_is_read_when_it_is(
    client: Client, space: Space
) -> None:
    trigger = {"kind": "form_submitted", "formItemId": EXAMPLE_ID}
    text = {"type": "trigger", "value": "record.data.price"}
    take = {"id": "take", "kind": "transform", "config": {"output": {"price": text}}}
    await create(client, space, triggerConfig=trigger, graph={"nodes": [take]})
    assert [row.references_version for row in await stored_graphs(space)] == [None]


async def test_a_renamed_field_needs_a_free_key(client: Client, space: Space) -> None:
    made = await make_database(client, space, PRICE, STATUS)
    for key, status in (("status", 409), ("in", 400), ("Cost", 400), ("title", 409)):
        assert (await try_rename(client, made, key, rewrite=True)).status_code == status
    unchanged = await rename(client, made, "price")
    assert unchanged["key"] == "price"


async def test_a_page_lists_the_places(client: Client, space: Space, app: FastAPI) -> None:
    made = await make_database(client, space, PRICE, STATUS, label="<b>Orders</b>")
    automation = await publish_doubling(client, space, made)
    async with await signed_in(app, space) as visitor:
        path = f"/workspaces/{space.id}/impact"
        page = await visitor.get(f"{path}?kind=database&subjectId={made['id']}")
        assert page.status_code == 200, page.text
        assert "2 of 2 places fail" in page.text
        assert f"/automations/{automation['id']}" in page.text
        assert "&lt;b&gt;Orders&lt;/b&gt;" in page.text
        assert (await visitor.get(f"{path}?kind=secret&key=none")).status_code == 404


async def close(client: Client, space: Space, automation: Json) -> None:
    """Restrict the item of an automation to owners and administrators."""
    item_id = data_of(await client.get(f"{space.path}/automations/{automation['id']}"))["itemId"]
    body = {"accessMode": "restricted", "grants": []}
    data_of(await client.put(f"/v1/items/{item_id}/access", json=body))


async def test_hidden_places_are_counted_and_not_named(client: Client, space: Space) -> None:
    made = await make_database(client, space, PRICE, STATUS)
    automation = await publish_doubling(client, space, made)
    await close(client, space, automation)
    _, token = await space.member(Role.EDITOR)
    editor = client.with_token(token)
    price = field_of(made, "price")["id"]
    answer = await ask(editor, space, kind="field", id=price)
    assert (answer["places"], answer["total"], answer["hidden"]) == ([], 5, 5)
    refused = await editor.post(
        f"/v1/databases/{made['id']}/fields/{price}/rename", json={"key": "cost"}
    )
    assert refused.status_code == 409
    assert "Double" not in refused.text
    body = {"kind": "automation", "id": automation["id"]}
    assert (await editor.post(f"{space.path}/impact", json=body)).status_code == 404


async def test_a_key_without_the_scope_of_a_place_sees_its_number(
    client: Client, space: Space
) -> None:
    made = await make_database(client, space, PRICE, STATUS)
    await publish_doubling(client, space, made)
    reader = client.with_token(await space.key([Scope.WORKSPACE_READ, Scope.DATABASES_READ]))
    answer = await ask(reader, space, kind="field", id=field_of(made, "price")["id"])
    assert (answer["places"], answer["total"], answer["hidden"]) == ([], 5, 5)
    body = {"kind": "secret", "key": "token"}
    assert (await reader.post(f"{space.path}/impact", json=body)).status_code == 403


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({"kind": "field"}, "takes id"),
        ({"kind": "secret", "id": str(UUID(int=1))}, "takes key"),
        ({"kind": "database", "id": str(UUID(int=1)), "change": "rename"}, "can be renamed"),
        ({"kind": "database", "id": str(UUID(int=1)), "change": "convert"}, "cannot be converted"),
    ],
    ids=["no id", "id of a secret", "rename of a database", "conversion of a database"],
)
async def test_an_incomplete_question_is_refused(
    client: Client, space: Space, body: Json, problem: str
) -> None:
    answer = await client.post(f"{space.path}/impact", json=body)
    assert answer.status_code == 400
    assert problem in answer.text


async def test_secrets_actions_and_members_are_found(client: Client, space: Space) -> None:
    data_of(await client.put(f"{space.path}/secrets/token", json={"value": "x"}))
    config = {"databaseId": (await make_database(client, space))["id"], "data": {}}
    action = await make_action(client, space, label="Add", kind="create_record", config=config)
    secret = {"type": "bearer", "token": {"type": "secret", "value": "token"}}
    nodes = [
        {"id": "call", "kind": "http_request", "config": {"url": "https://a.test", "auth": secret}},
        {"id": "run", "kind": "action", "actionId": action["id"]},
        {
            "id": "tell",
            "kind": "notify",
            "config": {"userIds": [str(space.user_id)], "title": "Hi"},
        },
    ]
    edges = [{"from": "call", "to": "run"}, {"from": "run", "to": "tell"}]
    await publish(client, space, label="Tell", graph={"nodes": nodes, "edges": edges})
    for body, node, path in (
        ({"kind": "secret", "key": "token"}, "call", "config.auth.token.value"),
        ({"kind": "action", "id": action["id"]}, "run", "actionId"),
        ({"kind": "member", "id": str(space.user_id)}, "tell", "config.userIds.0"),
    ):
        answer = await ask(client, space, **body)
        assert places(answer) == {("automation", node, path, "read", True)}


async def make_connection(client: Client, space: Space) -> Json:
    body = {
        "provider": "http",
        "label": "Shop",
        "config": {"baseUrl": "https://example.test/"},
        "credentials": {"secret": "planted"},
    }
    path = f"{space.path}/integrations/connections"
    made: Json = data_of(await client.post(path, json=body), 201)
    return made


async def test_connections_and_endpoints_are_found(client: Client, space: Space) -> None:
    made = await make_connection(client, space)
    url = {"url": "https://hooks.example.test/"}
    endpoint = data_of(await client.post(f"{space.path}/webhook-endpoints", json=url), 201)
    nodes = [
        {
            "id": "call",
            "kind": "http_request",
            "config": {"url": "https://a.test", "connectionId": made["id"]},
        },
        {
            "id": "send",
            "kind": "send_webhook",
            "config": {"endpointId": endpoint["id"], "type": "a"},
        },
    ]
    graph = {"nodes": nodes, "edges": [{"from": "call", "to": "send"}]}
    await publish(client, space, label="Call", graph=graph)
    rule = {
        "label": "Shop fails",
        "condition": {"kind": "connection_failing", "connectionId": made["id"]},
    }
    data_of(await client.post(f"{space.path}/alert-rules", json=rule), 201)
    answer = await ask(client, space, kind="connection", id=made["id"])
    assert places(answer) == {
        ("automation", "call", "config.connectionId", "read", True),
        ("alert_rule", None, "condition.connectionId", "read", False),
    }
    answer = await ask(client, space, kind="webhook_endpoint", id=endpoint["id"])
    assert places(answer) == {("automation", "send", "config.endpointId", "read", True)}


async def test_forms_views_and_items_are_found(client: Client, space: Space) -> None:
    made = await furnish(client, space)
    await with_chart(client, made)
    form = (await ask(client, space, kind="database", id=made["id"]))["places"]
    form_id = next(one["itemId"] for one in form if one["kind"] == "form")
    trigger = {"kind": "form_submitted", "formItemId": form_id}
    text = {"type": "trigger", "value": "record.data.price"}
    nodes = [
        {"id": "take", "kind": "transform", "config": {"output": {"price": text}}},
        {
            "id": "read",
            "kind": "query_records",
            "config": {"databaseId": made["id"], "query": {"viewId": made["views"][0]["id"]}},
        },
    ]
    graph = {"nodes": nodes, "edges": [{"from": "take", "to": "read"}]}
    automation = await publish(client, space, label="Form", triggerConfig=trigger, graph=graph)
    answer = await ask(client, space, kind="form", id=form_id)
    assert places(answer) == {("automation", None, "triggerConfig.formItemId", "read", True)}
    answer = await ask(client, space, kind="view", id=made["views"][0]["id"])
    assert places(answer) == {("automation", "read", "config.query.viewId", "read", True)}
    link = {"maxUses": 3}
    path = f"/v1/workspaces/{space.id}/items/{made['itemId']}/share-links"
    data_of(await client.post(path, json=link), 201)
    answer = await ask(client, space, kind="database", id=made["id"])
    kinds = {one["kind"] for one in answer["places"]}
    assert kinds == {"action", "automation", "dashboard", "form", "share_link"}
    answer = await ask(client, space, kind="field", id=field_of(made, "price")["id"])
    found = places(answer)
    assert ("automation", "take", "config.output.price.value", "read", True) in found
    assert [one for one in answer["places"] if one["kind"] == "dashboard"]
    await rename(client, made, "cost", rewrite=True)
    now = data_of(await client.get(f"{space.path}/automations/{automation['id']}"))
    assert now["graph"]["nodes"][0]["config"]["output"]["price"]["value"] == "record.data.cost"


async def test_automations_and_data_sources_are_found(client: Client, space: Space) -> None:
    made = await make_database(client, space, PRICE)
    called = await publish(
        client,
        space,
        label="Called",
        triggerConfig={"kind": "automation_called"},
        graph={"nodes": [{"id": "a", "kind": "transform", "config": {"output": {}}}]},
    )
    node = {"id": "call", "kind": "call_automation", "config": {"automationId": called["id"]}}
    graph = {"nodes": [node], "edges": [], "failureAutomationId": called["id"]}
    await publish(client, space, label="Calls", graph=graph)
    source = {
        "label": "Prices",
        "kind": "http_json",
        "config": {"url": "https://example.test/rows"},
        "targetDatabaseId": made["id"],
        "fields": [{"sourcePath": "$.p", "fieldKey": "price", "label": "Price", "kind": "number"}],
        "keyFields": ["price"],
    }
    rows = data_of(await client.post(f"{space.path}/data-sources", json=source), 201)
    answer = await ask(client, space, kind="automation", id=called["id"])
    assert places(answer) == {
        ("automation", "call", "config.automationId", "read", True),
        ("automation", None, "graph.failureAutomationId", "read", True),
    }
    answer = await ask(client, space, kind="field", id=field_of(made, "price")["id"])
    assert places(answer) == {
        ("data_source", None, "fields.0.fieldKey", "write", True),
        ("data_source", None, "keyFields.0", "read", True),
    }
    await rename(client, made, "cost", rewrite=True)
    shown = data_of(await client.get(f"{space.path}/data-sources/{rows['id']}"))
    assert (shown["fields"][0]["fieldKey"], shown["keyFields"]) == ("cost", ["cost"])
    answer = await ask(client, space, kind="data_source", id=rows["id"])
    assert answer["total"] == 0
    answer = await ask(client, space, kind="item", id=made["itemId"])
    assert places(answer) == {("data_source", None, "targetDatabaseId", "read", True)}


async def test_a_file_is_found_by_itself_and_by_its_item(client: Client, space: Space) -> None:
    made = await make_database(client, space, PRICE)
    file_id = (await stored(client, space))["fileId"]
    config = {"fileId": file_id, "format": "csv"}
    source = {"label": "Prices", "kind": "file", "targetDatabaseId": made["id"], "config": config}
    data_of(await client.post(f"{space.path}/data-sources", json=source), 201)
    expected = {("data_source", None, "config.fileId", "read", True)}
    assert places(await ask(client, space, kind="file", id=file_id)) == expected
    placed = await make_thing(client, "file", "Prices", config={"fileId": file_id})
    for kind, id_ in (("file", file_id), ("item", placed["item"]["id"])):
        assert places(await ask(client, space, kind=kind, id=id_)) == expected


async def test_an_item_is_found_by_what_names_the_thing_it_places(
    client: Client, space: Space
) -> None:
    made = await furnish(client, space)
    by_id = await ask(client, space, kind="database", id=made["id"])
    assert by_id["places"]
    by_item = await ask(client, space, kind="item", id=made["itemId"])
    assert by_item["places"] == by_id["places"]
    assert by_item["kind"] == "item"
