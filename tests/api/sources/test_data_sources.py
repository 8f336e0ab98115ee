"""Data sources over HTTP: every kind's config, their targets, and what must be refused."""

from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import func, select

from models.core.access.rules import Role, Scope
from models.sources.data_sources.tables import data_source
from tests.support.client import Client
from tests.support.items import Json, make, read, refused
from tests.support.spaces import Space

SOMEWHERE = str(UUID(int=7))
URL = {"url": "https://example.test/rows"}
FIELDS = [
    {"sourcePath": "Name", "fieldKey": "title", "label": "Name", "kind": "text"},
    {"sourcePath": "Price", "fieldKey": "price", "label": "Price", "kind": "number"},
]


async def create(client: Client, space: Space, **body: Any) -> Json:
    given = {"label": "Rows", "kind": "http_json", "config": URL, **body}
    made: Json = read(await client.post(f"{space.path}/data-sources", json=given), 201)
    return made


async def count(space: Space) -> int:
    async with space.database.transaction() as work:
        statement = select(func.count()).select_from(data_source)
        return int(await work.scalar(statement.where(data_source.c.workspace_id == space.id)))


async def test_a_data_source_makes_a_database_for_its_rows(client: Client, space: Space) -> None:
    made = await create(client, space, fields=FIELDS, keyFields=["title"])
    assert made.keys() == {
        "id", "workspaceId", "itemId", "key", "label", "kind", "config", "fields",
        "targetDatabaseId", "keyFields", "writeMode", "removedRows", "removalGuardPercent",
        "enabled", "createdAt", "updatedAt", "scheduleNotes",
    }  # fmt: skip
    assert (made["writeMode"], made["removedRows"], made["removalGuardPercent"]) == (
        "upsert",
        "archive",
        30,
    )
    assert (made["fields"], made["keyFields"]) == (FIELDS, ["title"])
    target = read(await client.get(f"{space.path}/databases/{made['targetDatabaseId']}"))
    assert target["label"] == "Rows"
    kinds = [(field["key"], field["kind"]) for field in target["fields"]]
    assert kinds == [("title", "text"), ("price", "number")]
    assert read(await client.get(f"{space.path}/data-sources/{made['id']}")) == made


async def test_a_data_source_can_fill_a_database_that_is_there(
    client: Client, space: Space
) -> None:
    target = (await make(client, "database", "Data"))["target"]["id"]
    folder = (await make(client, "folder", "Sources"))["item"]
    schedule = {"cron": "0 6 * * *", "timezone": "Europe/Berlin"}
    made = await create(
        client, space, targetDatabaseId=target, parentItemId=folder["id"], schedule=schedule
    )
    assert made["targetDatabaseId"] == target
    assert made["schedule"] == {**schedule, "enabled": True}
    item = read(await client.get(f"/v1/items/{made['itemId']}"))
    assert (item["parentItemId"], item["kind"]) == (folder["id"], "data_source")
    assert len(read(await client.get("/v1/items", params={"kind": "database"}))["items"]) == 1


GOOD: list[tuple[str, Json]] = [
    (
        "http_json",
        {
            **URL,
            "method": "POST",
            "headers": {"X-Page": "1"},
            "body": {"a": 1},
            "auth": {"type": "bearer", "secretName": "token"},
            "jsonPath": "$.data[0]..rows[*]['a b']",
            "pagination": {"type": "cursor", "param": "after", "cursorPath": "$.next"},
            "format": "ndjson",
        },
    ),
    ("http_csv", {**URL, "delimiter": ";", "encoding": "latin-1", "decimalSeparator": ","}),
    ("http_xlsx", {**URL, "sheetName": "Sheet 1", "headerRow": 3, "range": "A3:F900"}),
]


@pytest.mark.parametrize(("kind", "config"), GOOD)
async def test_every_kind_keeps_its_config(
    client: Client, space: Space, kind: str, config: Json
) -> None:
    made = await create(client, space, kind=kind, config=config)
    assert config.items() <= {**made["config"], **config}.items()
    for key in config.keys() - {"auth", "pagination"}:
        assert made["config"][key] == config[key]


