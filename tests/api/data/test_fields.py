"""Fields over HTTP: adding, changing and deleting them while records are there."""

from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import func, select, update

from models.content.items.joins import item
from models.core.access.rules import Role, Scope
from models.data.fields.tables import field as field_table
from models.data.fields.tables import removed_field
from models.data.records import bulk
from models.data.records.tables import record
from models.messages.jobs.store import job
from tests.support.client import Client
from tests.support.spaces import Space

TEXT = {"label": "Note", "kind": "text"}
COLOR = {
    "label": "Color",
    "kind": "select",
    "options": [{"name": "Red"}, {"name": "Blue"}],
}
TAGS = {**COLOR, "label": "Tags", "kind": "multi_select"}


async def make(client: Client, space: Space, *fields: dict[str, Any], label: str = "Cars") -> Any:
    body = {"label": label, "fields": list(fields)}
    answer = await client.post(f"{space.path}/databases", json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()["data"]


async def read(client: Client, made: Any) -> Any:
    path = f"/v1/workspaces/{made['workspaceId']}/databases/{made['id']}"
    return (await client.get(path)).json()["data"]


async def add(client: Client, made: Any, **body: Any) -> Any:
    answer = await client.post(fields_of(made), json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()["data"]


async def insert(client: Client, made: Any, **data: Any) -> Any:
    answer = await client.post(f"/v1/databases/{made['id']}/records", json={"data": data})
    assert answer.status_code == 201, answer.text
    return answer.json()["data"]


async def get(client: Client, one: Any) -> Any:
    return (await client.get(f"/v1/records/{one['id']}")).json()["data"]


def fields_of(made: Any) -> str:
    return f"/v1/databases/{made['id']}/fields"


def at(field: Any) -> str:
    return f"/v1/databases/{field['databaseId']}/fields/{field['id']}"


def key(made: Any, key_: str) -> Any:
    return next(each for each in made["fields"] if each["key"] == key_)


async def test_a_field_is_added_last(client: Client, space: Space) -> None:
    made = await make(client, space, {"label": "A", "kind": "number", "order": 7})
    added = await add(client, made, label="A", kind="number", settings={"min": 1}, defaultValue=5)
    assert (added["key"], added["order"], added["defaultValue"]) == ("a_2", 8, "5")
    now = await read(client, made)
    assert now["fields"][-1] == added
    assert now["updatedAt"] > made["updatedAt"]
    assert (await insert(client, made))["data"]["a_2"] == 5


async def test_new_fields_take_their_place_in_the_layout(client: Client, space: Space) -> None:
    made = await make(client, space, TEXT)
    await add(client, made, label="B", kind="text")
    layout = (await read(client, made))["recordLayout"]
    assert (layout["propertyOrder"], layout["version"]) == (["note", "b"], 2)
    path = f"{space.path}/databases/{made['id']}"
    await client.patch(path, json={"recordLayout": {"autoAddNewFields": False}})
    await add(client, made, label="C", kind="text")
    assert (await read(client, made))["recordLayout"]["propertyOrder"] == ["note", "b"]


BAD: list[tuple[dict[str, Any], str]] = [
    ({}, "label"),
    ({"label": "x"}, "kind"),
    ({"label": "x", "kind": "texts"}, "kind"),
    ({"label": "x", "kind": "text", "id": "1"}, "id"),
    ({"label": "x", "kind": "text", "key": "A"}, "key"),
    ({"label": "x", "kind": "number", "settings": {"precision": 11}}, "settings.precision"),
    ({"label": "x", "kind": "number", "defaultValue": "five"}, "defaultValue"),
    ({"label": "x", "kind": "text", "options": [{"name": "a"}]}, "options"),
    ({"label": "x", "kind": "relation"}, "settings.databaseId"),
    ({"label": "x", "kind": "relation", "settings": {"databaseId": "no"}}, "settings.databaseId"),
    ({"label": "x", "kind": "relation", "settings": {"databaseId": 5}}, "settings.databaseId"),
    ({"label": "x", "kind": "button", "settings": {"actionId": "no"}}, "settings.actionId"),
    ({"label": "x", "kind": "formula", "settings": {"expression": "1 +"}}, "settings.expression"),
    (
        {"label": "x", "kind": "formula", "settings": {"expression": "record.gone"}},
        "settings.expression",
    ),
    (
        {
            "label": "x",
            "kind": "formula",
            "settings": {"expression": "'a'", "resultKind": "number"},
        },
        "settings.expression",
    ),
    (
        {
            "label": "x",
            "kind": "lookup",
            "settings": {"relationFieldKey": "note", "targetFieldKey": "title"},
        },
        "settings.relationFieldKey",
    ),
    ({"label": "x", "kind": "timer", "settings": {"roundToMinutes": 0}}, "settings.roundToMinutes"),
    ({"label": "x", "kind": "file", "settings": {"maxFiles": 101}}, "settings.maxFiles"),
]


@pytest.mark.parametrize(("body", "path"), BAD)
async def test_bad_fields_are_refused_where_they_are_wrong(
    client: Client, space: Space, body: dict[str, Any], path: str
) -> None:
    made = await make(client, space, TEXT)
    answer = await client.post(fields_of(made), json=body)
    assert (answer.status_code, answer.json()["error"]) == (400, "validation_error")
    assert answer.json()["details"][0]["path"] == path
    assert await read(client, made) == made


async def test_a_key_is_given_once(client: Client, space: Space) -> None:
    made = await make(client, space, TEXT)
    answer = await client.post(fields_of(made), json={"label": "x", "kind": "text", "key": "note"})
    assert (answer.status_code, answer.json()["error"]) == (409, "conflict")


async def test_a_database_has_at_most_500_fields(client: Client, space: Space) -> None:
    made = await make(client, space, *[TEXT] * 499)
    answer = await client.post(fields_of(made), json=TEXT)
    assert (answer.status_code, answer.json()["error"]) == (409, "conflict")
    relation = {"label": "R", "kind": "relation", "settings": {"databaseId": made["id"]}}
    other = await make(client, space)
    answer = await client.post(fields_of(other), json=relation)
    assert answer.json()["details"][0]["path"] == "settings.databaseId"


async def test_records_that_are_there_are_numbered(client: Client, space: Space) -> None:
    made = await make(client, space)
    first, second = [await insert(client, made) for _ in range(2)]
    await add(client, made, label="No", kind="auto_number")
    numbers = [(await get(client, one))["system"]["no"] for one in (first, second)]
    assert [*numbers, (await insert(client, made))["system"]["no"]] == [1, 2, 3]


async def test_options_and_settings_are_replaced(client: Client, space: Space) -> None:
    made = await make(client, space, COLOR)
    color = key(made, "color")
    red, blue = color["options"]
    answer = await client.patch(
        at(color),
        json={
            "label": "Paint",
            "required": True,
            "order": 9,
            "options": [{"id": blue["id"], "name": "Navy"}, {"id": red["id"], "name": "Red"}],
            "settings": {"allowCreate": True},
        },
    )
    changed = answer.json()["data"]
    assert (changed["label"], changed["required"], changed["order"]) == ("Paint", True, 9)
    assert [(each["id"], each["key"], each["name"]) for each in changed["options"]] == [
        (blue["id"], "blue", "Navy"),
        (red["id"], "red", "Red"),
    ]
    assert changed["settings"] == {"allowCreate": True}
    assert changed["updatedAt"] > color["updatedAt"]
    assert key(await read(client, made), "color") == changed


async def test_an_option_that_goes_leaves_the_records(client: Client, space: Space) -> None:
    made = await make(client, space, COLOR, TAGS)
    both = await insert(client, made, color="red", tags=["red", "blue"])
    none = await insert(client, made, color="blue", tags=["red"])
    trashed = await insert(client, made, color="red")
    await client.delete(f"/v1/records/{trashed['id']}")
    for name in ("color", "tags"):
        answer = await client.patch(
            at(key(made, name)), json={"options": [{"key": "blue", "name": "Blue"}]}
        )
        assert answer.status_code == 200, answer.text
    assert (await get(client, both))["data"] == {"title": "", "tags": ["blue"]}
    assert (await get(client, none))["data"] == {"title": "", "color": "blue", "tags": []}
    assert (await get(client, both))["updatedAt"] > both["updatedAt"]
    (created,) = (await client.get(f"/v1/records/{none['id']}/history")).json()["data"]["changes"]
    assert created["after"] == {"title": "", "color": "blue", "tags": ["red"]}
    async with space.database.transaction() as work:
        data = await work.scalar(select(record.c.data).where(record.c.id == trashed["id"]))
    assert data == {}


async def test_an_option_of_too_many_records_stays(
    client: Client, space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "MAX_RECORDS", 1)
    made = await make(client, space, COLOR)
    kept = [await insert(client, made, color="red") for _ in range(2)]
    answer = await client.patch(at(key(made, "color")), json={"options": [{"name": "Green"}]})
    assert (answer.status_code, answer.json()["error"]) == (409, "conflict")
    assert [(await get(client, one))["data"]["color"] for one in kept] == ["red", "red"]
    assert await read(client, made) == made


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"kind": "number"}, "kind"),
        ({"key": "other"}, "key"),
        ({"label": ""}, "label"),
        ({"required": 1}, "required"),
        ({"options": [{"name": "A", "id": "gone"}]}, "options.0.id"),
        ({"options": [{"name": "A", "key": "a"}, {"name": "B", "key": "a"}]}, "options.1.key"),
        ({"defaultValue": "green"}, "defaultValue"),
        ({"settings": {"allowCreate": 1}}, "settings.allowCreate"),
    ],
)
async def test_bad_changes_are_refused_where_they_are_wrong(
    client: Client, space: Space, body: dict[str, Any], path: str
) -> None:
    made = await make(client, space, COLOR)
    answer = await client.patch(at(key(made, "color")), json=body)
    assert (answer.status_code, answer.json()["error"]) == (400, "validation_error")
    assert answer.json()["details"][0]["path"] == path
    assert await read(client, made) == made


