"""Stored files from upload to trash (interface.md#trash)."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from fastapi import FastAPI
from sqlalchemy import delete, insert, select, update

from activities.maintenance.sweeps import sweep_orphans
from models.content.files.commands import purge_files
from models.content.files.queries import file
from models.content.items.joins import item, item_grant
from models.core.access.rules import Level, Role, Scope
from runtime.clock import utc_now
from runtime.configuration.settings import Settings
from runtime.ids import new_id
from runtime.object_store import ObjectStore
from tests.support.client import Client
from tests.support.files import objects, rows, stored, upload
from tests.support.spaces import Space


@pytest.fixture
def store(app: FastAPI) -> ObjectStore:
    """The store the application uses."""
    found: ObjectStore = app.state.services.store
    return found


async def place(space: Space, file_id: str, **values: Any) -> str:
    """An item for a file."""
    item_id = new_id()
    row = {
        "id": item_id,
        "workspace_id": space.id,
        "kind": "file",
        "target_id": file_id,
        "title": "placed",
        "position": 0,
        "metadata": {},
        "created_at": utc_now(),
        "updated_at": utc_now(),
        **values,
    }
    async with space.database.transaction() as work:
        await work.execute(insert(item).values(row))
    return str(item_id)


async def grant(space: Space, item_id: str, user_id: Any, level: Level) -> None:
    async with space.database.transaction() as work:
        values = {"workspace_id": space.id, "item_id": item_id, "user_id": user_id}
        now = {"created_at": work.now, "updated_at": work.now}
        await work.execute(insert(item_grant).values(**values, **now, level=int(level)))


async def test_a_file_from_upload_to_trash(client: Client, space: Space) -> None:
    made = await stored(
        client,
        space,
        b"a,b\r\n",
        params={"name": "table.csv"},
        headers={"Content-Type": "text/csv"},
    )
    assert made.keys() == {
        "fileId", "name", "mimeType", "byteSize", "downloadUrl", "createdAt",
    }  # fmt: skip
    assert (made["name"], made["mimeType"], made["byteSize"]) == ("table.csv", "text/csv", 5)
    assert made["downloadUrl"].startswith(f"/v1/assets/{made['fileId']}/")
    path = f"{space.path}/files/{made['fileId']}"
    assert (await client.get(path)).json() == {"data": made}
    listed = (await client.get(f"{space.path}/files")).json()["data"]
    assert listed == {"files": [made], "cursor": None}
    anybody = client.with_token(None)
    assert (await anybody.get(made["downloadUrl"])).content == b"a,b\r\n"

    assert (await client.delete(path)).json() == {"data": made}
    for answer in (await client.get(path), await client.delete(path)):
        assert answer.status_code == 404
    assert (await anybody.get(made["downloadUrl"])).status_code == 404
    assert (await client.get(f"{space.path}/files")).json()["data"]["files"] == []


async def test_lists_are_paged_newest_first(client: Client, space: Space) -> None:
    made = [(await stored(client, space, bytes([n])))["fileId"] for n in range(5)]
    seen: list[str] = []
    cursor = None
    while True:
        params = {"limit": "2"} | ({"cursor": cursor} if cursor else {})
        page = (await client.get(f"{space.path}/files", params=params)).json()["data"]
        assert len(page["files"]) <= 2
        seen += [one["fileId"] for one in page["files"]]
        cursor = page["cursor"]
        if cursor is None:
            break
    assert seen == made[::-1]


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("report.pdf", "report.pdf"),
        ("../../etc/passwd", "passwd"),
        ("C:\\Users\\me\\a.txt", "a.txt"),
        ("/", "file"),
        ("", "file"),
        ("..", "file"),
        ("  ", "file"),
        ("a\r\nSet-Cookie: b.txt", "aSet-Cookie: b.txt"),
        ("evil\u202egpj.exe", "evilgpj.exe"),
        ("e\u0301.txt", "\u00e9.txt"),
        ("日本語.txt", "日本語.txt"),
        ("x" * 300 + ".pdf", "x" * 251 + ".pdf"),
        ("x." + "y" * 300, "x." + "y" * 253),
    ],
)
async def test_file_names_are_cleaned(client: Client, space: Space, sent: str, kept: str) -> None:
    made = await stored(client, space, params={"name": sent})
    assert made["name"] == kept
    from urllib.parse import quote  # noqa: PLC0415

    by_header = await stored(client, space, headers={"X-File-Name": quote(sent, safe="")})
    assert by_header["name"] == kept


async def test_file_names_that_are_no_text_are_refused(client: Client, space: Space) -> None:
    for headers in ({"X-File-Name": "%ff%fe"}, [("X-File-Name", "a"), ("X-File-Name", "b")]):
        answer = await upload(client, space, headers=headers)
        assert answer.status_code == 400
        assert answer.json()["details"][0]["path"] == "X-File-Name"
    for query in ("name=%00", "name=%ff", "name=a&name=b", "other=1", f"name={'x' * 1001}"):
        answer = await client.post(f"{space.path}/files?{query}", content=b"x")
        assert answer.status_code == 400, query


@pytest.mark.parametrize(
    ("declared", "kept"),
    [
        ("image/PNG", "image/png"),
        ("text/plain; charset=utf-8", "text/plain; charset=utf-8"),
        ("text/html", "text/html"),
        ("nonsense", "application/octet-stream"),
        ("text/", "application/octet-stream"),
        ("text/plain, text/html", "application/octet-stream"),
        ("text/" + "x" * 300, "application/octet-stream"),
        ("", "application/octet-stream"),
    ],
)
async def test_types_are_kept_as_declared_if_they_are_types(
    client: Client, space: Space, declared: str, kept: str
) -> None:
    made = await stored(client, space, headers={"Content-Type": declared})
    assert made["mimeType"] == kept
    assert (await client.get(made["downloadUrl"])).headers["content-type"] == kept


async def test_files_of_others_are_unknown(client: Client, space: Space, foreign: Space) -> None:
    theirs = await stored(client.with_token(foreign.token), foreign)
    for method in ("GET", "DELETE"):
        answers = [
            await client.request(method, f"{space.path}/files/{file_id}")
            for file_id in (theirs["fileId"], new_id())
        ]
        assert [answer.status_code for answer in answers] == [404, 404]
        assert answers[0].content == answers[1].content
    assert (await upload(client, foreign)).status_code == 404


async def test_files_need_their_scopes_and_roles(client: Client, space: Space) -> None:
    made = await stored(client, space)
    path = f"{space.path}/files/{made['fileId']}"
    reader = client.with_token(await space.key([Scope.FILES_READ]))
    assert (await reader.get(path)).status_code == 200
    assert (await upload(reader, space)).status_code == 403
    assert (await reader.delete(path)).status_code == 403
    writer = client.with_token(await space.key([Scope.FILES_WRITE]))
    assert (await writer.get(path)).status_code == 403
    _, token = await space.member(Role.VIEWER)
    viewer = client.with_token(token)
    assert (await viewer.get(path)).status_code == 200
    assert (await viewer.delete(path)).status_code == 403
    user_id, token = await space.member(Role.GUEST)
    guest = client.with_token(token)
    assert (await guest.get(path)).status_code == 404
    assert (await guest.get(f"{space.path}/files")).json()["data"]["files"] == []
    assert (await upload(guest, space)).status_code == 403
    await grant(space, await place(space, made["fileId"]), user_id, Level.COMMENT)
    assert (await upload(guest, space)).status_code == 403
    other = await stored(client, space)
    await grant(space, await place(space, other["fileId"]), user_id, Level.EDIT)
    own = await stored(guest, space)
    assert (await guest.get(f"{space.path}/files/{own['fileId']}")).status_code == 200


async def test_a_placed_file_is_seen_where_its_item_is(client: Client, space: Space) -> None:
    made = await stored(client, space)
    path = f"{space.path}/files/{made['fileId']}"
    user_id, token = await space.member(Role.EDITOR)
    editor = client.with_token(token)
    item_id = await place(space, made["fileId"], access_mode="restricted")

    async def shown() -> tuple[int, int]:
        listed = (await editor.get(f"{space.path}/files")).json()["data"]["files"]
        return (await editor.get(path)).status_code, len(listed)

    assert await shown() == (404, 0)
    await grant(space, item_id, user_id, Level.VIEW)
    assert await shown() == (200, 1)
    assert (await editor.delete(path)).status_code == 403
    assert (await client.get(path)).status_code == 200


async def test_a_placed_file_goes_to_the_trash_with_its_item(client: Client, space: Space) -> None:
    made = await stored(client, space)
    item_id = await place(space, made["fileId"])
    assert (await client.delete(f"{space.path}/files/{made['fileId']}")).status_code == 200
    assert (await client.get(made["downloadUrl"])).status_code == 404
    async with space.database.transaction() as work:
        assert await work.scalar(select(item.c.deleted_at).where(item.c.id == item_id)) is not None
        restored = update(item).where(item.c.id == item_id)
        await work.execute(restored.values(deleted_at=None))
    assert (await client.get(made["downloadUrl"])).status_code == 200


async def test_a_folder_in_the_trash_stops_the_files_in_it(client: Client, space: Space) -> None:
    made = await stored(client, space)
    folder_id = await place(space, str(new_id()), kind="folder")
    await place(space, made["fileId"], parent_item_id=folder_id)
    assert (await client.get(made["downloadUrl"])).status_code == 200
    assert (await client.delete(f"/v1/items/{folder_id}")).status_code == 200
    assert (await client.get(made["downloadUrl"])).status_code == 404
    assert (await client.get(f"{space.path}/files")).json()["data"]["files"] == []


async def test_an_upload_repeated_under_its_key_is_one_file(
    client: Client, space: Space, settings: Settings
) -> None:
    key = {"Idempotency-Key": "once"}
    before = len(objects(settings))
    first = await upload(client, space, b"same", headers=key)
    again = await upload(client, space, b"same", headers=key)
    assert first.content == again.content
    assert again.headers["idempotency-replayed"] == "true"
    other = await upload(client, space, b"other", headers=key)
    assert (other.status_code, other.json()["error"]) == (422, "conflicting_mutation")
    renamed = await upload(client, space, b"same", headers={**key, "X-File-Name": "b"})
    assert renamed.status_code == 422
    assert await rows(space) == 1
    assert len(objects(settings)) == before + 1


async def test_one_of_many_uploads_under_one_key_wins(
    client: Client, space: Space, settings: Settings
) -> None:
    before = len(objects(settings))
    answers = await asyncio.gather(
        *(upload(client, space, b"x" * 9_000, headers={"Idempotency-Key": "k"}) for _ in range(8))
    )
    assert {answer.status_code for answer in answers} <= {201, 409}
    assert len({answer.content for answer in answers if answer.status_code == 201}) == 1
    assert await rows(space) == 1
    assert len(objects(settings)) == before + 1


async def test_the_trash_is_emptied_after_thirty_days(
    client: Client, space: Space, settings: Settings, store: ObjectStore
) -> None:
    database = space.database
    while await purge_files(database, store, utc_now() + timedelta(days=1)):
        pass  # what other tests left
    kept, direct, placed, copied = [await stored(client, space, bytes([n])) for n in range(4)]
    await place(space, placed["fileId"])
    for made in (direct, placed, copied):
        await client.delete(f"{space.path}/files/{made['fileId']}")
    async with database.transaction() as work:
        row = (await work.rows(select(file).where(file.c.id == copied["fileId"])))[0]
        copy = {**row._mapping, "id": new_id(), "deleted_at": None}
        await work.execute(insert(file).values(copy))
    before = len(objects(settings))
    now = utc_now()
    assert await purge_files(database, store, now - timedelta(days=1)) == 0
    assert await purge_files(database, store, now + timedelta(days=1)) == 3
    assert len(objects(settings)) == before - 2
    assert await rows(space) == 2
    assert (await client.get(kept["downloadUrl"])).status_code == 200


async def test_a_private_file_that_nothing_places_lasts_as_long_as_the_trash(
    client: Client, space: Space, store: ObjectStore
) -> None:
    database = space.database
    while await purge_files(database, store, utc_now() + timedelta(days=1)):
        pass  # what other tests left
    shared, alone, placed = [await stored(client, space, bytes([n])) for n in range(3)]
    async with database.transaction() as work:
        private = file.c.id.in_([alone["fileId"], placed["fileId"]])
        await work.execute(update(file).where(private).values(private=True))
    await place(space, placed["fileId"])
    now = utc_now()
    assert await purge_files(database, store, now - timedelta(days=1)) == 0
    assert (await client.get(alone["downloadUrl"])).status_code == 200
    assert await purge_files(database, store, now + timedelta(days=1)) == 1
    assert (await client.get(alone["downloadUrl"])).status_code == 404
    for kept in (shared, placed):
        assert (await client.get(kept["downloadUrl"])).status_code == 200


async def test_files_are_purged_a_few_at_a_time(
    client: Client, space: Space, settings: Settings, store: ObjectStore
) -> None:
    soon = utc_now() + timedelta(days=1)
    while await purge_files(space.database, store, soon):
        pass  # what other tests left
    before = len(objects(settings))
    for number in range(5):
        made = await stored(client, space, bytes([number]))
        await client.delete(f"{space.path}/files/{made['fileId']}")
    removed = [await purge_files(space.database, store, soon, 2) for _ in range(4)]
    assert removed == [2, 2, 1, 0]
    assert len(objects(settings)) == before


async def test_orphans_are_swept_when_they_are_a_day_old(
    client: Client, space: Space, store: ObjectStore
) -> None:
    database = space.database
    in_two_days = utc_now() + timedelta(days=2)
    await sweep_orphans(database, store, in_two_days)
    kept, orphan = await stored(client, space, b"kept"), await stored(client, space, b"orphan")
    async with database.transaction() as work:
        await work.execute(delete(file).where(file.c.id == orphan["fileId"]))
    assert await sweep_orphans(database, store, utc_now()) == 0
    assert await sweep_orphans(database, store, in_two_days) == 1
    assert await sweep_orphans(database, store, in_two_days) == 0
    assert (await client.get(kept["downloadUrl"])).content == b"kept"
