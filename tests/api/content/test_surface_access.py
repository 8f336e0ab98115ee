"""Surfaces over HTTP: what their blocks refer to, who may do what, the content of records."""

import asyncio
from typing import Any
from uuid import UUID, uuid4

import pytest
import pytest_asyncio
from sqlalchemy import insert

from models.content.files.queries import file as file_table
from models.content.items.commands import create_item_for
from models.content.items.rules import ItemKind
from models.core.access.rules import Level, Role, Scope
from models.data.views.queries import view as view_table
from runtime.ids import new_id
from tests.support.client import Client
from tests.support.spaces import Space
from tests.support.surfaces import (
    Placed,
    grant,
    make_surface,
    plain,
    put,
    restrict,
    trash,
    words,
)


@pytest_asyncio.fixture
async def page(space: Space) -> Placed:
    return await make_surface(space)


async def make_things(client: Client, space: Space) -> tuple[str, str, str]:
    """A database, its item and a record."""
    made = await client.post(f"{space.path}/databases", json={"label": "Things"})
    database = made.json()["data"]
    record = await client.post(f"/v1/databases/{database['id']}/records", json={"title": "R"})
    return database["id"], database["itemId"], record.json()["data"]["id"]


def naming(database: str, item: str, record: str, user: str) -> list[dict[str, Any]]:
    return [
        {"kind": "database_view", "content": {"databaseId": database}},
        {"kind": "item_link", "content": {"itemId": item}},
        {"kind": "record_link", "content": {"recordId": record}},
        {
            "kind": "paragraph",
            "content": {"text": [{"text": "@", "mention": {"userId": user}}]},
        },
    ]


async def test_references_are_to_what_the_caller_sees(
    client: Client, space: Space, foreign: Space, page: Placed
) -> None:
    ours = (*await make_things(client, space), str(space.user_id))
    theirs = (
        *await make_things(client.with_token(foreign.token), foreign),
        str(foreign.user_id),
    )
    for place, block in enumerate(naming(*ours)):
        good = await client.put(page.path, json={"blocks": [block]})
        assert good.status_code == 200, good.text
        unknown = naming(*(str(uuid4()) for _ in range(4)))[place]
        missing = await client.post(f"{page.path}/blocks", json={"blocks": [unknown]})
        elsewhere = await client.post(
            f"{page.path}/blocks", json={"blocks": [naming(*theirs)[place]]}
        )
        assert missing.status_code == elsewhere.status_code == 404
        assert missing.content == elsewhere.content


async def insert_view(space: Space, database_id: str, owner: UUID | None) -> str:
    """A view that its owner alone sees, or all if it has none."""
    view_id = new_id()
    async with space.database.transaction() as work:
        await work.execute(
            insert(view_table).values(
                id=view_id,
                workspace_id=space.id,
                database_id=UUID(database_id),
                key=f"v{view_id.hex[-8:]}",
                label="View",
                kind="table",
                placement="dashboard",
                manifest={},
                owner_user_id=owner,
                scope="shared" if owner is None else "personal",
                locked=False,
                definition_version=1,
                position=0,
                created_at=work.now,
                updated_at=work.now,
            )
        )
    return str(view_id)


async def test_views_of_ones_own_and_of_others(
    client: Client, space: Space, foreign: Space
) -> None:
    database, item, _ = await make_things(client, space)
    user_id, token = await space.member(Role.EDITOR)
    dashboard = await make_surface(space, "dashboard")
    theirs = await make_surface(foreign, "dashboard")

    async def shows(caller: Client, view_id: str, placed: Placed = dashboard) -> int:
        widget = {"kind": "view", "content": {"viewId": view_id}, "x": 0, "y": 0, "w": 1, "h": 1}
        await put(client, dashboard, [])
        return (await caller.put(placed.path, json={"blocks": [widget]})).status_code

    shared, own, editors = [
        await insert_view(space, database, owner) for owner in (None, space.user_id, user_id)
    ]
    editor, stranger = client.with_token(token), client.with_token(foreign.token)
    assert [await shows(client, one) for one in (shared, own, editors)] == [200, 200, 404]
    assert [await shows(editor, one) for one in (shared, own, editors)] == [200, 404, 200]
    assert await shows(client, str(uuid4())) == 404
    await restrict(space, UUID(item))
    assert [await shows(editor, one) for one in (shared, editors)] == [404, 404]
    assert await shows(stranger, shared, theirs) == 404


