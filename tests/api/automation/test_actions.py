"""Actions over HTTP: every kind's config, what it names, and what must be refused."""

from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import func, select

from models.automation.actions.rules import MAX_STEPS, ActionKind, checked_config, named_ids
from models.automation.actions.store import action
from models.core.access.rules import Role, Scope
from runtime.errors import ValidationError
from tests.support.client import Client
from tests.support.items import Json, make, make_item, read, refused
from tests.support.spaces import Space

SOMEWHERE = str(UUID(int=7))
RESOURCE = {
    "externalType": "doc",
    "externalId": "1",
    "name": "Doc",
    "surfaceKind": "generic",
    "capabilities": [],
}


async def create(client: Client, space: Space, **body: Any) -> Json:
    given = {"label": "Act", "kind": "transform", "config": {"output": {}}, **body}
    made: Json = read(await client.post(f"{space.path}/actions", json=given), 201)
    return made


async def count(space: Space) -> int:
    async with space.database.transaction() as work:
        statement = select(func.count()).select_from(action)
        return int(await work.scalar(statement.where(action.c.workspace_id == space.id)))


async def named(client: Client, space: Space) -> dict[str, str]:
    """One thing of each resource that a config can name."""
    database = await make(client, "database", "Data")
    records = f"/v1/databases/{database['target']['id']}/records"
    source = {"kind": "http_json", "config": {"url": "https://example.test"}}
    source["targetDatabaseId"] = database["target"]["id"]
    return {
        "database": database["target"]["id"],
        "record": read(await client.post(records, json={"title": "x"}), 201)["id"],
        "automation": (await make(client, "automation", "Auto"))["target"]["id"],
        "data_source": (await make(client, "data_source", "Src", config=source))["target"]["id"],
        "user": str(space.user_id),
    }


def configs(ids: dict[str, str]) -> dict[str, Json]:
    """A good config of every kind that can be made without connections and endpoints."""
    create_record = {"databaseId": ids["database"], "data": {"title": "x"}}
    return {
        "refresh_data_source": {"dataSourceId": ids["data_source"]},
        "run_automation": {"automationId": ids["automation"], "wait": True},
        "create_record": create_record,
        "update_record": {"recordId": ids["record"], "data": {"title": "y"}},
        "delete_record": {"databaseId": ids["database"], "recordId": ids["record"]},
        "query_records": {"databaseId": ids["database"], "query": {"limit": 5}},
        "http_request": {"method": "POST", "url": "https://example.test", "body": {"a": 1}},
        "send_notification": {"userIds": [ids["user"]], "title": "Hi", "body": "there"},
        "send_email": {"to": ["a@example.test"], "subject": "Hi", "body": "there"},
        "send_webhook": {"url": "https://example.test", "type": "done", "data": {}},
        "transform": {"output": {"a": {"type": "expression", "value": "1 + 1"}}},
        "sequence": {
            "steps": [
                {"id": "a", "kind": "create_record", "config": create_record},
                {
                    "id": "b",
                    "kind": "update_record",
                    "config": {"data": {}},
                    "input": {"recordId": {"type": "node", "value": "a.id"}},
                    "when": "nodes.a != null",
                    "continueOnError": True,
                    "retry": {"maxAttempts": 2},
                },
            ]
        },
    }


def test_no_more_is_looked_up_than_a_sequence_may_name() -> None:
    steps = [
        {"id": f"s{number}", "kind": "delete_record", "config": {"recordId": str(uuid4())}}
        for number in range(2_000)
    ]
    assert len(named_ids(ActionKind.SEQUENCE, {"steps": steps})) == MAX_STEPS
    with pytest.raises(ValidationError):
        checked_config(ActionKind.SEQUENCE, {"steps": steps})


async def test_every_kind_is_made_read_and_listed(client: Client, space: Space) -> None:
    good = configs(await named(client, space))
    made = []
    for kind, config in good.items():
        one = await create(client, space, label=kind, kind=kind, config=config)
        assert one["config"] == {**config, "kind": kind}
        assert (one["key"], one["label"], one["kind"], one["enabled"]) == (kind, kind, kind, True)
        assert read(await client.get(f"{space.path}/actions/{one['id']}")) == one
        made.append(one)
    assert made[0].keys() == {
        "id", "workspaceId", "itemId", "key", "label", "kind", "config", "enabled", "createdAt",
        "updatedAt",
    }  # fmt: skip
    found = read(await client.get(f"{space.path}/actions", params={"limit": "100"}))
    assert found == {"actions": made[::-1], "cursor": None}
    page = read(await client.get(f"{space.path}/actions", params={"limit": "5"}))
    query = {"limit": "100", "cursor": page["cursor"]}
    rest = read(await client.get(f"{space.path}/actions", params=query))
    assert page["actions"] + rest["actions"] == made[::-1]