async def test_a_field_that_was_changed_since_stays(client: Client, space: Space) -> None:
    made = await make(client, space, TEXT)
    note = key(made, "note")
    known = {"If-Match": note["updatedAt"]}
    assert (await client.patch(at(note), json={"label": "A"}, headers=known)).status_code == 200
    for answer in (
        await client.patch(at(note), json={"label": "B"}, headers=known),
        await client.delete(at(note), headers=known),
    ):
        assert (answer.status_code, answer.json()["error"]) == (409, "conflict")


async def test_a_deleted_field_takes_its_values_with_it(client: Client, space: Space) -> None:
    made = await make(client, space, TEXT)
    one = await insert(client, made, note="secret")
    note = key(made, "note")
    layout = {"recordLayout": {"propertyOrder": ["note"], "pinnedFieldKeys": ["note"]}}
    await client.patch(f"{space.path}/databases/{made['id']}", json=layout)
    answer = await client.delete(at(note))
    assert (answer.status_code, answer.json()["data"]) == (200, note)
    assert (await get(client, one))["data"] == {"title": ""}
    now = await read(client, made)
    assert now["recordLayout"]["propertyOrder"] == now["recordLayout"]["pinnedFieldKeys"] == []
    again = await add(client, made, **TEXT)
    assert again["key"] == "note"
    assert (await get(client, one))["data"] == {"title": ""}
    assert (await client.delete(at(note))).status_code == 404