async def test_files_where_their_items_are(
    client: Client, space: Space, foreign: Space, page: Placed
) -> None:
    async def shows(caller: Client, placed: Placed, file_id: UUID) -> int:
        image = {"kind": "image", "content": {"fileId": str(file_id)}}
        await caller.put(placed.path, json={"blocks": []})
        return (await caller.put(placed.path, json={"blocks": [image]})).status_code

    async def file(item: str | None = None) -> UUID:
        file_id = new_id()
        async with space.database.transaction() as work:
            await work.execute(
                insert(file_table).values(
                    id=file_id,
                    workspace_id=space.id,
                    name="a.png",
                    mime_type="image/png",
                    byte_size=1,
                    sha256=bytes(32),
                    object_key=file_id.hex,
                    created_by_user_id=space.user_id,
                    created_at=work.now,
                )
            )
            if item is not None:
                made = await create_item_for(work, space.actor, ItemKind.FILE, file_id, item)
        if item == "secret":
            await restrict(space, made)
        if item == "gone":
            await trash(space, made)
        return file_id

    files = [await file(), await file("open"), await file("secret"), await file("gone")]
    _, token = await space.member(Role.EDITOR)
    editor = client.with_token(token)
    assert [await shows(client, page, one) for one in files] == [200, 200, 200, 404]
    assert [await shows(editor, page, one) for one in files] == [200, 200, 404, 404]
    assert await shows(client, page, uuid4()) == 404
    theirs = await make_surface(foreign)
    stranger = client.with_token(foreign.token)
    assert [await shows(stranger, theirs, one) for one in files] == [404] * 4


async def test_ids_in_another_spelling_are_looked_up_too(
    client: Client, foreign: Space, page: Placed
) -> None:
    *_, record = await make_things(client.with_token(foreign.token), foreign)
    for spelling in (record.replace("-", ""), record.upper(), f"urn:uuid:{record}"):
        block = {"kind": "record_link", "content": {"recordId": spelling}}
        answer = await client.put(page.path, json={"blocks": [block]})
        assert answer.status_code in {400, 404}, spelling


async def test_an_editor_saves_a_page_that_names_what_they_do_not_see(
    client: Client, space: Space, page: Placed
) -> None:
    database, item, record = await make_things(client, space)
    secret = naming(database, item, record, str(space.user_id))[2]
    found = await put(client, page, [secret])
    other = await make_things(client, space)
    await restrict(space, UUID(item))
    await restrict(space, UUID(other[1]))
    _, token = await space.member(Role.EDITOR)
    editor = client.with_token(token)
    kept = {"id": found["blocks"][0]["id"], **secret}
    await put(editor, page, [kept, words("mine")])
    await put(editor, page, [secret, secret])
    for unseen in naming(*other, str(space.user_id))[:3]:
        answer = await editor.put(page.path, json={"blocks": [secret, unseen]})
        assert answer.status_code == 404, unseen
    # A text that spells an id does not name it.
    await put(editor, page, [words(other[2])])
    unseen = {"kind": "record_link", "content": {"recordId": other[2]}}
    assert (await editor.put(page.path, json={"blocks": [unseen]})).status_code == 404


async def test_a_link_to_a_deleted_record_can_stay_on_the_page(
    client: Client, space: Space, page: Placed
) -> None:
    _, item, record = await make_things(client, space)
    link = {"kind": "record_link", "content": {"recordId": record}}
    await put(client, page, [link])
    await trash(space, UUID(item))
    await put(client, page, [link, words("after")])
    fresh = await make_surface(space)
    assert (await client.put(fresh.path, json={"blocks": [link]})).status_code == 404


