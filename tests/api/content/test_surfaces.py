"""Surfaces over HTTP: content as a whole, its references, its versions, and who may do what."""

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
from tests.support.surfaces import Placed, grant, make_surface, restrict, trash


@pytest_asyncio.fixture
async def page(space: Space) -> Placed:
    return await make_surface(space)


def words(text: str, **more: Any) -> dict[str, Any]:
    return {"kind": "paragraph", "content": {"text": [{"text": text}]}, **more}


def plain(blocks: list[dict[str, Any]]) -> list[Any]:
    """Texts or kinds of blocks, with those of what is nested in them."""
    return [
        [
            block["content"]["text"][0]["text"] if block["content"].get("text") else block["kind"],
            *([plain(block["children"])] if block["children"] else []),
        ]
        for block in blocks
    ]


async def put(client: Client, placed: Placed, blocks: list[dict[str, Any]], **more: Any) -> Any:
    answer = await client.put(placed.path, json={"blocks": blocks, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


async def read(client: Client, placed: Placed) -> Any:
    answer = await client.get(placed.path)
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


async def test_a_new_surface_is_empty(client: Client, space: Space, page: Placed) -> None:
    found = await read(client, page)
    assert found.keys() == {
        "id", "workspaceId", "itemId", "kind", "version", "settings", "blocks",
        "createdAt", "updatedAt",
    }  # fmt: skip
    assert found["itemId"] == str(page.item_id)
    assert found["workspaceId"] == str(space.id)
    assert (found["kind"], found["version"], found["settings"]) == ("page", 1, {})
    assert found["blocks"] == []


async def test_a_surface_is_created_with_content(client: Client, space: Space) -> None:
    content = {"settings": {"width": "full"}, "blocks": [words("a", children=[words("b")])]}
    found = await read(client, await make_surface(space, "note", content))
    assert found["settings"] == {"width": "full"}
    assert plain(found["blocks"]) == [["a", [["b"]]]]


async def test_put_replaces_the_whole_content(client: Client, page: Placed) -> None:
    first = await put(
        client, page, [words("a"), words("b", children=[words("c")])], settings={"font": "serif"}
    )
    assert first["version"] == 2
    assert plain(first["blocks"]) == [["a"], ["b", [["c"]]]]
    a, b = first["blocks"]
    (c,) = b["children"]
    assert c["parentBlockId"] == b["id"]
    # c leaves b, b goes: c must outlive it, and stay the block it was.
    second = await put(client, page, [words("c", id=c["id"]), words("a!", id=a["id"])])
    assert plain(second["blocks"]) == [["c"], ["a!"]]
    assert second["settings"] == {}
    assert second["version"] == 3
    kept, changed = second["blocks"]
    assert (kept["createdAt"], changed["createdAt"]) == (c["createdAt"], a["createdAt"])
    assert changed["updatedAt"] > a["updatedAt"]
    assert await read(client, page) == second


async def test_a_block_that_a_put_leaves_alone_keeps_its_time(client: Client, page: Placed) -> None:
    before = await put(client, page, [words("same"), words("other")])
    same, other = before["blocks"]
    after = await put(client, page, [words("same", id=same["id"]), words("new", id=other["id"])])
    assert after["blocks"][0] == same
    assert after["blocks"][1]["updatedAt"] > other["updatedAt"]


async def test_ids_are_the_clients_to_choose_and_undo_brings_blocks_back(
    client: Client, page: Placed
) -> None:
    chosen = str(uuid4())
    await put(client, page, [words("mine", id=chosen)])
    await put(client, page, [])
    again = await put(client, page, [words("mine", id=chosen)])
    assert [block["id"] for block in again["blocks"]] == [chosen]
    answer = await client.put(page.path, json={"blocks": [words("a", id=chosen)] * 2})
    assert answer.status_code == 400
    assert answer.json()["details"][0]["path"] == "blocks.1.id"


async def test_the_same_block_id_on_two_surfaces(
    client: Client, space: Space, foreign: Space, page: Placed
) -> None:
    """An id chosen on one surface says nothing about another, of this or of another workspace."""
    chosen = str(uuid4())
    await put(client, page, [words("first", id=chosen)])
    other = await make_surface(space)
    await put(client, other, [words("second", id=chosen)])
    theirs = await make_surface(foreign)
    await put(client.with_token(foreign.token), theirs, [words("third", id=chosen)])
    assert plain((await read(client, page))["blocks"]) == [["first"]]
    assert plain((await read(client, other))["blocks"]) == [["second"]]


async def test_a_stale_version_changes_nothing(client: Client, page: Placed) -> None:
    await put(client, page, [words("a")], expectedVersion=1)
    body: dict[str, Any] = {"blocks": [words("b")]}
    for headers, expected in [({"If-Match": '"1"'}, {}), ({}, {"expectedVersion": 1})]:
        answer = await client.put(page.path, json={**body, **expected}, headers=headers)
        assert (answer.status_code, answer.json()["_tag"]) == (409, "ApiConflict")
    assert plain((await read(client, page))["blocks"]) == [["a"]]
    for header in ("2", "*"):
        answer = await client.put(page.path, json=body, headers={"If-Match": header})
        assert answer.status_code == 200
    for header in ("yesterday", "0", "-1", "1e3", "9" * 30):
        answer = await client.put(page.path, json=body, headers={"If-Match": header})
        assert answer.status_code == 400
        assert answer.json()["details"][0]["path"] == "If-Match"


async def test_of_concurrent_puts_of_one_version_one_wins(client: Client, page: Placed) -> None:
    async def attempt(text: str) -> int:
        body = {"blocks": [words(text)] * 20, "expectedVersion": 1}
        return (await client.put(page.path, json=body)).status_code

    statuses = await asyncio.gather(*(attempt(str(number)) for number in range(8)))
    assert sorted(statuses) == [200] + [409] * 7
    found = await read(client, page)
    assert found["version"] == 2
    winner = str(statuses.index(200))
    assert plain(found["blocks"]) == [[winner]] * 20


async def test_concurrent_puts_without_a_version_never_mix(client: Client, page: Placed) -> None:
    async def attempt(text: str) -> int:
        return (await client.put(page.path, json={"blocks": [words(text)] * 20})).status_code

    statuses = await asyncio.gather(*(attempt(str(number)) for number in range(6)))
    assert statuses == [200] * 6
    found = await read(client, page)
    assert found["version"] == 7
    assert len(found["blocks"]) == 20
    assert len({str(one) for one in plain(found["blocks"])}) == 1


async def test_a_put_repeated_under_its_key_happens_once(client: Client, page: Placed) -> None:
    headers = {"Idempotency-Key": "k"}
    body = {"blocks": [words("a")]}
    first = await client.put(page.path, json=body, headers=headers)
    second = await client.put(page.path, json=body, headers=headers)
    assert second.content == first.content
    assert second.headers["Idempotency-Replayed"] == "true"
    assert (await read(client, page))["version"] == 2


DEEP: dict[str, Any] = words("leaf")
for _ in range(19):
    DEEP = words("level", children=[DEEP])


async def test_twenty_levels_and_no_more(client: Client, page: Placed) -> None:
    await put(client, page, [DEEP])
    answer = await client.put(page.path, json={"blocks": [words("one more", children=[DEEP])]})
    assert answer.status_code == 400
    assert "20 levels" in answer.json()["message"]


LINK = {"text": [{"text": "x", "link": "https://example.test/a"}]}


@pytest.mark.parametrize(
    ("block", "path"),
    [
        ({"kind": "banner"}, "kind"),
        ({"kind": 5}, "kind"),
        ({"kind": "sticky", "x": 0, "y": 0, "w": 1, "h": 1}, "kind"),
        ({"kind": "column"}, "kind"),
        ({"kind": "column_list", "children": [{"kind": "paragraph"}]}, "children.0.kind"),
        ({"kind": "divider", "children": [{"kind": "paragraph"}]}, "children.0.kind"),
        ({"kind": "paragraph", "content": []}, "content"),
        ({"kind": "paragraph", "content": {"text": 5}}, "content.text"),
        ({"kind": "paragraph", "content": {"texts": []}}, "content.texts"),
        ({"kind": "paragraph", "content": {"text": [{"text": 1}]}}, "content.text.0.text"),
        ({"kind": "paragraph", "content": {"text": [{}]}}, "content.text.0.text"),
        ({"kind": "paragraph", "content": {"color": "RED; drop"}}, "content.color"),
        ({"kind": "paragraph", "x": 1}, "x"),
        ({"kind": "paragraph", "position": 1}, "position"),
        ({"kind": "paragraph", "order": "1"}, "order"),
        ({"kind": "paragraph", "id": "1"}, "id"),
        ({"kind": "to_do", "content": {"checked": "yes"}}, "content.checked"),
        ({"kind": "image", "content": {}}, "content"),
        ({"kind": "image", "content": {"url": "javascript:alert(1)"}}, "content.url"),
        ({"kind": "embed", "content": {"url": "data:text/html,x"}}, "content.url"),
        ({"kind": "embed", "content": {"url": "https://a b"}}, "content.url"),
        ({"kind": "embed", "content": {"url": "https:\\\\evil.test"}}, "content.url"),
        ({"kind": "bookmark", "content": {"url": "mailto:a@b.test"}}, "content.url"),
        ({"kind": "record_link", "content": {"recordId": "x"}}, "content.recordId"),
        ({"kind": "table", "content": {"rows": [[[]], [[], []]]}}, "content"),
        ({"kind": "table", "content": {"rows": []}}, "content.rows"),
        ({"kind": "code", "content": {"code": "x" * 60_001}}, "content.code"),
        (
            {"kind": "table", "content": {"rows": [[[{"text": "x" * 9_000}]] * 10]}},
            "content",
        ),
        (
            {"kind": "quote", "content": {"text": [{"text": "x", "link": "ftp://a.test"}]}},
            "content.text.0.link",
        ),
        (
            {"kind": "quote", "content": {"text": [{"text": "x", "mention": {}}]}},
            "content.text.0.mention",
        ),
    ],
    ids=lambda value: value.replace(".", "-") if isinstance(value, str) else value["kind"],
)
async def test_a_bad_block_is_refused_at_its_place(
    client: Client, page: Placed, block: dict[str, Any], path: str
) -> None:
    answer = await client.put(page.path, json={"blocks": [words("fine"), block]})
    assert answer.status_code == 400, answer.text
    assert answer.json()["details"][0]["path"] == f"blocks.1.{path}"
    added = await client.post(f"{page.path}/blocks", json={"blocks": [words("fine"), block]})
    assert added.status_code == 400
    assert (await read(client, page))["version"] == 1


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b'{"blocks": {}}',
        b'{"blocks": [], "name": "x"}',
        b'{"blocks": [], "expectedVersion": "1"}',
        b'{"blocks": [], "expectedVersion": 0}',
        b'{"blocks": [], "settings": []}',
        b'{"blocks": [{"kind": "code", "content": {"code": "\\u0000"}}]}',
        b'{"blocks": [{"kind": "code", "content": {"code": "\\ud800"}}]}',
        b'{"blocks": [{"kind": "paragraph", "order": 1e999}]}',
        b'{"blocks": [{"kind": "paragraph", "order": 1e300}]}',
    ],
)
async def test_a_bad_body_changes_nothing(client: Client, page: Placed, body: bytes) -> None:
    headers = {"Content-Type": "application/json"}
    assert (await client.put(page.path, content=body, headers=headers)).status_code == 400
    assert (await read(client, page))["version"] == 1


