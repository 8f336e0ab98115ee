"""Items over HTTP as a tree: moved, archived, deleted and brought back."""

import asyncio
from datetime import timedelta
from uuid import UUID, uuid4

from sqlalchemy import select, update

from models.content.items.joins import item
from models.core.access.rules import Role, Scope
from tests.support.client import Client
from tests.support.items import children, make, make_item, read, refused, titles
from tests.support.spaces import Space


async def test_deleting_items_below_needs_their_scopes(client: Client, space: Space) -> None:
    folder = await make_item(client)
    page = await make_item(client, "page", folder, kind="page")
    bare = client.with_token(await space.key([Scope.RESOURCES_READ, Scope.RESOURCES_WRITE]))
    for path in (folder["id"], page["id"]):
        answer = await bare.delete(f"/v1/items/{path}")
        assert refused(answer) == (403, "denied")
        assert "surfaces:write" in answer.json()["message"]
    for verb in ("archive", "restore", "duplicate"):
        answer = await bare.post(f"/v1/items/{page['id']}/{verb}")
        assert refused(answer) == (403, "denied"), verb
    move = {"parentItemId": None}
    assert refused(await bare.post(f"/v1/items/{page['id']}/move", json=move)) == (403, "denied")
    assert refused(await bare.patch(f"/v1/items/{page['id']}", json={"title": "x"})) == (
        403,
        "denied",
    )
    assert await children(client, folder) == [page]


async def test_moves_take_the_subtree_along(client: Client) -> None:
    a, b = await make_item(client, "a"), await make_item(client, "b")
    below = await make_item(client, "below", a)
    leaf = await make_item(client, "leaf", below)
    path = f"/v1/items/{below['id']}/move"
    moved = read(await client.post(path, json={"parentItemId": b["id"]}))
    assert (moved["parentItemId"], moved["order"]) == (b["id"], 0)
    assert await titles(client, below) == ["leaf"]
    assert await titles(client, a) == []
    moved = read(await client.post(path, json={"parentItemId": None, "order": -3}))
    assert moved["parentItemId"] is None
    assert await titles(client) == ["below", "a", "b"]
    for target in (below, leaf):
        answer = await client.post(path, json={"parentItemId": target["id"]})
        assert refused(answer) == (400, "validation_error")
        assert answer.json()["details"][0]["path"] == "parentItemId"
    for body, place in (({}, "parentItemId"), ({"parentItemId": None, "order": None}, None)):
        answer = await client.post(path, json=body)
        assert answer.status_code == (200 if place is None else 400)


async def test_two_moves_cannot_make_a_circle(client: Client) -> None:
    for _ in range(5):
        a, b = await make_item(client, "a"), await make_item(client, "b")
        answers = await asyncio.gather(
            client.post(f"/v1/items/{a['id']}/move", json={"parentItemId": b["id"]}),
            client.post(f"/v1/items/{b['id']}/move", json={"parentItemId": a["id"]}),
        )
        assert sorted(answer.status_code for answer in answers) == [200, 400]


async def test_nothing_is_made_below_what_goes_to_the_trash(client: Client, space: Space) -> None:
    for _ in range(5):
        folder = await make_item(client, "folder")
        body = {"kind": "folder", "title": "x", "parentItemId": folder["id"]}
        made, gone = await asyncio.gather(
            client.post("/v1/items", json=body), client.delete(f"/v1/items/{folder['id']}")
        )
        assert gone.status_code == 200
        assert made.status_code in {201, 404}
    async with space.database.transaction() as work:
        above = item.alias("above")
        orphans = await work.rows(
            select(item.c.id)
            .join(above, above.c.id == item.c.parent_item_id)
            .where(item.c.workspace_id == space.id, item.c.deleted_at.is_(None))
            .where(above.c.deleted_at.is_not(None))
        )
    assert orphans == []


async def test_the_tree_has_a_bottom(client: Client) -> None:
    deepest = await make_item(client, "1")
    for level in range(2, 51):
        deepest = await make_item(client, str(level), deepest)
    body = {"kind": "folder", "title": "x", "parentItemId": deepest["id"]}
    assert refused(await client.post("/v1/items", json=body)) == (400, "validation_error")
    other = await make_item(client, "other")
    move = {"parentItemId": deepest["id"]}
    answer = await client.post(f"/v1/items/{other['id']}/move", json=move)
    assert refused(answer) == (400, "validation_error")