async def test_resources_that_a_config_names_must_be_visible(
    client: Client, space: Space, foreign: Space
) -> None:
    theirs = await named(client.with_token(foreign.token), foreign)
    mine = await named(client, space)
    private = await make(client, "database", "Private", accessMode="restricted")
    _, token = await space.member(Role.EDITOR)
    editor = client.with_token(token)
    before = await count(space)
    for resource, id_ in theirs.items():
        for kind, config in configs({**mine, resource: id_}).items():
            if config == configs(mine)[kind]:
                continue
            unknown = configs({**mine, resource: str(uuid4())})[kind]
            answers = [
                await client.post(
                    f"{space.path}/actions", json={"label": "x", "kind": kind, "config": one}
                )
                for one in (config, unknown)
            ]
            assert refused(answers[0]) == (404, "not_found"), (kind, resource)
            assert answers[0].content == answers[1].content
    hidden = {"databaseId": private["target"]["id"], "data": {}}
    body = {"label": "x", "kind": "create_record", "config": hidden}
    assert refused(await editor.post(f"{space.path}/actions", json=body)) == (404, "not_found")
    assert read(await client.post(f"{space.path}/actions", json=body), 201)
    assert await count(space) == before + 1


@pytest.mark.parametrize(
    ("kind", "config"),
    [
        ("import_resource", {"connectionId": SOMEWHERE, "resource": RESOURCE}),
        ("http_request", {"connectionId": SOMEWHERE, "url": "https://example.test"}),
        ("send_webhook", {"endpointId": SOMEWHERE, "type": "x"}),
        ("create_record", {"databaseId": {"type": "literal", "value": SOMEWHERE}}),
    ],
)
async def test_a_resource_of_no_workspace_is_not_found(
    client: Client, space: Space, kind: str, config: Json
) -> None:
    body = {"label": "x", "kind": kind, "config": config}
    answer = await client.post(f"{space.path}/actions", json=body)
    assert refused(answer) == (404, "not_found")


BAD: list[tuple[str, Any, str]] = [
    ("transform", {}, "config.output"),
    ("transform", {"output": {}, "extra": 1}, "config.extra"),
    ("transform", {"output": {}, "kind": "sequence"}, "config.kind"),
    ("transform", {"output": {"a": {"type": "expression", "value": "1 +"}}}, "config.output.a"),
    ("transform", {"output": {"a": {"type": "secret", "value": "x"}}}, "config.output.a"),
    ("transform", [], "config"),
    ("run_automation", {}, "config.automationId"),
    ("run_automation", {"automationId": "x"}, "config.automationId"),
    ("run_automation", {"automationId": 5}, "config.automationId"),
    ("http_request", {"url": "file:///etc/passwd"}, "config.url"),
    ("http_request", {"url": "http://x:99999/"}, "config.url"),
    ("http_request", {"url": "https://a.test", "method": "TRACE"}, "config.method"),
    ("send_notification", {"title": "x"}, "config"),
    ("send_notification", {"title": "x", "role": "king"}, "config.role"),
    ("send_email", {"to": [], "subject": "x"}, "config.to"),
    ("send_email", {"to": ["a@b\r\nBcc: c@d"], "subject": "x"}, "config.to.0"),
    ("send_webhook", {"url": "javascript:x", "type": "x"}, "config.url"),
    ("sequence", {"steps": []}, "config.steps"),
    ("sequence", {"steps": [{"id": "a", "kind": "sequence"}]}, "config.steps.0.kind"),
    ("sequence", {"steps": [{"id": "a", "kind": ["x"]}]}, "config.steps.0.kind"),
    (
        "sequence",
        {"steps": [{"id": "a", "kind": "transform", "config": {}}]},
        "config.steps.0.config.output",
    ),
    (
        "sequence",
        {"steps": [{"id": "a", "kind": "transform", "config": {"output": {}}}] * 2},
        "config.steps",
    ),
    (
        "sequence",
        {"steps": [{"id": "a", "kind": "transform", "config": {"output": {}}, "when": "'text'"}]},
        "config.steps.0.when",
    ),
    ("sequence", {"steps": [{"id": "a", "kind": "transform"}] * 51}, "config.steps"),
]