async def test_settings_are_bounded(client: Client, page: Placed) -> None:
    deep: Any = {}
    for _ in range(20):
        deep = {"a": deep}
    for settings in ({"a": "x" * 70_000}, deep):
        answer = await client.put(page.path, json={"blocks": [], "settings": settings})
        assert answer.status_code == 400
        assert answer.json()["details"][0]["path"] == "settings"


@pytest.mark.long
async def test_a_surface_holds_5000_blocks_and_8_mib(client: Client, page: Placed) -> None:
    divider = {"kind": "divider"}
    answer = await client.put(page.path, json={"blocks": [words("x"), *[divider] * 4_999]})
    assert answer.status_code == 200
    more = await client.post(f"{page.path}/blocks", json={"blocks": [divider]})
    assert (more.status_code, more.json()["details"][0]["path"]) == (400, "blocks")
    nested = [{"kind": "toggle", "children": [divider] * 2_500}] * 2
    answer = await client.put(page.path, json={"blocks": nested})
    assert (answer.status_code, answer.json()["details"][0]["path"]) == (400, "blocks")
    assert (await read(client, page))["version"] == 2
    big = {"kind": "code", "content": {"code": "x" * 60_000}}
    await put(client, page, [big] * 130)
    more = await client.post(f"{page.path}/blocks", json={"blocks": [big] * 11})
    assert more.status_code == 400
    assert "8 MiB" in more.json()["message"]