async def test_archiving_is_a_flag(client: Client) -> None:
    made = await make_item(client)
    path = f"/v1/items/{made['id']}"
    archived = read(await client.post(f"{path}/archive"))
    assert archived["archived"] is True
    assert read(await client.post(f"{path}/archive")) == archived
    assert read(await client.get(path)) == archived
    assert await titles(client) == []
    assert await titles(client, archived="true") == ["Thing"]
    back = read(await client.post(f"{path}/restore"))
    assert back["archived"] is False
    assert read(await client.post(f"{path}/restore")) == back
    assert await titles(client) == ["Thing"]


async def test_deletion_answers_the_shape_of_the_interface(client: Client, space: Space) -> None:
    folder = await make_item(client, "folder")
    gone = read(await client.delete(f"/v1/items/{folder['id']}"))
    assert gone.keys() == {"item"}
    assert gone["item"]["id"] == folder["id"]
    made = await make(
        client, "database", "Tasks", config={"fields": [{"label": "Done", "kind": "checkbox"}]}
    )
    gone = read(await client.delete(f"/v1/items/{made['item']['id']}"))
    assert gone["item"]["targetId"] == made["target"]["id"]
    assert gone["database"] == {"fields": made["target"]["fields"]}
    assert "file" not in gone
    path = f"{space.path}/databases/{made['target']['id']}"
    unknown = await client.get(f"{space.path}/databases/{uuid4()}")
    hidden = await client.get(path)
    assert (hidden.status_code, hidden.content) == (404, unknown.content)


async def test_an_item_in_the_trash_is_hidden_and_can_be_restored(client: Client) -> None:
    folder = await make_item(client, "folder")
    early, late = await make_item(client, "early", folder), await make_item(client, "late", folder)
    leaf = await make_item(client, "leaf", late, kind="database")
    read(await client.delete(f"/v1/items/{early['id']}"))
    read(await client.delete(f"/v1/items/{folder['id']}"))
    unknown = await client.get(f"/v1/items/{uuid4()}")
    for one in (folder, early, late, leaf):
        hidden = await client.get(f"/v1/items/{one['id']}")
        assert (hidden.status_code, hidden.content) == (404, unknown.content)
    assert read(await client.get("/v1/items"))["items"] == []
    assert refused(await client.delete(f"/v1/items/{folder['id']}")) == (404, "not_found")
    for one in (early, late, leaf):
        answer = await client.post(f"/v1/items/{one['id']}/restore")
        assert refused(answer) == (409, "conflict")
    back = read(await client.post(f"/v1/items/{folder['id']}/restore"))
    assert back == {**folder, "updatedAt": back["updatedAt"]}
    assert await titles(client, folder) == ["late"]
    assert await titles(client, late) == ["leaf"]
    read(await client.post(f"/v1/items/{early['id']}/restore"))
    assert await titles(client, folder) == ["early", "late"]


async def test_the_trash_forgets_after_30_days(client: Client, space: Space) -> None:
    kept, lost = await make_item(client, "kept"), await make_item(client, "lost")
    for one, days in ((kept, 29.9), (lost, 30.1)):
        read(await client.delete(f"/v1/items/{one['id']}"))
        async with space.database.transaction() as work:
            moment = work.now - timedelta(days=days)
            await work.execute(
                update(item).where(item.c.id == UUID(one["id"])).values(deleted_at=moment)
            )
    unknown = await client.post(f"/v1/items/{uuid4()}/restore")
    answer = await client.post(f"/v1/items/{lost['id']}/restore")
    assert (answer.status_code, answer.content) == (404, unknown.content)
    assert read(await client.post(f"/v1/items/{kept['id']}/restore"))["title"] == "kept"


async def test_the_trash_shows_nothing_to_those_who_did_not_see_it(
    client: Client, space: Space
) -> None:
    private = await make_item(client, accessMode="restricted")
    read(await client.delete(f"/v1/items/{private['id']}"))
    _, token = await space.member(Role.EDITOR)
    editor = client.with_token(token)
    unknown = await editor.post(f"/v1/items/{uuid4()}/restore")
    answer = await editor.post(f"/v1/items/{private['id']}/restore")
    assert (answer.status_code, answer.content) == (404, unknown.content)