@pytest.mark.parametrize(("kind", "config", "path"), BAD)
async def test_bad_configs_are_refused_where_they_are_wrong(
    client: Client, space: Space, kind: str, config: Any, path: str
) -> None:
    body = {"label": "x", "kind": kind, "config": config}
    answer = await client.post(f"{space.path}/actions", json=body)
    assert refused(answer) == (400, "validation_error")
    places = {detail["path"] for detail in answer.json()["details"]}
    assert path in places or any(place.startswith(f"{path}.") for place in places), places
    assert await count(space) == 0


@pytest.mark.parametrize(
    "change",
    [
        {"label": ""},
        {"kind": "dance"},
        {"key": "Up"},
        {"enabled": "yes"},
        {"id": SOMEWHERE},
        {"workspaceId": SOMEWHERE},
        {"parentItemId": SOMEWHERE},
    ],
)
async def test_bad_bodies_are_refused(client: Client, space: Space, change: Json) -> None:
    body = {"label": "x", "kind": "transform", "config": {"output": {}}, **change}
    answer = await client.post(f"{space.path}/actions", json=body)
    assert refused(answer) == (400, "validation_error")
    assert answer.json()["details"][0]["path"] == next(iter(change))
    assert await count(space) == 0


async def test_an_update_changes_what_it_names(client: Client, space: Space) -> None:
    made = await create(client, space, label="One")
    path = f"{space.path}/actions/{made['id']}"
    assert read(await client.patch(path, json={"enabled": False}))["enabled"] is False
    changed = read(
        await client.patch(
            path, json={"label": "Two", "key": "two", "config": {"output": {"a": 1}}}
        )
    )
    assert (changed["label"], changed["key"], changed["enabled"]) == ("Two", "two", False)
    assert changed["config"] == {"kind": "transform", "output": {"a": 1}}
    body: Any
    for body in (
        {"kind": "sequence"},
        {"config": {"kind": "sequence", "steps": []}},
        {"config": {}},
        {"label": None},
        {"config": None},
        {"enabled": None},
    ):
        assert refused(await client.patch(path, json=body)) == (400, "validation_error"), body
    stale = {"If-Match": made["updatedAt"]}
    answer = await client.patch(path, json={"label": "Three"}, headers=stale)
    assert refused(answer) == (409, "conflict")
    assert read(await client.get(path)) == changed


async def test_keys_are_unique_in_the_workspace(client: Client, space: Space) -> None:
    keys = [(await create(client, space, label="A b"))["key"] for _ in range(2)]
    assert keys == ["a_b", "a_b_2"]
    body = {"label": "x", "kind": "transform", "config": {"output": {}}, "key": "a_b"}
    answer = await client.post(f"{space.path}/actions", json=body)
    assert refused(answer) == (409, "conflict")
    other = await create(client, space, label="other")
    path = f"{space.path}/actions/{other['id']}"
    assert refused(await client.patch(path, json={"key": "a_b"})) == (409, "conflict")
    assert read(await client.patch(path, json={"key": "other"}))["key"] == "other"


async def test_deletion_goes_to_the_trash_with_the_item(client: Client, space: Space) -> None:
    made = await create(client, space)
    path, item_path = f"{space.path}/actions/{made['id']}", f"/v1/items/{made['itemId']}"
    assert read(await client.delete(path)) == made
    unknown = await client.get(f"{space.path}/actions/{uuid4()}")
    hidden = await client.get(path)
    assert (hidden.status_code, hidden.content) == (404, unknown.content)
    assert (await client.get(item_path)).status_code == 404
    assert read(await client.post(f"{item_path}/restore"))["targetId"] == made["id"]
    assert read(await client.get(path)) == made


async def test_readers_read_and_cannot_write(client: Client, space: Space) -> None:
    made = await create(client, space)
    path = f"{space.path}/actions"
    _, token = await space.member(Role.VIEWER)
    reader = client.with_token(token)
    assert read(await reader.get(f"{path}/{made['id']}")) == made
    body = {"label": "x", "kind": "transform", "config": {"output": {}}}
    assert refused(await reader.post(path, json=body)) == (403, "denied")
    assert refused(await reader.delete(f"{path}/{made['id']}")) == (403, "denied")
    bare = client.with_token(await space.key([one for one in Scope if "actions" not in one]))
    assert refused(await bare.get(path)) == (403, "denied")
    folder = await make_item(client, accessMode="restricted")
    config = {"kind": "transform", "config": {"output": {}}}
    hidden = await make(client, "action", "x", parentItemId=folder["id"], config=config)
    assert [one["id"] for one in read(await reader.get(path))["actions"]] == [made["id"]]
    answer = await reader.get(f"{path}/{hidden['target']['id']}")
    assert refused(answer) == (404, "not_found")
