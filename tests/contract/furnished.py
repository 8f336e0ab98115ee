"""A workspace with one of everything, made through the API, for tests that go through all of it."""

import uuid
from dataclasses import dataclass, field
from typing import Any

from models.access.rules import Role
from models.record_exports.commands import accept_export
from models.record_exports.shapes import CreateExport
from tests.support.client import Client
from tests.support.spaces import Space

Json = dict[str, Any]


@dataclass
class Furnished:
    """`ids` maps the name of a path parameter or of a body's id to what it is here."""

    space: Space
    client: Client
    ids: dict[str, str] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)

    async def post(self, path: str, body: Any = None, **options: Any) -> Any:
        """What stands under `data` of the answer to a call that must succeed."""
        answer = await self.client.post(path, json={} if body is None else body, **options)
        assert answer.is_success, f"POST {path}: {answer.status_code} {answer.text}"
        return answer.json()["data"]


async def furnish(space: Space, client: Client) -> Furnished:
    """One of everything."""
    made = Furnished(space, client)
    made.ids["workspaceId"] = str(space.id)
    made.secrets["asset"] = "initialize.js"
    made.secrets["template"] = "tasks"
    folder = await made.post("/v1/items", {"kind": "folder", "title": "Folder"})
    made.ids["folderId"] = folder["item"]["id"]
    await _people(made)
    await _keys(made)
    await _databases(made)
    await _records(made)
    await _surfaces(made)
    await _files(made)
    await _exports(made)
    await _forms(made)
    await _engine(made)
    await _automations(made)
    return made


async def _people(made: Furnished) -> None:
    user_id, _ = await made.space.member(Role.COMMENTER)
    made.ids["userId"] = str(user_id)
    email = f"guest-{uuid.uuid4().hex}@example.test"
    invited = await made.post(f"{made.space.path}/invitations", {"email": email, "role": "viewer"})
    made.ids["invitationId"] = invited["invitation"]["id"]
    made.secrets["token"] = invited["token"]
    made.secrets["email of accept_invitation"] = email


async def _keys(made: Furnished) -> None:
    created = await made.post(
        f"{made.space.path}/api-keys", {"name": "spare", "scopes": ["records:read"]}
    )
    made.ids["apiKeyId"] = created["apiKey"]["id"]


async def _databases(made: Furnished) -> None:
    body = {"label": "Goods", "fields": [{"label": "Price", "kind": "number"}]}
    database = await made.post(f"{made.space.path}/databases", body)
    made.ids["databaseId"] = database["id"]
    made.ids["itemId"] = database["itemId"]
    made.ids["fieldId"] = next(one["id"] for one in database["fields"] if one["key"] == "price")
    path = f"/v1/databases/{database['id']}"
    view = await made.post(f"{path}/views", {"label": "Cheap", "kind": "table"})
    made.ids["viewId"] = view["id"]
    template = await made.post(f"{path}/record-templates", {"label": "Usual", "data": {"price": 1}})
    made.ids["templateId"] = template["id"]


async def _records(made: Furnished) -> None:
    path = f"/v1/databases/{made.ids['databaseId']}/records"
    record = await made.post(path, {"title": "Tea", "data": {"price": 3}})
    made.ids["recordId"] = record["id"]
    comment = await made.post(f"/v1/records/{record['id']}/comments", {"body": "Good."})
    made.ids["recordCommentId"] = comment["id"]


async def _surfaces(made: Furnished) -> None:
    page = await made.post("/v1/items", {"kind": "page", "title": "Page"})
    made.ids["pageItemId"] = page["item"]["id"]
    made.ids["surfaceId"] = page["item"]["targetId"]
    path = f"/v1/surfaces/{made.ids['surfaceId']}"
    blocks = await made.post(
        f"{path}/blocks",
        {"blocks": [{"kind": "paragraph", "content": {"text": [{"text": "Words"}]}}]},
    )
    made.ids["blockId"] = blocks["blocks"][0]["id"]
    comment = await made.post(f"{path}/comments", {"body": "Well said."})
    made.ids["surfaceCommentId"] = comment["id"]
    link = await made.post(f"{made.space.path}/items/{made.ids['pageItemId']}/share-links")
    made.ids["shareLinkId"] = link["shareLink"]["id"]
    made.secrets["share token"] = link["token"]


async def _files(made: Furnished) -> None:
    answer = await made.client.post(
        f"{made.space.path}/files?name=note.txt",
        content=b"Words",
        headers={"Content-Type": "text/plain"},
    )
    assert answer.status_code == 201, answer.text
    stored = answer.json()["data"]
    made.ids["fileId"] = stored["fileId"]
    made.secrets["assetToken"] = stored["downloadUrl"].rpartition("/")[2]
    item = await made.post(
        "/v1/items", {"kind": "file", "title": "Note", "config": {"fileId": stored["fileId"]}}
    )
    made.ids["fileItemId"] = item["item"]["id"]
    link = await made.post(
        f"{made.space.path}/items/{item['item']['id']}/share-links", {"allowDownload": True}
    )
    made.ids["fileShareLinkId"] = link["shareLink"]["id"]
    made.secrets["file share token"] = link["token"]


async def _exports(made: Furnished) -> None:
    export_id = uuid.uuid4()
    async with made.space.database.transaction() as work:
        body = CreateExport.model_validate({"format": "csv"})
        database_id = uuid.UUID(made.ids["databaseId"])
        await accept_export(work, made.space.actor, database_id, export_id, body)
    made.ids["exportId"] = str(export_id)


async def _forms(made: Furnished) -> None:
    config = {
        "databaseId": made.ids["databaseId"],
        "fields": [{"key": "title"}, {"key": "price"}],
        "public": True,
    }
    form = await made.post("/v1/items", {"kind": "form", "title": "Form", "config": config})
    made.ids["formItemId"] = form["item"]["id"]
    made.ids["formId"] = form["item"]["targetId"]


async def _engine(made: Furnished) -> None:
    source = {"label": "Source", "kind": "http_json", "config": {"url": "https://example.test/"}}
    data_source = await made.post(f"{made.space.path}/data-sources", source)
    made.ids["dataSourceId"] = data_source["id"]
    refresh = {"kind": "refresh_data_source", "dataSourceId": data_source["id"]}
    action = await made.post(
        f"{made.space.path}/actions",
        {"label": "Refresh", "kind": "refresh_data_source", "config": refresh},
    )
    made.ids["actionId"] = action["id"]


async def _automations(made: Furnished) -> None:
    graph: Json = {
        "nodes": [{"id": "a", "kind": "transform", "config": {"output": {}}}],
        "edges": [],
    }
    automations = f"{made.space.path}/automations"
    body = {"label": "Test", "triggerConfig": {"kind": "manual"}, "graph": graph}
    automation = await made.post(automations, {**body, "enabled": True})
    made.ids["automationId"] = automation["id"]
    edited = await made.post(automations, body)
    made.ids["draftAutomationId"] = edited["id"]
    await made.post(f"{automations}/{edited['id']}/publish")
    changed = {**graph, "nodes": [{**graph["nodes"][0], "label": "Changed"}]}
    await made.client.patch(f"{automations}/{edited['id']}", json={"graph": changed})
    path = f"{automations}/{automation['id']}"
    published = await made.post(f"{path}/publish")
    made.ids["versionId"] = published["publishedVersionId"]
    run = await made.post(f"{path}/run")
    made.ids["runId"] = run["id"]