async def test_a_key_is_free_again_when_its_last_value_is_gone(
    client: Client, space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "MAX_RECORDS", 1)
    made = await make(client, space, TEXT)
    kept = [await insert(client, made, note="old") for _ in range(3)]
    assert (await client.delete(at(key(made, "note")))).status_code == 200
    assert [(await get(client, one))["data"] for one in kept] == [{"title": ""}] * 3
    refused = await client.post(fields_of(made), json={**TEXT, "key": "note"})
    assert (refused.status_code, refused.json()["error"]) == (409, "conflict")
    assert (await add(client, made, **TEXT))["key"] == "note_2"
    async with space.database.transaction() as work:
        accepted = await work.first(select(job).where(job.c.workspace_id == space.id))
        left = await work.scalar(
            select(func.count()).where(
                record.c.workspace_id == space.id, record.c.data.has_key("note")
            )
        )
        assert accepted is not None
        assert accepted.workflow_kind == "field-removal"
        assert left == 2


async def test_the_title_stays(client: Client, space: Space) -> None:
    made = await make(client, space)
    answer = await client.delete(at(key(made, "title")))
    assert (answer.status_code, answer.json()["error"]) == (409, "conflict")


async def test_fields_need_their_roles_and_scopes(client: Client, space: Space) -> None:
    made = await make(client, space, TEXT)
    note = key(made, "note")
    for role in (Role.VIEWER, Role.COMMENTER):
        _, token = await space.member(role)
        reader = client.with_token(token)
        for answer in (
            await reader.post(fields_of(made), json=TEXT),
            await reader.patch(at(note), json={"label": "A"}),
            await reader.delete(at(note)),
            await reader.post(f"{at(note)}/convert", json={"kind": "number"}),
        ):
            assert (answer.status_code, answer.json()["error"]) == (403, "denied")
    scopes = [scope for scope in Scope if scope is not Scope.DATABASES_WRITE]
    bare = client.with_token(await space.key(scopes))
    assert (await bare.post(fields_of(made), json=TEXT)).status_code == 403


async def test_foreign_and_hidden_fields_are_unknown_ones(
    client: Client, space: Space, foreign: Space
) -> None:
    made = await make(client, space, TEXT)
    theirs = await make(client.with_token(foreign.token), foreign, TEXT)
    other = await make(client, space, TEXT, label="Other")
    _, token = await space.member(Role.EDITOR)
    async with space.database.transaction() as work:
        await work.execute(
            update(item).where(item.c.id == other["itemId"]).values(access_mode="restricted")
        )
    editor = client.with_token(token)
    uses = (
        lambda path: editor.patch(path, json={"bad": 1}),
        editor.delete,
        lambda path: editor.post(f"{path}/convert", json={"bad": 1}),
    )
    for use in uses:
        unknown = await use(f"{fields_of(made)}/{uuid4()}")
        assert unknown.status_code == 404
        for hidden in (theirs, other):
            assert (await use(at(key(hidden, "note")))).content == unknown.content
    elsewhere = f"{fields_of(made)}/{key(other, 'note')['id']}"
    assert (await client.delete(elsewhere)).status_code == 404
    assert (await client.patch(elsewhere, json={"label": "A"})).status_code == 404


async def test_the_same_idempotency_key_adds_once(client: Client, space: Space) -> None:
    made = await make(client, space)
    headers = {"Idempotency-Key": uuid4().hex}
    answers = [await client.post(fields_of(made), json=TEXT, headers=headers) for _ in range(2)]
    assert answers[0].content == answers[1].content
    async with space.database.transaction() as work:
        rows = await work.rows(select(field_table).where(field_table.c.workspace_id == space.id))
        removed = await work.rows(
            select(removed_field).where(removed_field.c.workspace_id == space.id)
        )
    assert (len(rows), len(removed)) == (2, 0)
