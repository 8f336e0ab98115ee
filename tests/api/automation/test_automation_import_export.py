"""Automations taken elsewhere as documents, copied, and put into the trash."""

from typing import Any

import pytest

from tests.support.automations import create, numbered, path_of, publish, read, refusal
from tests.support.client import Client
from tests.support.spaces import Space, make_space

Json = dict[str, Any]

URL = "https://hooks.example.com/orders"


async def _database(client: Client, space: Space, label: str) -> Json:
    made: Json = read(await client.post(f"{space.path}/databases", json={"label": label}), 201)
    return made


def _query(database_id: str) -> Json:
    return {
        "nodes": [{"id": "find", "kind": "query_records", "config": {"databaseId": database_id}}],
        "edges": [],
        "variables": {"greeting": "hello"},
    }


async def _import(client: Client, space: Space, **body: Any) -> Any:
    return await client.post(f"{space.path}/automations/import", json=body)


async def test_an_exported_automation_imports_unchanged(client: Client, space: Space) -> None:
    database = await _database(client, space, "Cars")
    config = {"kind": "record_created", "databaseId": database["id"]}
    made = await create(
        client, space, label="Watch", graph=_query(database["id"]), triggerConfig=config
    )
    document = read(await client.get(f"{path_of(made)}/export"))
    assert document["references"] == [{"id": database["id"], "kind": "database", "label": "Cars"}]
    assert made["webhookSecret"] not in str(document)
    back = read(await _import(client, space, document=document), 201)
    assert (back["label"], back["key"], back["enabled"]) == ("Watch", "watch_2", False)
    assert (back["graph"], back["triggerConfig"]) == (made["graph"], made["triggerConfig"])
    assert back["webhookPath"] != made["webhookPath"]
    assert back["referenceIssues"] == []


async def test_a_document_finds_its_way_in_another_workspace(client: Client, space: Space) -> None:
    database = await _database(client, space, "Cars")
    made = await create(client, space, graph=_query(database["id"]))
    document = read(await client.get(f"{path_of(made)}/export"))
    elsewhere = await make_space(space.database, space.keys)
    there = client.with_token(elsewhere.token)
    lost = read(await _import(there, elsewhere, document=document), 201)
    assert [issue["nodeId"] for issue in lost["referenceIssues"]] == ["find"]
    own = await _database(there, elsewhere, "Autos")
    mapping = {database["id"]: own["id"]}
    found = read(
        await _import(there, elsewhere, document=document, mapping=mapping, label="Autos"), 201
    )
    assert (found["label"], found["referenceIssues"]) == ("Autos", [])
    assert found["graph"]["nodes"][0]["config"]["databaseId"] == own["id"]


async def test_a_document_names_an_endpoint_of_where_it_goes(client: Client, space: Space) -> None:
    elsewhere = await make_space(space.database, space.keys)
    there = client.with_token(elsewhere.token)
    first, second = [
        read(await caller.post(f"{home.path}/webhook-endpoints", json={"url": URL}), 201)["id"]
        for caller, home in ((client, space), (there, elsewhere))
    ]
    config = {"endpointId": first, "type": "x"}
    graph = {"nodes": [{"id": "hook", "kind": "send_webhook", "config": config}]}
    made = await create(client, space, graph=graph)
    document = read(await client.get(f"{path_of(made)}/export"))
    assert refusal(await _import(there, elsewhere, document=document)) == (404, "not_found")
    mapping = {first: second}
    found = read(await _import(there, elsewhere, document=document, mapping=mapping), 201)
    assert found["graph"]["nodes"][0]["config"]["endpointId"] == second
    assert found["referenceIssues"] == []


async def test_any_version_can_be_exported(client: Client, space: Space) -> None:
    made = await publish(client, space, graph=numbered(1))
    first = made["publishedVersionId"]
    await client.patch(path_of(made), json={"graph": numbered(2)})

    async def number(**query: str) -> int:
        document = read(await client.get(f"{path_of(made)}/export", params=query))
        output: int = document["graph"]["nodes"][0]["config"]["output"]["number"]
        return output

    assert await number() == 2
    assert await number(versionId=first) == 1
    other = await create(client, space)
    foreign = {"versionId": other["versionId"]}
    refused = await client.get(f"{path_of(made)}/export", params=foreign)
    assert refusal(refused) == (400, "validation_error")


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"format": "n8n"}, "document.format"),
        ({"formatVersion": 2}, "document.formatVersion"),
        ({"secrets": {}}, "document.secrets"),
        ({"triggerConfig": {"kind": "sunrise"}}, "document.triggerConfig.kind"),
        ({"graph": {"nodes": "none"}}, "document.graph.nodes"),
        ({"label": ""}, "document.label"),
    ],
)
async def test_a_document_that_is_none_is_refused(
    client: Client, space: Space, change: Json, path: str
) -> None:
    made = await create(client, space)
    document = read(await client.get(f"{path_of(made)}/export"))
    refused = await _import(client, space, document=document | change)
    assert refusal(refused) == (400, "validation_error")
    assert refused.json()["details"][0]["path"] == path


async def test_a_copy_is_a_disabled_draft_beside_the_original(client: Client, space: Space) -> None:
    made = await publish(client, space, label="Report", graph=numbered(7))
    copied = read(await client.post(f"{path_of(made)}/duplicate"), 201)
    assert (copied["label"], copied["enabled"], copied["version"]) == ("Report copy", False, 1)
    assert (copied.get("publishedVersionId"), copied["graph"]) == (None, made["graph"])
    assert copied["webhookPath"] != made["webhookPath"]


async def test_a_deleted_automation_is_gone_until_it_is_restored(
    client: Client, space: Space
) -> None:
    made = await publish(client, space)
    gone = read(await client.delete(path_of(made)))
    assert gone["id"] == made["id"]
    assert refusal(await client.get(path_of(made))) == (404, "not_found")
    assert refusal(await client.post(f"{path_of(made)}/run", json={})) == (404, "not_found")
    await client.post(f"/v1/items/{made['itemId']}/restore")
    assert read(await client.get(path_of(made)))["id"] == made["id"]