BAD: list[tuple[Json, str]] = [
    ({"label": ""}, "label"),
    ({"kind": "ftp"}, "kind"),
    ({"config": {}}, "config.url"),
    ({"config": {"url": "file:///etc/passwd"}}, "config.url"),
    ({"config": {**URL, "headers": {"a": "x\r\ny"}}}, "config.headers.a"),
    ({"config": {**URL, "jsonPath": "$.a * 30000000"}}, "config.jsonPath"),
    ({"config": {**URL, "jsonPath": "$" + ".a" * 33}}, "config.jsonPath"),
    ({"config": {**URL, "auth": {"type": "bearer"}}}, "config.auth"),
    ({"config": {**URL, "auth": {"type": "bearer", "token": "x"}}}, "config.auth"),
    ({"config": {**URL, "pagination": {"type": "page"}}}, "config.pagination"),
    ({"config": {**URL, "extra": 1}}, "config.extra"),
    ({"kind": "sql", "config": {"query": "select 1"}}, "config.connectionId"),
    ({"kind": "file", "config": {"format": "csv"}}, "config.fileId"),
    ({"kind": "http_csv", "config": {**URL, "headerRow": -1}}, "config.headerRow"),
    ({"fields": [{**FIELDS[0], "kind": "formula"}]}, "fields.0.kind"),
    ({"fields": [FIELDS[0], FIELDS[0]]}, "fields.1.fieldKey"),
    ({"fields": [FIELDS[0]] * 201}, "fields"),
    ({"fields": FIELDS, "keyFields": ["nothing"]}, "keyFields.0"),
    ({"schedule": {}}, "schedule"),
    ({"schedule": {"cron": "* * *"}}, "schedule"),
    ({"schedule": {"intervalSeconds": 59}}, "schedule.intervalSeconds"),
    ({"schedule": {"cron": "@daily", "timezone": "Mars"}}, "schedule.timezone"),
    ({"removalGuardPercent": 101}, "removalGuardPercent"),
    ({"writeMode": "merge"}, "writeMode"),
    ({"latestStatus": "succeeded"}, "latestStatus"),
]


@pytest.mark.parametrize(("change", "path"), BAD)
async def test_bad_bodies_are_refused_where_they_are_wrong(
    client: Client, space: Space, change: Json, path: str
) -> None:
    body = {"label": "x", "kind": "http_json", "config": URL, **change}
    answer = await client.post(f"{space.path}/data-sources", json=body)
    assert refused(answer) == (400, "validation_error")
    place = answer.json()["details"][0]["path"]
    assert place == path or place.startswith(f"{path}."), place
    assert await count(space) == 0


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"keyFields": ["Full Name"]}, "`suggestedKey` of the preview"),
        ({"fields": FIELDS, "keyFields": ["Price"]}, "; known: price, title."),
    ],
)
async def test_an_invalid_key_field_is_answered_with_the_valid_ones(
    client: Client, space: Space, change: Json, told: str
) -> None:
    body = {"label": "x", "kind": "http_json", "config": URL, **change}
    answer = await client.post(f"{space.path}/data-sources", json=body)
    assert refused(answer) == (400, "validation_error")
    (detail,) = answer.json()["details"]
    assert detail["path"] == "keyFields.0"
    assert told in detail["message"]


async def test_resources_in_a_body_must_be_visible(
    client: Client, space: Space, foreign: Space
) -> None:
    theirs = (await make(client.with_token(foreign.token), "database", "Theirs"))["target"]["id"]
    nowhere: list[Json] = [
        {"kind": "sql", "config": {"connectionId": SOMEWHERE, "query": "select 1"}},
        {"config": {**URL, "auth": {"type": "connection", "connectionId": SOMEWHERE}}},
        {"kind": "file", "config": {"fileId": SOMEWHERE, "format": "csv"}},
    ]
    for change in nowhere:
        body = {"label": "x", "kind": "http_json", "config": URL, **change}
        answer = await client.post(f"{space.path}/data-sources", json=body)
        assert refused(answer) == (404, "not_found")
    for key, real in (("targetDatabaseId", theirs), ("parentItemId", theirs)):
        body = {"label": "x", "kind": "http_json", "config": URL}
        answers = [
            await client.post(f"{space.path}/data-sources", json={**body, key: id_})
            for id_ in (real, str(uuid4()))
        ]
        assert refused(answers[0]) == (404, "not_found")
        assert answers[0].content == answers[1].content
    assert await count(space) == 0


