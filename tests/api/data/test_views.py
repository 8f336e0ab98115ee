"""Views over HTTP: who sees them, who may change them, and in which order they stand."""

import asyncio
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import event, update

from models.content.items.joins import item
from models.core.access.rules import Role, Scope
from tests.support.client import Client
from tests.support.spaces import Space
from tests.support.views import make_database, make_view, views_of


async def test_a_new_database_shows_all_its_records(client: Client, space: Space) -> None:
    made = await make_database(client, space)
    (only,) = made["views"]
    assert only.keys() == {
        "id", "workspaceId", "databaseId", "key", "label", "kind", "placement", "manifest",
        "scope", "locked", "order", "definitionVersion", "createdAt", "updatedAt",
    }  # fmt: skip
    assert (only["key"], only["label"], only["kind"]) == ("all_records", "All records", "table")
    assert (only["scope"], only["placement"], only["manifest"]) == ("shared", "database", {})
    assert (only["definitionVersion"], only["locked"]) == (1, False)
    listed = await client.get(views_of(made["id"]))
    assert listed.json()["data"] == {"views": [only], "cursor": None}
    one = await client.get(f"{views_of(made['id'])}/{only['id']}")
    assert one.json()["data"] == only
    databases = await client.get(f"{space.path}/databases")
    assert databases.json()["data"]["databases"][0]["views"] == [only]


async def test_a_database_is_made_with_the_views_it_is_given(client: Client, space: Space) -> None:
    board = {"label": "Board", "kind": "board", "manifest": {"stackFieldKey": "state"}}
    made = await make_database(client, space, views=[board, {"label": "Board"}])
    assert [(one["key"], one["kind"]) for one in made["views"]] == [
        ("board", "board"),
        ("board_2", "table"),
    ]
    mine = await make_database(client, space, views=[{"label": "Mine", "scope": "personal"}])
    assert [one["label"] for one in mine["views"]] == ["All records", "Mine"]
    refused = await client.post(
        f"{space.path}/databases",
        json={"label": "No", "views": [{"label": "x"}, {"label": "y", "kind": "board"}]},
    )
    assert refused.status_code == 400
    assert refused.json()["details"] == [
        {"path": "views.1.manifest.stackFieldKey", "message": "is required for a board view"}
    ]


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({}, "label"),
        ({"label": ""}, "label"),
        ({"label": "x", "kind": "map"}, "kind"),
        ({"label": "x", "placement": "item"}, "placement"),
        ({"label": "x", "scope": "secret"}, "scope"),
        ({"label": "x", "key": "No"}, "key"),
        ({"label": "x", "locked": "true"}, "locked"),
        ({"label": "x", "order": 1e300}, "order"),
        ({"label": "x", "relationFieldId": 7}, "relationFieldId"),
        ({"label": "x", "placement": "relation"}, "relationFieldId"),
        ({"label": "x", "ownerUserId": str(uuid4())}, "ownerUserId"),
        ({"label": "x", "definitionVersion": 7}, "definitionVersion"),
    ],
)
async def test_a_body_that_is_wrong_is_refused_at_its_place(
    client: Client, space: Space, body: Any, path: str
) -> None:
    database = await make_database(client, space)
    answer = await client.post(views_of(database["id"]), json=body)
    assert answer.status_code == 400, answer.text
    assert [detail["path"] for detail in answer.json()["details"]] == [path]


