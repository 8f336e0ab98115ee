"""Deletions that break something: refused with the list of places unless they are forced."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from fastapi import FastAPI

from models.core.access.rules import Role, Scope
from tests.api.workspace.test_impact import (
    PRICE,
    STATUS,
    Json,
    ask,
    close,
    field_of,
    make_action,
    make_connection,
    make_database,
    publish_doubling,
)
from tests.support.automations import publish
from tests.support.automations import read as data_of
from tests.support.client import Client
from tests.support.files import stored
from tests.support.items import make as make_thing
from tests.support.plans import recorded_statements
from tests.support.spaces import Space
from tests.support.visitor import signed_in

Make = Callable[[Client, Space], Awaitable[tuple[str, Json]]]
"""Makes a thing; returns the path that deletes it, and the nodes that use it."""


def node(kind: str, config: Json, **others: Any) -> Json:
    return {"id": "use", "kind": kind, **({"config": config} if config else {}), **others}


async def database(client: Client, space: Space) -> tuple[str, Json]:
    made = await make_database(client, space)
    query = node("query_records", {"databaseId": made["id"], "query": {}})
    return f"{space.path}/databases/{made['id']}", query


async def field(client: Client, space: Space) -> tuple[str, Json]:
    made = await make_database(client, space, PRICE)
    query = {"filter": {"field": "price", "op": "gt", "value": 5}}
    path = f"/v1/databases/{made['id']}/fields/{field_of(made, 'price')['id']}"
    return path, node("query_records", {"databaseId": made["id"], "query": query})


async def view(client: Client, space: Space) -> tuple[str, Json]:
    made = await make_database(client, space)
    path = f"/v1/databases/{made['id']}/views"
    other = data_of(await client.post(path, json={"label": "Other"}), 201)
    query = {"viewId": other["id"]}
    return f"{path}/{other['id']}", node(
        "query_records", {"databaseId": made["id"], "query": query}
    )


async def connection(client: Client, space: Space) -> tuple[str, Json]:
    made = await make_connection(client, space)
    config = {"url": "https://a.test", "connectionId": made["id"]}
    return f"{space.path}/integrations/connections/{made['id']}", node("http_request", config)


async def secret(client: Client, space: Space) -> tuple[str, Json]:
    path = f"{space.path}/secrets/token"
    data_of(await client.put(path, json={"value": "x"}))
    auth = {"type": "bearer", "token": {"type": "secret", "value": "token"}}
    return path, node("http_request", {"url": "https://a.test", "auth": auth})


async def action(client: Client, space: Space) -> tuple[str, Json]:
    config = {"databaseId": (await make_database(client, space))["id"], "data": {}}
    made = await make_action(client, space, label="Add", kind="create_record", config=config)
    return f"{space.path}/actions/{made['id']}", node("action", {}, actionId=made["id"])


async def automation(client: Client, space: Space) -> tuple[str, Json]:
    called = await publish(
        client,
        space,
        label="Called",
        triggerConfig={"kind": "automation_called"},
        graph={"nodes": [{"id": "a", "kind": "transform", "config": {"output": {}}}]},
    )
    path = f"{space.path}/automations/{called['id']}"
    return path, node("call_automation", {"automationId": called["id"]})


async def data_source(client: Client, space: Space) -> tuple[str, Json]:
    made = await make_database(client, space, PRICE)
    body = {
        "label": "Prices",
        "kind": "http_json",
        "config": {"url": "https://example.test/rows"},
        "targetDatabaseId": made["id"],
    }
    rows = data_of(await client.post(f"{space.path}/data-sources", json=body), 201)
    config = {"dataSourceId": rows["id"]}
    refresh = await make_action(
        client, space, label="Refresh", kind="refresh_data_source", config=config
    )
    return f"{space.path}/data-sources/{rows['id']}", node("action", {}, actionId=refresh["id"])


async def member(_: Client, space: Space) -> tuple[str, Json]:
    user_id = (await space.member(Role.EDITOR))[0]
    config = {"userIds": [str(user_id)], "title": "Hi"}
    return f"{space.path}/members/{user_id}", node("notify", config)


async def endpoint(client: Client, space: Space) -> tuple[str, Json]:
    path = f"{space.path}/webhook-endpoints"
    made = data_of(await client.post(path, json={"url": "https://hooks.example.test/"}), 201)
    return f"{path}/{made['id']}", node("send_webhook", {"endpointId": made["id"], "type": "a"})


THINGS: list[Make] = [
    database,
    field,
    view,
    connection,
    secret,
    action,
    automation,
    data_source,
    member,
    endpoint,
]


@pytest.mark.parametrize("make", THINGS)
async def test_a_thing_in_use_is_deleted_with_force(
    client: Client, space: Space, make: Make
) -> None:
    path, use = await make(client, space)
    await publish(client, space, label="Uses", graph={"nodes": [use], "edges": []})
    refused = await client.delete(path)
    body = refused.json()
    assert (refused.status_code, body["error"]) == (409, "in_use"), refused.text
    (place,) = body["details"]["places"]
    assert place["breaks"]
    assert body["details"] == {"places": [place], "total": 1, "breaking": 1, "hidden": 0}
    assert f"1 place: {place['kind']} {place['label']}. " in body["message"]
    assert (await client.delete(path, params={"force": "false"})).json() == body
    assert (await client.delete(path, headers={"Prefer": "dry-run"})).json() == body
    forced = {"force": "true"}
    tried = await client.delete(path, params=forced, headers={"Prefer": "dry-run"})
    assert tried.status_code == 200, tried.text
    assert (await client.delete(path)).json() == body
    key = {"Idempotency-Key": "once"}
    deleted = await client.delete(path, params=forced, headers=key)
    assert deleted.status_code == 200, deleted.text
    if make is not secret:  # which takes no key
        assert (await client.delete(path, params=forced, headers=key)).json() == deleted.json()
    assert (await client.delete(path)).status_code == 404


@pytest.mark.parametrize("make", THINGS)
async def test_an_unused_thing_is_deleted(client: Client, space: Space, make: Make) -> None:
    path, use = await make(client, space)
    if use["kind"] == "action" and "data-sources" in path:
        data_of(await client.delete(f"{space.path}/actions/{use['actionId']}"))
    answer = await client.delete(path)
    assert answer.status_code == 200, answer.text


async def test_a_file_in_use_is_deleted_with_force(client: Client, space: Space) -> None:
    made = await make_database(client, space, PRICE)
    file_id = (await stored(client, space))["fileId"]
    config = {"fileId": file_id, "format": "csv"}
    source = {"label": "Prices", "kind": "file", "targetDatabaseId": made["id"], "config": config}
    data_of(await client.post(f"{space.path}/data-sources", json=source), 201)
    path = f"{space.path}/files/{file_id}"
    refused = await client.delete(path)
    assert (refused.status_code, refused.json()["error"]) == (409, "in_use")
    assert refused.json()["details"]["places"][0]["label"] == "Prices"
    data_of(await client.delete(path, params={"force": "true"}))


async def test_places_that_adapt_refuse_no_deletion(client: Client, space: Space) -> None:
    made = await make_database(client, space, PRICE)
    path = f"/v1/databases/{made['id']}"
    manifest = {"filter": {"field": "price", "op": "lt", "value": 5}}
    data_of(await client.post(f"{path}/views", json={"label": "A", "manifest": manifest}), 201)
    template = {"label": "Usual", "data": {"price": 3}}
    data_of(await client.post(f"{path}/record-templates", json=template), 201)
    data_of(await client.delete(f"{path}/fields/{field_of(made, 'price')['id']}"))


async def test_the_documented_deletion_of_an_item_refuses_when_asked_to(
    client: Client, space: Space
) -> None:
    made = await make_database(client, space, PRICE, STATUS)
    await publish_doubling(client, space, made)
    path = f"/v1/items/{made['itemId']}"
    refused = await client.delete(path, params={"force": "false"})
    assert (refused.status_code, refused.json()["error"]) == (409, "in_use")
    assert data_of(await client.delete(path))["item"]["id"] == made["itemId"]


async def test_places_that_the_caller_cannot_see_are_counted(client: Client, space: Space) -> None:
    made = await make_database(client, space, PRICE, STATUS)
    doubling = await publish_doubling(client, space, made)
    await close(client, space, doubling)
    _, token = await space.member(Role.EDITOR)
    path = f"/v1/databases/{made['id']}/fields/{field_of(made, 'price')['id']}"
    refused = await client.with_token(token).delete(path)
    body = refused.json()
    assert body["details"] == {"places": [], "total": 5, "breaking": 5, "hidden": 5}
    assert "5 places that you cannot see" in body["message"]
    assert "Double" not in refused.text


async def test_a_proposal_names_no_place_that_its_author_cannot_read(
    client: Client, space: Space
) -> None:
    made = await make_database(client, space, PRICE, STATUS)
    await publish_doubling(client, space, made)
    scopes = [Scope.WORKSPACE_CHANGES_PROPOSE, Scope.DATABASES_READ]
    author = client.with_token(await space.key(scopes))
    path = f"/v1/databases/{made['id']}/fields/{field_of(made, 'price')['id']}"
    refused = await author.delete(path, headers={"Prefer": "propose"})
    assert (refused.status_code, refused.json()["error"]) == (409, "in_use"), refused.text
    assert refused.json()["details"]["places"] == []
    assert "Double" not in refused.text
    forced = {"force": "true"}
    kept = await author.delete(path, headers={"Prefer": "propose"}, params=forced)
    assert kept.is_success, kept.text


@pytest.mark.parametrize("forced", [False, True])
async def test_a_proposal_is_applied_with_the_force_it_was_made_with(
    client: Client, space: Space, *, forced: bool
) -> None:
    path, use = await secret(client, space)
    params = {"force": "true"} if forced else {}
    proposed = await client.delete(path, headers={"Prefer": "propose"}, params=params)
    change_id = proposed.json()["proposal"]["id"]
    await publish(client, space, label="Uses", graph={"nodes": [use], "edges": []})
    answer = await client.post(f"{space.path}/changes/{change_id}/apply", json={})
    left = data_of(await client.get(f"{space.path}/secrets"))["secrets"]
    if forced:
        assert (answer.status_code, left) == (200, [])
    else:
        assert (answer.status_code, len(left)) == (409, 1)


async def test_other_refusals_go_first(client: Client, space: Space) -> None:
    formula = {"label": "Tax", "kind": "formula", "settings": {"expression": "record.price * 0.2"}}
    made = await make_database(client, space, PRICE, STATUS, formula)
    await publish_doubling(client, space, made)
    path = f"/v1/databases/{made['id']}/fields/{field_of(made, 'price')['id']}"
    assert (await client.delete(path)).json()["error"] == "conflict"
    assert (await client.delete(path, params={"force": "yes"})).status_code == 400


async def test_a_page_asks_whether_to_delete_anyway(
    client: Client, space: Space, app: FastAPI
) -> None:
    path, use = await secret(client, space)
    await publish(client, space, label="<b>Uses</b>", graph={"nodes": [use], "edges": []})
    page = f"/workspaces/{space.id}/settings/secrets"
    async with await signed_in(app, space) as visitor:
        refused = await visitor.send_form(f"{page}/token/delete", page)
        assert refused.status_code == 409
        assert "Delete anyway" in refused.text
        assert "&lt;b&gt;Uses&lt;/b&gt;" in refused.text
        assert data_of(await client.get(f"{space.path}/secrets"))["secrets"]
        deleted = await visitor.send_form(f"{page}/token/delete", page, force="true")
        assert deleted.status_code == 303, deleted.text
    assert (await client.delete(path)).status_code == 404


async def test_a_page_asks_before_a_member_is_removed(
    client: Client, space: Space, app: FastAPI
) -> None:
    path, use = await member(client, space)
    await publish(client, space, label="Uses", graph={"nodes": [use], "edges": []})
    page = f"/workspaces/{space.id}/settings/members"
    remove = f"{page}/{path.rpartition('/')[2]}/remove"
    async with await signed_in(app, space) as visitor:
        refused = await visitor.send_form(remove, page)
        assert (refused.status_code, "Remove anyway" in refused.text) == (409, True)
        assert (await visitor.send_form(remove, page, force="true")).status_code == 303


async def test_an_impact_says_as_much_as_the_refusal(client: Client, space: Space) -> None:
    made = await make_database(client, space, PRICE, STATUS)
    await publish_doubling(client, space, made)
    id_ = field_of(made, "price")["id"]
    answer = await ask(client, space, kind="field", id=id_)
    refused = await client.delete(f"/v1/databases/{made['id']}/fields/{id_}")
    assert refused.json()["details"]["places"] == answer["places"]


async def test_an_item_that_is_shared_is_in_use(client: Client, space: Space) -> None:
    made = await make_thing(client, "page", "Plan")
    path = f"/v1/items/{made['item']['id']}"
    shared = await client.post(f"{space.path}/items/{made['item']['id']}/share-links", json={})
    data_of(shared, 201)
    refused = await client.delete(path, params={"force": "false"})
    assert [one["kind"] for one in refused.json()["details"]["places"]] == ["share_link"]


async def test_a_folder_is_in_use_by_what_names_anything_inside(
    client: Client, space: Space
) -> None:
    """What is inside as well goes with it, and is no place."""
    outer = (await make_thing(client, "folder", "Outer"))["item"]["id"]
    inner = (await make_thing(client, "folder", "Inner", parentItemId=outer))["item"]["id"]
    made = await make_database(client, space, PRICE, STATUS)
    orders = await publish_doubling(client, space, made)
    other = await make_database(client, space, label="Other")
    query = {"databaseId": other["id"], "query": {}}
    await publish(
        client, space, label="Reads", graph={"nodes": [node("query_records", query)], "edges": []}
    )
    for item_id in (made["itemId"], other["itemId"], orders["itemId"]):
        moved = await client.post(f"/v1/items/{item_id}/move", json={"parentItemId": inner})
        data_of(moved)
    answer = await ask(client, space, kind="item", id=outer)
    assert [(one["label"], one["nodeId"]) for one in answer["places"]] == [("Reads", "use")]
    path = f"/v1/items/{outer}"
    refused = await client.delete(path, params={"force": "false"})
    assert refused.json()["details"]["places"] == answer["places"]
    answer = await ask(client, space, kind="item", id=made["itemId"])
    assert {one["label"] for one in answer["places"]} == {"Double"}
    data_of(await client.delete(path))


async def test_a_folder_of_many_files_takes_no_more_statements(
    client: Client, space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mount has very many of them."""
    folder = (await make_thing(client, "folder", "Files"))["item"]["id"]

    async def put_file() -> str:
        file_id = str((await stored(client, space, b"[]"))["fileId"])
        config = {"fileId": file_id}
        await make_thing(client, "file", "Rows", parentItemId=folder, config=config)
        return file_id

    async def statements() -> tuple[int, list[str]]:
        with recorded_statements(monkeypatch) as seen:
            answer = await ask(client, space, kind="item", id=folder)
        return len(seen), [one["label"] for one in answer["places"]]

    await put_file()
    few, _ = await statements()
    file_ids = [await put_file() for _ in range(20)]
    source = {"label": "Rows", "kind": "file", "config": {"fileId": file_ids[9], "format": "json"}}
    target = (await make_database(client, space))["id"]
    body = {**source, "targetDatabaseId": target}
    data_of(await client.post(f"{space.path}/data-sources", json=body), 201)
    many, labels = await statements()
    # One more asks which of the places the caller sees.
    assert many <= few + 1
    assert labels == ["Rows"]


async def test_an_item_of_a_view_is_in_use_by_what_names_the_view(
    client: Client, space: Space
) -> None:
    made = await make_database(client, space, PRICE)
    config = {"databaseId": made["id"]}
    placed = (await make_thing(client, "view", "Cheap", config=config))["item"]
    query = {"databaseId": made["id"], "query": {"viewId": placed["targetId"]}}
    await publish(
        client, space, label="Reads", graph={"nodes": [node("query_records", query)], "edges": []}
    )
    refused = await client.delete(f"/v1/items/{placed['id']}", params={"force": "false"})
    assert (refused.status_code, refused.json()["details"]["breaking"]) == (409, 1)
