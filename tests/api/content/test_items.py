"""Items over HTTP: their shape, their lists, who may do what."""

from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from sqlalchemy import func, insert, literal, select, text
from sqlalchemy.dialects.postgresql.base import PGDialect

from cli.supervisor.development import DevelopmentIssuer
from models.content.items.joins import item, item_grant
from models.content.items.queries import closed_items
from models.core.access.rules import Level, Role, Scope
from tests.support.client import Client
from tests.support.items import children, make, make_item, read, refused, titles
from tests.support.plans import text_of
from tests.support.spaces import Space

BESIDE = ("INSERT INTO request_log", "UPDATE api_key")
"""What the request log writes beside the requests, whenever it likes."""


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every statement the driver sends from now on for the requests themselves."""
    statements: list[Any] = []
    execute = psycopg.AsyncCursor.execute

    async def counting(cursor: Any, query: Any, *arguments: Any, **options: Any) -> Any:
        # An empty one tries a connection that was idle.
        if query and not text_of(query).startswith(BESIDE):
            statements.append(query)
        return await execute(cursor, query, *arguments, **options)

    monkeypatch.setattr(psycopg.AsyncCursor, "execute", counting)
    return statements


async def grant(space: Space, item_id: str, user_id: UUID, level: Level) -> None:
    async with space.database.transaction() as work:
        await work.execute(
            insert(item_grant).values(
                workspace_id=space.id,
                item_id=UUID(item_id),
                user_id=user_id,
                level=level.value,
                created_at=work.now,
                updated_at=work.now,
            )
        )


async def count(space: Space) -> int:
    async with space.database.transaction() as work:
        statement = select(func.count()).select_from(item).where(item.c.workspace_id == space.id)
        return int(await work.scalar(statement))


async def test_an_item_has_the_shape_of_the_interface(client: Client, space: Space) -> None:
    made = await make(
        client,
        "folder",
        "Plans",
        icon="📁",
        color="#aabbcc",
        order=2.5,
        metadata={"a": {"b": [1, None, "x"]}},
    )
    assert made.keys() == {"item"}
    assert made["item"] == {
        "id": made["item"]["id"],
        "workspaceId": str(space.id),
        "parentItemId": None,
        "kind": "folder",
        "targetId": None,
        "title": "Plans",
        "icon": "📁",
        "color": "#aabbcc",
        "order": 2.5,
        "archived": False,
        "accessMode": "open",
        "metadata": {"a": {"b": [1, None, "x"]}},
        "createdAt": made["item"]["createdAt"],
        "updatedAt": made["item"]["updatedAt"],
    }
    assert read(await client.get(f"/v1/items/{made['item']['id']}")) == made["item"]


async def test_children_stand_in_their_order(client: Client) -> None:
    folder = await make_item(client)
    for title in ("b", "c"):
        await make_item(client, title, folder)
    await make_item(client, "a", folder, order=-1)
    assert await titles(client, folder) == ["a", "b", "c"]
    assert await titles(client) == ["Thing"]


async def test_lists_are_paged_without_loss(client: Client) -> None:
    folder = await make_item(client, "folder")
    below = [(await make_item(client, str(n), folder, order=1))["id"] for n in range(5)]
    for query, expected in (
        ({"parentId": folder["id"]}, below),
        ({}, [*below[::-1], folder["id"]]),
        ({"kind": "page"}, []),
    ):
        found: list[str] = []
        cursor = None
        while True:
            page = {"limit": "2", **query} | ({} if cursor is None else {"cursor": cursor})
            data = read(await client.get("/v1/items", params=page))
            found += [one["id"] for one in data["items"]]
            cursor = data["cursor"]
            if cursor is None:
                break
        assert found == expected
    page = read(await client.get("/v1/items", params={"limit": "2"}))
    other = {"cursor": page["cursor"], "parentId": folder["id"]}
    assert refused(await client.get("/v1/items", params=other)) == (400, "validation_error")


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ({"kind": "folders"}, "kind"),
        ({"parentId": "nothing"}, "parentId"),
        ({"archived": "1"}, "archived"),
        ({"limit": "0"}, "limit"),
        ({"cursor": "x"}, "cursor"),
        ({"trash": "true"}, "trash"),
    ],
)
async def test_bad_queries_are_refused(client: Client, query: dict[str, str], path: str) -> None:
    answer = await client.get("/v1/items", params=query)
    assert refused(answer) == (400, "validation_error")
    assert answer.json()["details"][0]["path"] == path


BAD: list[tuple[dict[str, Any], str]] = [
    ({}, "kind"),
    ({"kind": "folder"}, "title"),
    ({"kind": "thing", "title": "x"}, "kind"),
    ({"kind": "folder", "title": ""}, "title"),
    ({"kind": "folder", "title": "x" * 201}, "title"),
    ({"kind": "folder", "title": 5}, "title"),
    ({"kind": "folder", "title": "x", "id": str(uuid4())}, "id"),
    ({"kind": "folder", "title": "x", "targetId": str(uuid4())}, "targetId"),
    ({"kind": "folder", "title": "x", "archived": True}, "archived"),
    ({"kind": "folder", "title": "x", "parentItemId": "x"}, "parentItemId"),
    ({"kind": "folder", "title": "x", "order": "1"}, "order"),
    ({"kind": "folder", "title": "x", "order": 10**300}, "order"),
    ({"kind": "folder", "title": "x", "accessMode": "closed"}, "accessMode"),
    ({"kind": "folder", "title": "x", "metadata": []}, "metadata"),
    ({"kind": "folder", "title": "x", "metadata": {"a": "x" * 65_536}}, "metadata"),
    ({"kind": "folder", "title": "x", "config": {}}, "config"),
    ({"kind": "folder", "title": "x", "content": {}}, "content"),
    ({"kind": "page", "title": "x", "config": {}}, "config"),
    ({"kind": "database", "title": "x", "content": {}}, "content"),
    ({"kind": "database", "title": "x", "config": {"label": "y"}}, "config.label"),
    ({"kind": "database", "title": "x", "config": {"key": "UP"}}, "config.key"),
    (
        {"kind": "database", "title": "x", "config": {"fields": [{"label": "a", "kind": "z"}]}},
        "config.fields.0.kind",
    ),
    ({"kind": "file", "title": "x"}, "config.fileId"),
    ({"kind": "view", "title": "x"}, "config.databaseId"),
    ({"kind": "action", "title": "x", "config": {"kind": "x"}}, "config.kind"),
    ({"kind": "action", "title": "x", "config": {"kind": "transform"}}, "config.config"),
    (
        {"kind": "action", "title": "x", "config": {"kind": "transform", "config": {"out": 1}}},
        "config.config.output",
    ),
    ({"kind": "external_resource", "title": "x"}, "config.resource"),
    (
        {"kind": "automation", "title": "x", "config": {"trigger": "sometimes"}},
        "config.trigger",
    ),
]


@pytest.mark.parametrize(("body", "path"), BAD)
async def test_bad_bodies_are_refused_where_they_are_wrong(
    client: Client, space: Space, body: dict[str, Any], path: str
) -> None:
    answer = await client.post("/v1/items", json=body)
    assert refused(answer) == (400, "validation_error"), answer.text
    assert answer.json()["details"][0]["path"] == path
    assert await count(space) == 0


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = {"a": value}
    return value


async def test_metadata_is_bounded_in_depth(client: Client) -> None:
    assert (await make_item(client, metadata=nested(15)))["metadata"] == nested(15)
    body = {"kind": "folder", "title": "x", "metadata": nested(16)}
    assert refused(await client.post("/v1/items", json=body)) == (400, "validation_error")


@pytest.mark.parametrize(
    "raw",
    [
        b'{"kind": "folder", "title": "a\\u0000b"}',
        b'{"kind": "folder", "title": "a\\ud800b"}',
        b'{"kind": "folder", "title": "x", "metadata": {"a": NaN}}',
        b'{"kind": "folder", "title": "x", "title": "y"}',
        b"[]",
        b"",
    ],
)
async def test_bodies_that_are_no_plain_json_are_refused(
    client: Client, space: Space, raw: bytes
) -> None:
    headers = {"Content-Type": "application/json"}
    answer = await client.post("/v1/items", content=raw, headers=headers)
    assert refused(answer) == (400, "validation_error")
    assert await count(space) == 0


async def test_foreign_ids_answer_as_unknown_ones(
    client: Client, space: Space, foreign: Space
) -> None:
    theirs = await make_item(client.with_token(foreign.token), kind="database")
    mine = await make_item(client)
    before = await count(foreign)

    async def same(use: Any, real: str = theirs["id"]) -> None:
        found, random = await use(real), await use(str(uuid4()))
        assert (found.status_code, found.content) == (404, random.content)

    await same(lambda id_: client.get(f"/v1/items/{id_}"))
    await same(lambda id_: client.patch(f"/v1/items/{id_}", json={"title": "x"}))
    await same(lambda id_: client.delete(f"/v1/items/{id_}"))
    for verb in ("archive", "restore", "duplicate"):
        await same(lambda id_, verb=verb: client.post(f"/v1/items/{id_}/{verb}"))
    await same(lambda id_: client.post(f"/v1/items/{id_}/move", json={"parentItemId": None}))
    await same(lambda id_: client.post(f"/v1/items/{mine['id']}/move", json={"parentItemId": id_}))
    await same(lambda id_: client.get("/v1/items", params={"parentId": id_}))
    await same(
        lambda id_: client.post(
            "/v1/items", json={"kind": "folder", "title": "x", "parentItemId": id_}
        )
    )
    await same(
        lambda id_: client.post(
            "/v1/items", json={"kind": "folder", "title": "x", "workspaceId": id_}
        ),
        str(foreign.id),
    )
    for config in ("view", "form"):
        await same(
            lambda id_, kind=config: client.post(
                "/v1/items", json={"kind": kind, "title": "x", "config": {"databaseId": id_}}
            ),
            theirs["targetId"],
        )
    assert await count(foreign) == before
    assert await count(space) == 1


async def test_a_session_says_which_workspace_it_means(
    client: Client, space: Space, foreign: Space, issuer: DevelopmentIssuer
) -> None:
    session = client.with_token(issuer.mint(space.email, "Test"))
    body = {"kind": "folder", "title": "Mine"}
    assert refused(await session.post("/v1/items", json=body)) == (400, "validation_error")
    named = {**body, "workspaceId": str(space.id)}
    made = read(await session.post("/v1/items", json=named), 201)["item"]
    assert made["workspaceId"] == str(space.id)
    query = {"workspaceId": str(space.id)}
    assert read(await session.post("/v1/items", json=body, params=query), 201)
    assert len(read(await session.get("/v1/items", params=query))["items"]) == 2
    assert read(await session.get(f"/v1/items/{made['id']}"))["id"] == made["id"]
    theirs = {**body, "workspaceId": str(foreign.id)}
    assert refused(await session.post("/v1/items", json=theirs)) == (404, "not_found")


@pytest.mark.parametrize("role", [Role.VIEWER, Role.COMMENTER])
async def test_readers_read_and_cannot_write(client: Client, space: Space, role: Role) -> None:
    made = await make_item(client)
    _, token = await space.member(role)
    reader = client.with_token(token)
    assert len(read(await reader.get("/v1/items"))["items"]) == 1
    path = f"/v1/items/{made['id']}"
    assert read(await reader.get(path)) == made
    refusals = [
        await reader.post("/v1/items", json={"kind": "folder", "title": "x"}),
        await reader.patch(path, json={"title": "x"}),
        await reader.delete(path),
        await reader.post(f"{path}/move", json={"parentItemId": None}),
        await reader.post(f"{path}/archive"),
        await reader.post(f"{path}/restore"),
        await reader.post(f"{path}/duplicate"),
    ]
    assert {refused(answer) for answer in refusals} == {(403, "denied")}
    assert read(await client.get(path)) == made


async def test_a_guest_works_in_what_was_granted_only(client: Client, space: Space) -> None:
    shown, hidden = await make_item(client, "shown"), await make_item(client, "hidden")
    user_id, token = await space.member(Role.GUEST)
    guest = client.with_token(token)
    await grant(space, shown["id"], user_id, Level.EDIT)
    assert [one["id"] for one in read(await guest.get("/v1/items"))["items"]] == [shown["id"]]
    await make_item(guest, "below", shown)
    unknown = await guest.get(f"/v1/items/{uuid4()}")
    seen = await guest.get(f"/v1/items/{hidden['id']}")
    assert (seen.status_code, seen.content) == (404, unknown.content)
    body = {"kind": "folder", "title": "x"}
    assert refused(await guest.post("/v1/items", json=body)) == (403, "denied")
    there = {**body, "parentItemId": hidden["id"]}
    assert refused(await guest.post("/v1/items", json=there)) == (404, "not_found")


async def test_a_member_who_restricts_an_item_keeps_access(client: Client, space: Space) -> None:
    _, token = await space.member(Role.EDITOR)
    _, other = await space.member(Role.EDITOR)
    editor, stranger = client.with_token(token), client.with_token(other)
    mine = await make_item(editor, "private", accessMode="restricted")
    path = f"/v1/items/{mine['id']}"
    assert read(await editor.patch(path, json={"title": "still mine"}))["title"] == "still mine"
    assert refused(await stranger.get(path)) == (404, "not_found")
    assert read(await stranger.get("/v1/items"))["items"] == []
    assert read(await editor.patch(path, json={"accessMode": "open"}))["accessMode"] == "open"
    assert read(await stranger.get(path))["title"] == "still mine"
    assert refused(await stranger.patch(path, json={"accessMode": "restricted"})) == (403, "denied")


SCOPES = [
    ("page", Scope.SURFACES_WRITE),
    ("note", Scope.SURFACES_WRITE),
    ("dashboard", Scope.SURFACES_WRITE),
    ("canvas", Scope.CANVAS_WRITE),
    ("database", Scope.DATABASES_WRITE),
    ("automation", Scope.AUTOMATIONS_WRITE),
    ("view", Scope.VIEWS_WRITE),
    ("form", Scope.VIEWS_WRITE),
    ("file", Scope.FILES_WRITE),
    ("action", Scope.ACTIONS_WRITE),
    ("data_source", Scope.DATA_SOURCES_WRITE),
    ("external_resource", Scope.INTEGRATIONS_WRITE),
]


@pytest.mark.parametrize(("kind", "scope"), SCOPES)
async def test_the_kinds_scope_is_needed_and_named(
    client: Client, space: Space, kind: str, scope: Scope
) -> None:
    without = client.with_token(await space.key([one for one in Scope if one is not scope]))
    answer = await without.post("/v1/items", json={"kind": kind, "title": "x"})
    assert refused(answer) == (403, "denied")
    assert scope in answer.json()["message"]
    enough = client.with_token(await space.key([Scope.RESOURCES_WRITE, scope]))
    answer = await enough.post("/v1/items", json={"kind": kind, "title": "x"})
    assert answer.status_code in {201, 400}


async def test_an_update_changes_what_it_names(client: Client) -> None:
    made = await make_item(client, icon="📁", color="red", metadata={"a": 1, "b": 2})
    path = f"/v1/items/{made['id']}"
    assert read(await client.patch(path, json={})) == made
    expected = {"icon": None, "metadata": {"b": 3}, "order": 7, "title": "N"}
    changed = read(await client.patch(path, json=expected))
    assert changed["updatedAt"] > made["updatedAt"]
    assert changed == {**made, **expected, "updatedAt": changed["updatedAt"]}
    for body, place in (
        ({"title": None}, "title"),
        ({"title": ""}, "title"),
        ({"order": None}, "order"),
        ({"metadata": None}, "metadata"),
        ({"accessMode": None}, "accessMode"),
        ({"kind": "page"}, "kind"),
        ({"archived": True}, "archived"),
        ({"parentItemId": None}, "parentItemId"),
    ):
        answer = await client.patch(path, json=body)
        assert refused(answer) == (400, "validation_error")
        assert answer.json()["details"][0]["path"] == place
    assert read(await client.get(path)) == changed


async def test_a_change_since_the_read_is_a_conflict(client: Client) -> None:
    made = await make_item(client)
    path, seen = f"/v1/items/{made['id']}", {"If-Match": f'"{made["updatedAt"]}"'}
    first = await client.patch(path, json={"title": "first"}, headers=seen)
    assert read(first)["title"] == "first"
    answer = await client.patch(path, json={"title": "second"}, headers=seen)
    assert refused(answer) == (409, "conflict")
    bad = await client.patch(path, json={"title": "x"}, headers={"If-Match": "yesterday"})
    assert refused(bad) == (400, "validation_error")
    assert read(await client.get(path))["title"] == "first"


async def test_a_title_and_the_label_behind_it_are_one(client: Client, space: Space) -> None:
    automation = await make(client, "automation", "Old")
    database = await make(client, "database", "Old")
    action = await make(
        client, "action", "Old", config={"kind": "transform", "config": {"output": {}}}
    )
    database_id = database["target"]["id"]
    view = await make(client, "view", "Old", config={"databaseId": database_id})
    for made, resources in (
        (automation, f"{space.path}/automations"),
        (database, f"{space.path}/databases"),
        (action, f"{space.path}/actions"),
        (view, f"/v1/databases/{database_id}/views"),
    ):
        path, target = f"/v1/items/{made['item']['id']}", f"{resources}/{made['target']['id']}"
        assert read(await client.patch(path, json={"title": "New"}))["title"] == "New"
        assert read(await client.get(target))["label"] == "New"
        assert read(await client.patch(target, json={"label": "Newer"}))["label"] == "Newer"
        assert read(await client.get(path))["title"] == "Newer"


async def test_the_same_idempotency_key_creates_once(client: Client, space: Space) -> None:
    headers, body = {"Idempotency-Key": uuid4().hex}, {"kind": "folder", "title": "Once"}
    answers = [await client.post("/v1/items", json=body, headers=headers) for _ in range(2)]
    assert answers[0].content == answers[1].content
    assert await count(space) == 1


async def test_a_list_needs_a_constant_number_of_statements(
    client: Client, space: Space, sent: list[Any]
) -> None:
    folder = await make_item(client, "folder")
    needed = {}
    for size in (1, 30):
        while len(await children(client, folder)) < size:
            await make_item(client, "x", folder)
        query = {"parentId": folder["id"], "limit": "30"}
        sent.clear()
        assert len(read(await client.get("/v1/items", params=query))["items"]) == size
        needed[size] = len(sent)
    assert needed[1] == needed[30] <= 3
    assert await count(space) == 31


async def fill(space: Space, folder: dict[str, Any], size: int) -> None:
    """Put this number of children into a folder."""
    async with space.database.transaction() as work:
        values = select(
            *(item.c[name] for name in ("workspace_id", "kind", "icon", "color")),
            *(item.c[name] for name in ("archived", "access_mode", "metadata")),
            *(item.c[name] for name in ("created_at", "updated_at")),
            func.gen_random_uuid().label("id"),
            item.c.id.label("parent_item_id"),
            literal("Child").label("title"),
            func.generate_series(1, size).label("position"),
        ).where(item.c.id == UUID(folder["id"]))
        await work.execute(insert(item).from_select([*values.selected_columns.keys()], values))


async def test_a_folder_of_any_size_goes_and_comes_back_by_as_many_statements(
    client: Client, space: Space, sent: list[Any]
) -> None:
    needed = {}
    for size in (1, 2_000):
        folder = await make_item(client, "folder")
        await fill(space, folder, size)
        if size > 1:
            await look_up_what_is_closed(space)
        for act, left in (("delete", 0), ("restore", size)):
            sent.clear()
            path = f"/v1/items/{folder['id']}"
            answer = await (
                client.delete(path) if act == "delete" else client.post(f"{path}/restore", json={})
            )
            assert answer.is_success, answer.text
            needed[act, size] = len(sent)
            async with space.database.reading() as work:
                alive = select(func.count()).where(
                    item.c.parent_item_id == UUID(folder["id"]), item.c.deleted_at.is_(None)
                )
                assert await work.scalar(alive) == left
    assert needed["delete", 1] == needed["delete", 2_000]
    assert needed["restore", 1] == needed["restore", 2_000]


async def look_up_what_is_closed(space: Space) -> None:
    """Ids are looked up in the items that are closed to a member, and not compared with all of
    them.
    """
    async with space.database.transaction() as work:
        await work.execute(text("ANALYZE item"))
        for role in (Role.VIEWER, Role.OWNER):
            closed = select(closed_items(replace(space.actor, role=role)).c.id)
            asked = select(item.c.id).where(item.c.id.not_in(closed))
            told = asked.compile(dialect=PGDialect(), compile_kwargs={"literal_binds": True})
            plan = str(await work.rows(text(f"EXPLAIN {told}".replace(":", r"\:"))))
            assert "hashed SubPlan" in plan, plan
            assert "CTE Scan on closed" not in plan, plan