CANVAS_FRAME = {"x": -10.5, "y": 2, "w": 100, "h": 50}


async def test_a_canvas_has_places_and_connectors(client: Client, space: Space) -> None:
    canvas = await make_surface(space, "canvas")
    one, two = str(uuid4()), str(uuid4())
    found = await put(
        client,
        canvas,
        [
            {"id": one, "kind": "sticky", "content": {"color": "yellow"}, **CANVAS_FRAME},
            {"id": two, "kind": "shape", "content": {"shape": "ellipse"}, **CANVAS_FRAME},
            {
                "kind": "connector",
                "content": {"from": {"blockId": one}, "to": {"blockId": two}},
            },
            {"kind": "frame", **CANVAS_FRAME, "children": [{"kind": "text", **CANVAS_FRAME}]},
        ],
    )
    sticky, _, connector, _ = found["blocks"]
    assert {key: sticky[key] for key in "xywh"} == CANVAS_FRAME
    assert "x" not in connector
    assert connector["content"]["from"] == {"blockId": one}
    for content in (
        {"from": {"blockId": str(uuid4())}, "to": {"x": 1, "y": 1}},
        {"from": {"x": 0, "y": 0}, "to": {"blockId": str(uuid4())}},
    ):
        block = {"kind": "connector", "content": content}
        for answer in (
            await client.put(canvas.path, json={"blocks": [block]}),
            await client.post(f"{canvas.path}/blocks", json={"blocks": [block]}),
        ):
            assert answer.status_code == 404