async def test_strangers_and_unknown_ids_look_alike(
    client: Client, space: Space, foreign: Space, page: Placed
) -> None:
    stranger = client.with_token(foreign.token)
    hidden = await make_surface(space)
    await trash(space, hidden.item_id)
    for method, path, body in [
        ("GET", "", None),
        ("PUT", "", {"blocks": []}),
        ("GET", "/blocks", None),
        ("POST", "/blocks", {"blocks": [words("x")]}),
        ("GET", "/comments", None),
        ("POST", "/comments", {"body": "x"}),
    ]:
        unknown = await stranger.request(method, f"/v1/surfaces/{uuid4()}{path}", json=body)
        other = await stranger.request(method, f"{page.path}{path}", json=body)
        gone = await client.request(method, f"{hidden.path}{path}", json=body)
        malformed = await client.request(method, f"/v1/surfaces/1{path}", json=body)
        assert unknown.status_code == 404
        assert unknown.content == other.content == gone.content == malformed.content


@pytest.mark.parametrize(
    ("role", "reads", "writes", "comments"),
    [
        (Role.ADMIN, 200, 200, 201),
        (Role.EDITOR, 200, 200, 201),
        (Role.COMMENTER, 200, 403, 201),
        (Role.VIEWER, 200, 403, 403),
        (Role.GUEST, 404, 404, 404),
    ],
)
async def test_roles_decide_who_reads_writes_and_comments_on_a_surface(
    client: Client, space: Space, page: Placed, role: Role, reads: int, writes: int, comments: int
) -> None:
    _, token = await space.member(role)
    member = client.with_token(token)
    assert (await member.get(page.path)).status_code == reads
    assert (await member.get(f"{page.path}/blocks")).status_code == reads
    assert (await member.put(page.path, json={"blocks": []})).status_code == writes
    assert (await member.post(f"{page.path}/comments", json={"body": "x"})).status_code == comments


@pytest.mark.parametrize(
    ("level", "reads", "writes", "comments"),
    [
        (Level.VIEW, 200, 403, 403),
        (Level.COMMENT, 200, 403, 201),
        (Level.EDIT, 200, 200, 201),
    ],
    ids=["view", "comment", "edit"],
)
async def test_a_guest_has_what_was_granted(
    client: Client, space: Space, page: Placed, level: Level, reads: int, writes: int, comments: int
) -> None:
    user_id, token = await space.member(Role.GUEST)
    await grant(space, page.item_id, user_id, level)
    other = await make_surface(space)
    guest = client.with_token(token)
    assert (await guest.get(page.path)).status_code == reads
    assert (await guest.put(page.path, json={"blocks": []})).status_code == writes
    assert (await guest.post(f"{page.path}/comments", json={"body": "x"})).status_code == comments
    assert (await guest.get(other.path)).status_code == 404
    link = {"kind": "item_link", "content": {"itemId": str(other.item_id)}}
    if writes == 200:
        assert (await guest.put(page.path, json={"blocks": [link]})).status_code == 404


async def test_a_restricted_page_needs_a_grant(client: Client, space: Space, page: Placed) -> None:
    await restrict(space, page.item_id)
    user_id, token = await space.member(Role.EDITOR)
    editor = client.with_token(token)
    assert (await editor.get(page.path)).status_code == 404
    await grant(space, page.item_id, user_id, Level.VIEW)
    assert (await editor.get(page.path)).status_code == 200
    assert (await editor.put(page.path, json={"blocks": []})).status_code == 403


