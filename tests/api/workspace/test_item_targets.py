"""What stands behind items: made, shown and copied kind by kind."""

import hashlib
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import insert, select

from models.content.files.commands import register_file
from models.content.files.rules import Content
from models.content.items.joins import item, item_grant
from models.core.access.rules import Level, Role, Scope
from runtime.ids import new_id
from tests.support.client import Client
from tests.support.items import Json, children, make, make_item, read, refused, titles
from tests.support.spaces import Space

RESOURCE = {
    "externalType": "doc",
    "externalId": "42",
    "name": "Report",
    "surfaceKind": "document",
    "capabilities": ["read"],
    "canonicalUrl": "https://docs.example.test/42",
}

BLOCKS = {"blocks": [{"kind": "paragraph", "content": {"text": [{"text": "Hello"}]}}]}


async def upload(space: Space) -> str:
    content = Content(
        name="report.pdf",
        mime_type="application/pdf",
        byte_size=3,
        sha256=hashlib.sha256(b"abc").digest(),
        object_key=f"files/{uuid4()}",
    )
    file_id = new_id()
    async with space.database.transaction() as work:
        await register_file(
            work,
            space.keys,
            content,
            file_id=file_id,
            workspace_id=space.id,
            user_id=space.user_id,
        )
    return str(file_id)


async def config_of(client: Client, space: Space, kind: str) -> Json:
    """The parts of a body that its kind needs."""
    if kind in {"view", "form"}:
        database = await make(client, "database", "Data")
        return {"config": {"databaseId": database["target"]["id"]}}
    if kind == "file":
        return {"config": {"fileId": await upload(space)}}
    if kind == "data_source":
        source = {"kind": "http_json", "config": {"url": "https://example.test/rows"}}
        return {"config": source}
    if kind == "action":
        return {"config": {"kind": "transform", "config": {"output": {"a": 1}}}}
    if kind == "external_resource":
        return {"config": {"resource": RESOURCE}}
    return {}


KINDS = [
    "page",
    "note",
    "canvas",
    "dashboard",
    "view",
    "form",
    "database",
    "file",
    "data_source",
    "action",
    "automation",
    "external_resource",
]


@pytest.mark.parametrize("kind", KINDS)
async def test_every_kind_is_made_with_its_target(client: Client, space: Space, kind: str) -> None:
    folder = await make_item(client, "folder")
    extra = await config_of(client, space, kind)
    made = await make(client, kind, "Thing", parentItemId=folder["id"], icon="🧩", order=4, **extra)
    assert made["item"]["kind"] == kind
    assert (made["item"]["icon"], made["item"]["order"]) == ("🧩", 4)
    assert made["item"]["parentItemId"] == folder["id"]
    target = made["target"]
    assert made["item"]["targetId"] == target["fileId" if kind == "file" else "id"]
    assert target.get("itemId", made["item"]["id"]) == made["item"]["id"]
    assert target.get("label", "Thing") == "Thing"
    assert read(await client.get(f"/v1/items/{made['item']['id']}")) == made["item"]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "database"])
async def test_every_kind_is_copied_with_its_target(
    client: Client, space: Space, kind: str
) -> None:
    extra = await config_of(client, space, kind)
    made = (await make(client, kind, "Thing", icon="🧩", color="red", metadata={"a": 1}, **extra))[
        "item"
    ]
    path = f"/v1/items/{made['id']}/duplicate"
    copy = read(await client.post(path), 201)
    assert copy["title"] == "Thing copy"
    assert copy["targetId"] not in {None, made["targetId"]}
    kept = ("kind", "icon", "color", "metadata", "accessMode", "parentItemId", "archived")
    assert {key: copy[key] for key in kept} == {key: made[key] for key in kept}
    assert copy["order"] > made["order"]
    assert read(await client.post(path), 201)["title"] == "Thing copy 2"
    again = read(await client.post(f"/v1/items/{copy['id']}/duplicate"), 201)
    assert again["title"] == "Thing copy 3"