async def test_the_version_counts_the_manifests(client: Client, space: Space) -> None:
    database = await make_database(client, space)
    made = await make_view(client, database["id"], manifest={"search": "a"})
    path = f"{views_of(database['id'])}/{made['id']}"

    async def patched(**body: Any) -> Any:
        answer = await client.patch(path, json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()["data"]

    same = await patched(label="Other", manifest={"search": "a"})
    assert (same["label"], same["definitionVersion"]) == ("Other", 1)
    assert same["updatedAt"] > made["updatedAt"]
    other = await patched(manifest={"search": "b"})
    assert (other["manifest"], other["definitionVersion"]) == ({"search": "b"}, 2)
    board = await patched(kind="board", manifest={"stackFieldKey": "state"})
    assert (board["kind"], board["definitionVersion"]) == ("board", 3)
    assert (await patched()) == board
    refused = await client.patch(path, json={"kind": "calendar"})
    assert refused.json()["details"][0]["path"] == "manifest.dateFieldKey"
    assert (await client.get(path)).json()["data"] == board


async def test_a_view_changed_since_it_was_read_is_left_alone(client: Client, space: Space) -> None:
    database = await make_database(client, space)
    made = await make_view(client, database["id"])
    path = f"{views_of(database['id'])}/{made['id']}"
    read = {"If-Match": made["updatedAt"]}
    assert (await client.patch(path, json={"label": "1"}, headers=read)).status_code == 200
    again = await client.patch(path, json={"label": "2"}, headers=read)
    assert (again.status_code, again.json()["error"]) == (409, "conflict")
    assert (await client.get(path)).json()["data"]["label"] == "1"


async def test_views_stand_in_their_order(client: Client, space: Space) -> None:
    database = await make_database(client, space)
    await make_view(client, database["id"], label="B")
    first = await make_view(client, database["id"], label="A", order=-5)
    shown = [one["label"] for one in (await read_database(client, database))["views"]]
    assert shown == ["A", "All records", "B"]
    moved = await client.patch(f"{views_of(database['id'])}/{first['id']}", json={"order": 99})
    assert moved.json()["data"]["definitionVersion"] == 1
    seen, cursor = [], None
    while True:
        query = {"limit": "2"} | ({} if cursor is None else {"cursor": cursor})
        page = (await client.get(views_of(database["id"]), params=query)).json()["data"]
        seen += [one["label"] for one in page["views"]]
        if (cursor := page["cursor"]) is None:
            break
    assert seen == ["All records", "B", "A"]


async def read_database(client: Client, database: Any) -> Any:
    answer = await client.get(
        f"/v1/workspaces/{database['workspaceId']}/databases/{database['id']}"
    )
    return answer.json()["data"]


async def test_personal_views_are_their_owners_alone(client: Client, space: Space) -> None:
    database = await make_database(client, space)
    _, token = await space.member(Role.EDITOR)
    editor = client.with_token(token)
    mine = await make_view(editor, database["id"], label="Mine", scope="personal")
    path = f"{views_of(database['id'])}/{mine['id']}"
    never = f"{views_of(database['id'])}/{uuid4()}"
    assert mine["ownerUserId"] is not None
    assert len((await read_database(editor, database))["views"]) == 2
    assert len((await read_database(client, database))["views"]) == 1
    listed = await client.get(views_of(database["id"]))
    assert len(listed.json()["data"]["views"]) == 1
    for method, body in (("GET", None), ("PATCH", {"label": "x"}), ("DELETE", None)):
        theirs = await client.request(method, path, json=body)
        nobodys = await client.request(method, never, json=body)
        assert theirs.status_code == nobodys.status_code == 404
        assert theirs.content == nobodys.content
    shared = await editor.patch(path, json={"scope": "shared"})
    assert shared.json()["data"]["scope"] == "shared"
    assert "ownerUserId" not in shared.json()["data"]
    assert (await client.get(path)).status_code == 200
    taken = await client.patch(path, json={"scope": "personal"})
    assert taken.json()["data"]["ownerUserId"] == str(space.user_id)
    assert (await editor.get(path)).status_code == 404


async def test_a_locked_view_is_changed_by_managers_only(client: Client, space: Space) -> None:
    database = await make_database(client, space)
    _, token = await space.member(Role.EDITOR)
    editor = client.with_token(token)
    refused = await editor.post(views_of(database["id"]), json={"label": "x", "locked": True})
    assert (refused.status_code, refused.json()["error"]) == (403, "denied")
    locked = await make_view(client, database["id"], locked=True)
    path = f"{views_of(database['id'])}/{locked['id']}"
    for answer in (
        await editor.patch(path, json={"label": "x"}),
        await editor.patch(path, json={"locked": False}),
        await editor.delete(path),
    ):
        assert (answer.status_code, answer.json()["error"]) == (403, "denied")
    assert (await client.patch(path, json={"locked": False})).status_code == 200
    assert (await editor.patch(path, json={"locked": True})).status_code == 403
    assert (await editor.patch(path, json={"label": "x"})).status_code == 200


async def test_a_database_keeps_a_view_that_all_can_see(client: Client, space: Space) -> None:
    database = await make_database(client, space)
    (only,) = database["views"]
    await make_view(client, database["id"], scope="personal")
    path = f"{views_of(database['id'])}/{only['id']}"
    for answer in (await client.delete(path), await client.patch(path, json={"scope": "personal"})):
        assert (answer.status_code, answer.json()["error"]) == (409, "conflict")
    other = await make_view(client, database["id"])
    paths = [path, f"{views_of(database['id'])}/{other['id']}"]
    answers = await asyncio.gather(*(client.delete(one) for one in paths))
    assert sorted(answer.status_code for answer in answers) == [200, 409]
    assert len((await read_database(client, database))["views"]) == 2


async def test_a_deleted_view_is_gone(client: Client, space: Space) -> None:
    database = await make_database(client, space)
    made = await make_view(client, database["id"])
    path = f"{views_of(database['id'])}/{made['id']}"
    deleted = await client.delete(path)
    assert deleted.json() == {"data": {"id": made["id"]}}
    assert (await client.get(path)).status_code == 404
    assert (await make_view(client, database["id"]))["key"] == made["key"]


async def test_keys_are_unique_in_the_database(client: Client, space: Space) -> None:
    database = await make_database(client, space)
    made = await asyncio.gather(*(make_view(client, database["id"], label="V") for _ in range(5)))
    assert sorted(one["key"] for one in made) == ["v", "v_2", "v_3", "v_4", "v_5"]
    taken = await client.post(views_of(database["id"]), json={"label": "x", "key": "v"})
    assert (taken.status_code, taken.json()["error"]) == (409, "conflict")


async def test_a_database_has_at_most_200_views(client: Client, space: Space) -> None:
    database = await make_database(client, space, views=[{"label": "V"}] * 198)
    path = views_of(database["id"])
    more = await asyncio.gather(*(client.post(path, json={"label": "x"}) for _ in range(4)))
    assert sorted(answer.status_code for answer in more) == [201, 201, 409, 409]
    assert len((await read_database(client, database))["views"]) == 200


async def test_a_repeated_call_makes_one_view(client: Client, space: Space) -> None:
    database = await make_database(client, space)
    headers = {"Idempotency-Key": "once"}
    answers = [
        await client.post(views_of(database["id"]), json={"label": "Once"}, headers=headers)
        for _ in range(2)
    ]
    assert answers[0].content == answers[1].content
    assert len((await read_database(client, database))["views"]) == 2


async def test_views_need_their_roles_and_scopes(
    client: Client, space: Space, foreign: Space
) -> None:
    database = await make_database(client, space)
    path = views_of(database["id"])
    one = f"{path}/{database['views'][0]['id']}"
    for role in (Role.VIEWER, Role.COMMENTER):
        reader = client.with_token((await space.member(role))[1])
        assert (await reader.get(path)).status_code == 200
        for answer in (
            await reader.post(path, json={"label": "x"}),
            await reader.patch(one, json={"label": "x"}),
            await reader.delete(one),
        ):
            assert (answer.status_code, answer.json()["error"]) == (403, "denied")
    for scopes, status in (([Scope.VIEWS_READ], 403), ([Scope.VIEWS_WRITE], 201)):
        key = client.with_token(await space.key(scopes))
        assert (await key.post(path, json={"label": "x"})).status_code == status
    stranger = client.with_token(foreign.token)
    guest = client.with_token((await space.member(Role.GUEST))[1])
    for outsider in (stranger, guest):
        for found in (path, one):
            there = await outsider.get(found)
            nowhere = await outsider.get(found.replace(database["id"], str(uuid4())))
            assert there.status_code == 404
            assert there.content == nowhere.content
    await restrict(space, database["itemId"])
    editor = client.with_token((await space.member(Role.EDITOR))[1])
    assert (await editor.get(path)).status_code == 404
    assert (await client.get(path)).status_code == 200


async def restrict(space: Space, item_id: str) -> None:
    async with space.database.transaction() as work:
        await work.execute(
            update(item).where(item.c.id == item_id).values(access_mode="restricted")
        )


async def test_a_view_of_another_database_is_not_found(
    client: Client, space: Space, foreign: Space
) -> None:
    database = await make_database(client, space)
    other = await make_database(client, space)
    elsewhere = await make_database(client.with_token(foreign.token), foreign)
    nowhere = await client.get(f"{views_of(database['id'])}/{uuid4()}")
    for strange in (other, elsewhere):
        answer = await client.get(f"{views_of(database['id'])}/{strange['views'][0]['id']}")
        assert (answer.status_code, answer.content) == (404, nowhere.content)


async def test_a_relation_field_without_access_is_not_found(
    client: Client, space: Space, foreign: Space
) -> None:
    database = await make_database(client, space)
    theirs = await make_database(client.with_token(foreign.token), foreign)
    hidden = await make_database(client, space)
    await restrict(space, hidden["itemId"])
    editor = client.with_token((await space.member(Role.EDITOR))[1])
    bodies = [
        {"label": "x", "placement": "relation", "relationFieldId": field_id}
        for field_id in (uuid4().hex, theirs["fields"][0]["id"], hidden["fields"][0]["id"])
    ]
    bodies[0]["relationFieldId"] = str(uuid4())
    answers = [await editor.post(views_of(database["id"]), json=body) for body in bodies]
    assert {answer.status_code for answer in answers} == {404}
    assert len({answer.content for answer in answers}) == 1
    own = {**bodies[0], "relationFieldId": database["fields"][0]["id"]}
    refused = await editor.post(views_of(database["id"]), json=own)
    assert refused.json()["details"][0]["path"] == "relationFieldId"


async def test_a_standalone_view_is_behind_its_item(client: Client, space: Space) -> None:
    database = await make_database(client, space)
    config = {"databaseId": database["id"], "kind": "board", "manifest": {"stackFieldKey": "state"}}
    body = {"kind": "view", "title": "Mine", "config": config}
    made = (await client.post("/v1/items", json=body)).json()["data"]
    view = made["target"]
    assert (view["placement"], view["label"], view["kind"]) == ("item", "Mine", "board")
    path = f"{views_of(database['id'])}/{view['id']}"
    assert (await client.get(path)).json()["data"] == view
    listed = await client.get(views_of(database["id"]))
    assert [one["label"] for one in listed.json()["data"]["views"]] == ["All records"]
    assert len((await read_database(client, database))["views"]) == 1
    changed = await client.patch(path, json={"manifest": {"stackFieldKey": "state", "search": "x"}})
    assert changed.json()["data"]["definitionVersion"] == 2
    assert (await client.patch(path, json={"placement": "database"})).status_code == 409
    assert (await client.delete(path)).status_code == 409
    for wrong, where in (
        ({**config, "databaseId": 7}, "config.databaseId"),
        ({**config, "manifest": {}}, "config.manifest.stackFieldKey"),
        ({**config, "more": 1}, "config.more"),
    ):
        refused = await client.post("/v1/items", json={**body, "config": wrong})
        assert refused.status_code == 400, refused.text
        assert refused.json()["details"][0]["path"] == where
    nowhere = await client.post(
        "/v1/items", json={**body, "config": {**config, "databaseId": str(uuid4())}}
    )
    assert nowhere.status_code == 404
    await restrict(space, made["item"]["id"])
    editor = client.with_token((await space.member(Role.EDITOR))[1])
    assert (await editor.get(path)).status_code == 404
    await client.delete(f"/v1/items/{made['item']['id']}")
    assert (await client.get(path)).status_code == 404


async def test_a_query_goes_through_a_view(client: Client, space: Space) -> None:
    database = await make_database(client, space)
    path = f"/v1/databases/{database['id']}/records"
    for price in (1, 2, 3):
        await client.post(path, json={"title": f"P{price}", "data": {"price": price}})
    manifest = {
        "filter": {"field": "price", "op": "gte", "value": 2},
        "sorts": [{"field": "price", "direction": "desc"}],
    }
    shared = await make_view(client, database["id"], manifest=manifest)
    found = await client.post(f"{path}/query", json={"viewId": shared["id"]})
    assert [one["title"] for one in found.json()["data"]["records"]] == ["P3", "P2"]
    more = {"viewId": shared["id"], "filter": {"field": "price", "op": "lt", "value": 3}}
    found = await client.post(f"{path}/query", json=more)
    assert [one["title"] for one in found.json()["data"]["records"]] == ["P2"]
    _, token = await space.member(Role.EDITOR)
    mine = await make_view(client.with_token(token), database["id"], scope="personal")
    strange = await client.post(f"{path}/query", json={"viewId": mine["id"]})
    unknown = await client.post(f"{path}/query", json={"viewId": str(uuid4())})
    assert (strange.status_code, strange.content) == (404, unknown.content)


async def test_lists_take_a_constant_number_of_statements(client: Client, space: Space) -> None:
    async def statements() -> int:
        seen: list[str] = []
        engine = space.database.engine.sync_engine

        def note(*arguments: Any) -> None:
            if "FROM database" in arguments[2] or "FROM view" in arguments[2]:
                seen.append(arguments[2])

        event.listen(engine, "before_cursor_execute", note)
        try:
            answer = await client.get(f"{space.path}/databases")
        finally:
            event.remove(engine, "before_cursor_execute", note)
        assert answer.status_code == 200
        return len(seen)

    await make_database(client, space)
    assert await statements() == 2
    for _ in range(3):
        await make_database(client, space, views=[{"label": "V"}] * 4)
    assert await statements() == 2


async def test_a_view_is_duplicated(client: Client, space: Space) -> None:
    made = await make_database(client, space)
    manifest = {"stackFieldKey": "state", "orderFieldKey": "price"}
    view = await make_view(client, made["id"], kind="board", manifest=manifest, locked=True)
    path = f"{views_of(made['id'])}/{view['id']}/duplicate"
    copy = (await client.post(path, json={})).json()["data"]
    assert (copy["label"], copy["kind"], copy["locked"]) == ("Copy of A view", "board", False)
    assert copy["manifest"] == manifest
    assert copy["order"] > view["order"]
    body = {"label": "Mine", "scope": "personal"}
    mine = (await client.post(path, json=body)).json()["data"]
    assert (mine["label"], mine["ownerUserId"]) == ("Mine", str(space.user_id))
    _, viewer = await space.member(Role.VIEWER)
    refused = await client.with_token(viewer).post(path, json={})
    assert refused.status_code == 403
    hidden = f"{views_of(made['id'])}/{mine['id']}/duplicate"
    _, editor = await space.member(Role.EDITOR)
    assert (await client.with_token(editor).post(hidden, json={})).status_code == 404