@pytest.mark.parametrize(
    ("kind", "needed", "method", "path"),
    [
        ("page", Scope.SURFACES_READ, "GET", ""),
        ("page", Scope.SURFACES_WRITE, "PUT", ""),
        ("dashboard", Scope.SURFACES_READ, "GET", ""),
        ("note", Scope.BLOCKS_READ, "GET", "/blocks"),
        ("note", Scope.BLOCKS_READ, "GET", "/comments"),
        ("page", Scope.BLOCKS_WRITE, "POST", "/blocks"),
        ("page", Scope.BLOCKS_COMMENT, "POST", "/comments"),
        ("canvas", Scope.CANVAS_READ, "GET", ""),
        ("canvas", Scope.CANVAS_READ, "GET", "/blocks"),
        ("canvas", Scope.CANVAS_READ, "GET", "/comments"),
        ("canvas", Scope.CANVAS_WRITE, "PUT", ""),
        ("canvas", Scope.CANVAS_WRITE, "POST", "/blocks"),
        ("canvas", Scope.BLOCKS_COMMENT, "POST", "/comments"),
    ],
)
async def test_the_kind_says_which_scope(
    client: Client, space: Space, kind: str, needed: Scope, method: str, path: str
) -> None:
    surface = await make_surface(space, kind)
    drawn = {"kind": "text", "x": 0, "y": 0, "w": 1, "h": 1}
    body: Any = {
        "PUT": {"blocks": []},
        "POST": {"blocks": [drawn if kind == "canvas" else words("x")]},
    }.get(method)
    if path == "/comments" and method == "POST":
        body = {"body": "x"}
    alone = client.with_token(await space.key([needed]))
    answer = await alone.request(method, surface.path + path, json=body)
    assert answer.status_code in {200, 201}, answer.text
    others = client.with_token(await space.key([scope for scope in Scope if scope != needed]))
    answer = await others.request(method, surface.path + path, json=body)
    assert answer.status_code == 403
    assert needed in answer.json()["message"]


async def test_the_content_of_a_record(client: Client, space: Space, foreign: Space) -> None:
    _, item, record = await make_things(client, space)
    path = f"/v1/records/{record}"
    opened = await client.post(f"{path}/content-surface")
    assert opened.status_code == 200
    surface = opened.json()["data"]
    assert (surface["kind"], surface.get("itemId"), surface["recordId"]) == ("record", None, record)
    assert (await client.get(path)).json()["data"]["contentSurfaceId"] == surface["id"]
    again = await client.post(f"{path}/content-surface")
    assert again.json() == opened.json()
    at = f"/v1/surfaces/{surface['id']}"
    assert (await client.put(at, json={"blocks": [words("about")]})).status_code == 200
    assert plain((await client.get(at)).json()["data"]["blocks"]) == [["about"]]
    assert (await client.with_token(foreign.token).get(at)).status_code == 404
    _, viewer = await space.member(Role.VIEWER)
    assert (await client.with_token(viewer).get(at)).status_code == 200
    assert (await client.with_token(viewer).post(f"{path}/content-surface")).status_code == 403
    for scope in (Scope.RECORDS_WRITE, Scope.SURFACES_WRITE):
        token = await space.key([one for one in Scope if one != scope])
        denied = await client.with_token(token).post(f"{path}/content-surface")
        assert denied.status_code == 403
    await restrict(space, UUID(item))
    assert (await client.with_token(viewer).get(at)).status_code == 404


async def test_a_record_gets_one_surface_however_many_ask(client: Client, space: Space) -> None:
    *_, record = await make_things(client, space)
    path = f"/v1/records/{record}/content-surface"
    answers = await asyncio.gather(*(client.post(path) for _ in range(6)))
    assert [answer.status_code for answer in answers] == [200] * 6
    assert len({answer.json()["data"]["id"] for answer in answers}) == 1


async def test_the_content_of_a_deleted_record_is_gone(client: Client, space: Space) -> None:
    *_, record = await make_things(client, space)
    opened = await client.post(f"/v1/records/{record}/content-surface")
    at = f"/v1/surfaces/{opened.json()['data']['id']}"
    assert (await client.delete(f"/v1/records/{record}")).status_code == 200
    assert (await client.get(at)).status_code == 404