async def test_an_update_changes_what_it_names(client: Client, space: Space) -> None:
    made = await create(client, space, fields=FIELDS, schedule={"intervalSeconds": 60})
    other = (await make(client, "database", "Other"))["target"]["id"]
    path = f"{space.path}/data-sources/{made['id']}"
    changed = read(
        await client.patch(
            path,
            json={
                "label": "New",
                "config": {**URL, "format": "ndjson"},
                "fields": FIELDS[:1],
                "keyFields": ["title"],
                "targetDatabaseId": other,
                "enabled": False,
                "writeMode": "append",
                "schedule": None,
            },
        )
    )
    assert (changed["label"], changed["targetDatabaseId"]) == ("New", other)
    assert (changed.get("schedule"), changed["enabled"]) == (None, False)
    assert (changed["fields"], changed["keyFields"]) == (FIELDS[:1], ["title"])
    assert changed["config"]["format"] == "ndjson"
    body: Json
    for body in (
        {"kind": "sql"},
        {"targetDatabaseId": None},
        {"label": None},
        {"keyFields": ["price"]},
        {"config": {}},
    ):
        assert refused(await client.patch(path, json=body)) == (400, "validation_error"), body
    answer = await client.patch(path, json={"targetDatabaseId": str(uuid4())})
    assert refused(answer) == (404, "not_found")
    stale = {"If-Match": made["updatedAt"]}
    answer = await client.patch(path, json={"label": "x"}, headers=stale)
    assert refused(answer) == (409, "conflict")
    assert read(await client.get(path)) == changed


async def test_a_member_without_access_to_the_target_does_not_change_what_is_written(
    client: Client, space: Space
) -> None:
    made = await create(client, space, schedule={"intervalSeconds": 60})
    path = f"{space.path}/data-sources/{made['id']}"
    target = read(await client.get(f"{space.path}/databases/{made['targetDatabaseId']}"))
    closed = {"accessMode": "restricted"}
    read(await client.patch(f"/v1/items/{target['itemId']}", json=closed))
    _, token = await space.member(Role.EDITOR)
    other = client.with_token(token)
    for body in ({"config": URL}, {"writeMode": "replace"}, {"removedRows": "delete"}):
        assert refused(await other.patch(path, json=body)) == (404, "not_found"), body
    paused = {"label": "Paused", "enabled": False}
    assert read(await other.patch(path, json=paused))["enabled"] is False
    assert read(await client.patch(path, json={"config": URL}))["config"]["url"] == URL["url"]


async def test_deletion_keeps_the_target(client: Client, space: Space) -> None:
    made = await create(client, space)
    path = f"{space.path}/data-sources/{made['id']}"
    assert read(await client.delete(path)) == made
    assert (await client.get(path)).status_code == 404
    assert read(await client.get(f"{space.path}/databases/{made['targetDatabaseId']}"))
    assert read(await client.get(f"{space.path}/data-sources"))["dataSources"] == []


async def test_viewers_read_data_sources_and_change_none(
    client: Client, space: Space, foreign: Space
) -> None:
    made = await create(client, space)
    path = f"{space.path}/data-sources"
    _, token = await space.member(Role.VIEWER)
    reader = client.with_token(token)
    assert read(await reader.get(path))["dataSources"] == [made]
    body = {"label": "x", "kind": "http_json", "config": URL}
    assert refused(await reader.post(path, json=body)) == (403, "denied")
    assert refused(await reader.patch(f"{path}/{made['id']}", json={})) == (403, "denied")
    bare = client.with_token(await space.key([Scope.DATA_SOURCES_READ]))
    assert refused(await bare.post(path, json=body)) == (403, "denied")
    stranger = client.with_token(foreign.token)
    for id_ in (made["id"], uuid4()):
        assert refused(await stranger.get(f"{path}/{id_}")) == (404, "not_found")
        answer = await stranger.get(f"{foreign.path}/data-sources/{id_}")
        assert refused(answer) == (404, "not_found")


async def test_a_header_that_authenticates_goes_in_and_does_not_come_out(
    client: Client, space: Space
) -> None:
    headers = {"Authorization": "Bearer canary-4f7d", "Accept": "text/csv"}
    shown = {"Authorization": "[redacted]", "Accept": "text/csv"}
    made = await client.post(
        f"{space.path}/data-sources",
        json={"label": "Rows", "kind": "http_json", "config": {**URL, "headers": headers}},
    )
    path = f"{space.path}/data-sources/{read(made, 201)['id']}"
    one, listed = await client.get(path), await client.get(f"{space.path}/data-sources")
    assert "canary-4f7d" not in made.text + one.text + listed.text
    assert read(one)["config"]["headers"] == shown

    config = {**read(one)["config"], "url": "https://example.test/other"}
    assert (await client.patch(path, json={"config": config})).is_success
    async with space.database.transaction() as work:
        statement = select(data_source.c.config).where(data_source.c.workspace_id == space.id)
        stored = await work.scalar(statement)
    assert (stored["url"], stored["headers"]) == (config["url"], headers)

    moved = {**config, "url": "https://elsewhere.test/"}
    preview = {"kind": "http_json", "config": config}
    for answer in (
        await client.patch(path, json={"config": moved}),
        await client.post(f"{space.path}/data-sources/preview", json=preview),
    ):
        assert refused(answer) == (400, "validation_error")
        assert "config.headers.Authorization" in answer.text