async def test_a_page_is_made_and_copied_with_its_blocks(client: Client) -> None:
    made = await make(client, "page", "Page", content=BLOCKS)
    (block,) = made["target"]["blocks"]
    copy = read(await client.post(f"/v1/items/{made['item']['id']}/duplicate"), 201)
    surface = read(await client.get(f"/v1/surfaces/{copy['targetId']}"))
    (copied,) = surface["blocks"]
    assert copied["content"] == block["content"]
    answer = await client.post(
        "/v1/items", json={"kind": "page", "title": "x", "content": {"blocks": [{"kind": "?"}]}}
    )
    assert refused(answer) == (400, "validation_error")
    assert answer.json()["details"][0]["path"].startswith("content.blocks.0")


async def test_targets_that_run_by_themselves_are_copied_disabled(
    client: Client, space: Space
) -> None:
    for kind, resource in (
        ("action", "actions"),
        ("data_source", "data-sources"),
        ("automation", "automations"),
    ):
        extra = await config_of(client, space, kind)
        config = {**extra.get("config", {}), "enabled": True}
        made = await make(client, kind, resource, config=config)
        assert made["target"]["enabled"] is True
        copy = read(await client.post(f"/v1/items/{made['item']['id']}/duplicate"), 201)
        copied = read(await client.get(f"{space.path}/{resource}/{copy['targetId']}"))
        assert copied["enabled"] is False
        assert copied["label"] == f"{resource} copy"
        assert copied["key"] not in {made["target"]["key"], None}
        if kind == "automation":
            assert copied["webhookPath"] != made["target"]["webhookPath"]
            assert copied["graph"] == made["target"]["graph"]
        else:
            assert copied["config"] == made["target"]["config"]


async def test_an_automation_item_starts_as_an_empty_draft(client: Client) -> None:
    made = (await make(client, "automation", "Nightly"))["target"]
    assert (made["trigger"], made["version"], made["enabled"]) == ("manual", 1, False)
    assert made["graph"]["nodes"] == []
    assert "publishedVersionId" not in made


async def test_a_file_has_one_item_until_it_is_copied(client: Client, space: Space) -> None:
    file_id = await upload(space)
    body = {"kind": "file", "title": "Report", "config": {"fileId": file_id}}
    made = read(await client.post("/v1/items", json=body), 201)
    assert made["target"].keys() == {
        "fileId", "name", "mimeType", "byteSize", "downloadUrl", "createdAt",
    }  # fmt: skip
    assert refused(await client.post("/v1/items", json=body)) == (409, "conflict")
    copy = read(await client.post(f"/v1/items/{made['item']['id']}/duplicate"), 201)
    gone = read(await client.delete(f"/v1/items/{copy['id']}"))
    assert "database" not in gone
    assert gone["file"]["fileId"] == copy["targetId"]
    assert gone["file"]["name"] == "report.pdf"
    assert gone["file"]["downloadUrl"].startswith(f"/v1/assets/{copy['targetId']}/")
    assert read(await client.get(f"/v1/items/{made['item']['id']}"))


async def test_foreign_files_are_not_found(client: Client, foreign: Space) -> None:
    answers = [
        await client.post(
            "/v1/items", json={"kind": "file", "title": "x", "config": {"fileId": file_id}}
        )
        for file_id in (await upload(foreign), str(uuid4()))
    ]
    assert refused(answers[0]) == (404, "not_found")
    assert answers[0].content == answers[1].content


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"canonicalUrl": "javascript:alert(1)"}, "config.resource.canonicalUrl"),
        ({"canonicalUrl": "https://"}, "config.resource.canonicalUrl"),
        ({"canonicalUrl": "https://a b"}, "config.resource.canonicalUrl"),
        ({"capabilities": ["fly"]}, "config.resource.capabilities.0"),
        ({"surfaceKind": 5}, "config.resource.surfaceKind"),
        ({"name": ""}, "config.resource.name"),
        ({"metadata": {"a": "x" * 70_000}}, "config.resource.metadata"),
        ({"token": "x"}, "config.resource.token"),
    ],
)
async def test_bad_resources_are_refused(client: Client, change: Json, path: str) -> None:
    body = {
        "kind": "external_resource",
        "title": "x",
        "config": {"resource": {**RESOURCE, **change}},
    }
    answer = await client.post("/v1/items", json=body)
    assert refused(answer) == (400, "validation_error")
    assert answer.json()["details"][0]["path"] == path