@pytest.mark.parametrize("side", ["x", "y", "w", "h"])
async def test_a_canvas_needs_every_side(client: Client, space: Space, side: str) -> None:
    canvas = await make_surface(space, "canvas")
    frame = {key: value for key, value in CANVAS_FRAME.items() if key != side}
    answer = await client.put(canvas.path, json={"blocks": [{"kind": "sticky", **frame}]})
    assert answer.json()["details"][0]["path"] == f"blocks.0.{side}"


async def test_a_dashboard_has_a_grid_of_twelve_columns(client: Client, space: Space) -> None:
    dashboard = await make_surface(space, "dashboard")
    text = {"kind": "text", "x": 0, "y": 0, "w": 12, "h": 1}
    found = await put(client, dashboard, [text] * 50)
    assert found["blocks"][0]["w"] == 12
    answer = await client.put(dashboard.path, json={"blocks": [text] * 51})
    assert answer.status_code == 400
    answer = await client.post(f"{dashboard.path}/blocks", json={"blocks": [text]})
    assert (answer.status_code, answer.json()["details"][0]["path"]) == (400, "blocks")
    change: Any
    for change, path in [
        ({"x": 1}, "w"),
        ({"x": 0.5}, "x"),
        ({"x": -1}, "x"),
        ({"x": 12}, "x"),
        ({"w": 0}, "w"),
        ({"h": 101}, "h"),
        ({"y": 10_001}, "y"),
        ({"h": None}, "h"),
        ({"children": [text]}, "children.0.kind"),
    ]:
        answer = await client.put(dashboard.path, json={"blocks": [{**text, **change}]})
        assert answer.status_code == 400, change
        assert answer.json()["details"][0]["path"] == f"blocks.0.{path}"


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


async def test_plain_words_are_one_span(client: Client, page: Placed) -> None:
    body = {"blocks": [{"kind": "paragraph", "content": {"text": "plain"}}]}
    added = (await client.post(f"{page.path}/blocks", json=body)).json()["data"]
    assert added["blocks"][0]["content"]["text"] == [{"text": "plain"}]