async def test_an_unknown_connection_is_not_found(client: Client) -> None:
    config = {"resource": RESOURCE, "connectionId": str(uuid4())}
    body = {"kind": "external_resource", "title": "x", "config": config}
    assert refused(await client.post("/v1/items", json=body)) == (404, "not_found")


async def test_a_folder_is_copied_with_what_is_below(client: Client) -> None:
    folder = await make_item(client, "folder")
    for title in ("b", "a"):
        await make_item(client, title, folder, kind="page", order=ord(title))
    below = await make_item(client, "below", folder, order=0)
    await make_item(client, "leaf", below, kind="note")
    read(await client.delete(f"/v1/items/{(await make_item(client, 'gone', folder))['id']}"))
    copy = read(await client.post(f"/v1/items/{folder['id']}/duplicate"), 201)
    assert await titles(client, copy) == ["below", "a", "b"]
    first, *_ = await children(client, copy)
    assert await titles(client, first) == ["leaf"]
    assert await titles(client) == ["folder", "folder copy"]
    await make_item(client, "data", below, kind="database")
    answer = await client.post(f"/v1/items/{folder['id']}/duplicate")
    assert refused(answer) == (422, "unsupported")
    assert await titles(client) == ["folder", "folder copy"]


async def test_at_most_500_items_are_copied(client: Client, space: Space) -> None:
    folder = await make_item(client, "folder")
    async with space.database.transaction() as work:
        row = await work.first(select(item).where(item.c.id == UUID(folder["id"])))
        assert row is not None
        child = {**row._mapping, "parent_item_id": row.id}
        await work.execute(insert(item), [{**child, "id": new_id()} for _ in range(500)])
    answer = await client.post(f"/v1/items/{folder['id']}/duplicate")
    assert refused(answer) == (422, "unsupported")


async def test_a_copy_is_as_closed_as_its_original(client: Client, space: Space) -> None:
    folder = await make_item(client, "folder")
    private = await make_item(client, "private", folder, accessMode="restricted")
    friend_id, friend = await space.member(Role.EDITOR)
    _, stranger = await space.member(Role.EDITOR)
    async with space.database.transaction() as work:
        await work.execute(
            insert(item_grant).values(
                workspace_id=space.id,
                item_id=UUID(private["id"]),
                user_id=friend_id,
                level=Level.VIEW.value,
                created_at=work.now,
                updated_at=work.now,
            )
        )
    copy = read(await client.post(f"/v1/items/{folder['id']}/duplicate"), 201)
    assert await titles(client.with_token(friend), copy) == ["private"]
    assert await titles(client.with_token(stranger), copy) == []
    theirs = client.with_token(stranger)
    partial = read(await theirs.post(f"/v1/items/{folder['id']}/duplicate"), 201)
    assert await titles(client, partial) == []


async def test_a_copy_of_what_refers_to_the_trash_is_a_conflict(client: Client) -> None:
    database = await make(client, "database", "Data")
    config = {"databaseId": database["target"]["id"]}
    view = await make_item(client, kind="view", config=config)
    read(await client.delete(f"/v1/items/{database['item']['id']}"))
    answer = await client.post(f"/v1/items/{view['id']}/duplicate")
    assert refused(answer) == (409, "conflict")


async def test_the_config_needs_what_its_parts_need(client: Client, space: Space) -> None:
    scopes = [one for one in Scope if one is not Scope.DATABASES_WRITE]
    bare = client.with_token(await space.key(scopes))
    extra: dict[str, Any] = await config_of(client, space, "data_source")
    answer = await bare.post("/v1/items", json={"kind": "data_source", "title": "x", **extra})
    assert refused(answer) == (403, "denied")
    assert "databases:write" in answer.json()["message"]
    target = (await make(client, "database", "Data"))["target"]["id"]
    extra["config"]["targetDatabaseId"] = target
    made = await bare.post("/v1/items", json={"kind": "data_source", "title": "x", **extra})
    assert read(made, 201)["target"]["targetDatabaseId"] == target
