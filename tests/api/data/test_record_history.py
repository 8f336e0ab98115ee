"""The history of records over HTTP: what changed, by whom, newest first, and nothing else."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
import pytest_asyncio
from sqlalchemy import func, select, update

from models.core.access.rules import Role, Scope
from models.data.record_changes.history import CHANGE
from models.data.record_changes.rules import MAX_KEPT
from models.data.records import write
from models.data.records.tables import record
from models.messages.workspace_events.log import workspace_event
from runtime.ids import least_id
from tests.support.client import Client
from tests.support.spaces import Space

FIELDS = [
    {"label": "Price", "kind": "number"},
    {"label": "Note", "kind": "long_text"},
    {"label": "Anything", "kind": "json"},
]


@pytest_asyncio.fixture
async def records(client: Client, space: Space) -> str:
    """The path of the records of a new database."""
    answer = await client.post(
        f"{space.path}/databases", json={"label": "Things", "fields": FIELDS}
    )
    return f"/v1/databases/{answer.json()['data']['id']}/records"


async def create(client: Client, records: str, **body: Any) -> Any:
    answer = await client.post(records, json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()["data"]


async def history(client: Client, record: Any, **query: str) -> Any:
    answer = await client.get(f"/v1/records/{record['id']}/history", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


async def test_every_change_is_kept_with_its_values(
    client: Client, space: Space, records: str
) -> None:
    made = await create(client, records, title="A", data={"price": 1, "note": "n"})
    path = f"/v1/records/{made['id']}"
    editor_id, token = await space.member(Role.EDITOR)
    editor = client.with_token(token)
    await editor.patch(path, json={"title": "B", "data": {"price": None, "anything": {"a": [1]}}})
    await editor.post(f"{path}/archive")
    await client.post(f"{path}/restore")
    await client.delete(path)
    await client.post(f"{path}/restore")
    shown = (await history(client, made))["changes"]
    assert [one["kind"] for one in shown] == [
        "restored", "deleted", "restored", "archived", "updated", "created",
    ]  # fmt: skip
    created, updated = shown[5], shown[4]
    assert "before" not in created
    assert created["after"] == {"title": "A", "price": 1, "note": "n"}
    assert created["at"] == made["createdAt"]
    assert (created["actorUserId"], created["principalType"]) == (str(space.user_id), "api_key")
    assert updated["before"] == {"title": "A", "price": 1}
    assert updated["after"] == {"title": "B", "anything": {"a": [1]}}
    assert sorted(updated["changedKeys"]) == ["anything", "price", "title"]
    assert updated["actorUserId"] == str(editor_id)
    assert [one["changedKeys"] for one in shown[:4]] == [[], [], [], []]
    assert len({one["id"] for one in shown}) == 6


async def test_a_write_without_a_change_leaves_no_trace(client: Client, records: str) -> None:
    data = {"price": 5, "anything": {"a": 1, "b": [True]}}
    made = await create(client, records, title="A", data=data)
    path = f"/v1/records/{made['id']}"
    for body in (
        {},
        {"title": "A"},
        {"data": {"price": 5.0, "anything": {"b": [True], "a": 1}, "note": None}},
        {"archived": False},
    ):
        answer = await client.patch(path, json=body, headers={"If-Match": made["updatedAt"]})
        assert (answer.status_code, answer.json()["data"]) == (200, made)
    for way in ("archive", "archive", "restore", "restore"):
        assert (await client.post(f"{path}/{way}")).status_code == 200
    shown = (await history(client, made))["changes"]
    assert [one["kind"] for one in shown] == ["restored", "archived", "created"]
    answer = await client.patch(path, json={"data": {"anything": {"a": True, "b": [True]}}})
    assert answer.json()["data"]["data"]["anything"] == {"a": True, "b": [True]}
    assert (await history(client, made))["changes"][0]["changedKeys"] == ["anything"]


async def test_values_too_long_to_keep_are_named(client: Client, records: str) -> None:
    made = await create(client, records, title="A", data={"price": 1})
    for note in ("x" * MAX_KEPT, "short"):
        data = {"note": note, "price": len(note)}
        await client.patch(f"/v1/records/{made['id']}", json={"data": data})
    shorter, longer, _ = (await history(client, made))["changes"]
    assert (longer["after"], longer["omittedKeys"]) == ({"price": MAX_KEPT}, ["note"])
    assert (shorter["after"], shorter["omittedKeys"]) == ({"price": 5}, ["note"])
    assert set(longer["changedKeys"]) == set(shorter["changedKeys"]) == {"price", "note"}


async def test_history_is_paged_newest_first(client: Client, records: str) -> None:
    made = await create(client, records)
    other = await create(client, records)
    for price in range(6):
        await client.patch(f"/v1/records/{made['id']}", json={"data": {"price": price}})
    found: list[Any] = []
    query: dict[str, str] = {"limit": "3"}
    while True:
        page = await history(client, made, **query)
        found += page["changes"]
        if page["cursor"] is None:
            break
        query["cursor"] = page["cursor"]
    assert [one["after"]["price"] for one in found[:6]] == [5, 4, 3, 2, 1, 0]
    assert len(found) == 7
    answer = await client.get(f"/v1/records/{other['id']}/history", params=query)
    assert (answer.status_code, answer.json()["details"][0]["path"]) == (400, "cursor")


async def test_values_without_access_are_left_out(
    client: Client, space: Space, records: str
) -> None:
    people = await client.post(f"{space.path}/databases", json={"label": "People"})
    detail = people.json()["data"]
    relation = {"label": "Owner", "kind": "relation", "settings": {"databaseId": detail["id"]}}
    fields = records.replace("/records", "/fields")
    made_field = (await client.post(fields, json=relation)).json()["data"]
    ann = await create(client, f"/v1/databases/{detail['id']}/records", title="Ann")
    made = await create(client, records, title="A", relations={"owner": [ann["id"]]})
    access = {"accessMode": "restricted", "grants": []}
    await client.put(f"/v1/items/{detail['itemId']}/access", json=access)
    _, token = await space.member(Role.VIEWER)
    for caller, seen in ((client, [ann["id"]]), (client.with_token(token), [])):
        (change,) = (await history(caller, made))["changes"]
        assert change["after"] == {"title": "A", "owner": seen}
    await client.delete(f"{fields}/{made_field['id']}")
    (change,) = (await history(client, made))["changes"]
    assert (change["after"], change["changedKeys"]) == ({"title": "A"}, ["title"])


async def test_a_caller_without_access_to_the_record_sees_no_history(
    client: Client, space: Space, foreign: Space, records: str
) -> None:
    made = await create(client, records)
    path = f"/v1/records/{made['id']}/history"
    _, viewer = await space.member(Role.VIEWER)
    assert (await client.with_token(viewer).get(path)).status_code == 200
    unscoped = await space.key([scope for scope in Scope if scope != Scope.RECORDS_READ])
    assert (await client.with_token(unscoped).get(path)).status_code == 403
    other = client.with_token(foreign.token)
    unknown = await other.get(f"/v1/records/{uuid4()}/history")
    found = await other.get(path)
    assert (found.status_code, found.content) == (404, unknown.content)
    await client.delete(f"/v1/records/{made['id']}")
    assert (await client.get(path)).status_code == 404


async def _stored(space: Space, record: Any) -> tuple[int, list[str]]:
    """The number of written changes of a record, and the kinds of its events."""
    written = select(func.count()).where(CHANGE.record_id == UUID(record["id"]))
    told = select(workspace_event.c.type).where(
        workspace_event.c.data["recordId"].astext == record["id"]
    )
    async with space.database.transaction() as work:
        kinds = await work.rows(told.order_by(workspace_event.c.seq))
        return await work.scalar(written), [row.type for row in kinds]


async def test_a_creation_is_written_by_the_first_change(
    client: Client, space: Space, records: str
) -> None:
    made = await create(client, records, title="A", data={"price": 1})
    (creation,) = (await history(client, made))["changes"]
    assert creation["after"] == {"title": "A", "price": 1}
    assert await _stored(space, made) == (0, ["record.created"])
    _, token = await space.member(Role.EDITOR)
    await client.with_token(token).patch(f"/v1/records/{made['id']}", json={"title": "B"})
    updated, created = (await history(client, made))["changes"]
    assert created == creation
    assert updated["before"] == {"title": "A"}
    assert await _stored(space, made) == (2, ["record.created", "record.updated"])


async def test_a_creation_by_a_clock_that_is_ahead_comes_first(
    client: Client, records: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ahead = UUID(int=least_id(datetime.now(UTC) + timedelta(hours=1)).int + 1)
    monkeypatch.setattr(write, "new_id", lambda: ahead)
    made = await create(client, records, title="A")
    assert made["id"] == str(ahead)
    await client.patch(f"/v1/records/{made['id']}", json={"title": "B"})
    shown = (await history(client, made))["changes"]
    assert [one["kind"] for one in shown] == ["updated", "created"]


async def test_a_writer_that_tells_no_creation_loses_none(
    client: Client, space: Space, records: str
) -> None:
    made = await create(client, records, title="A", data={"price": 1})
    shown = await history(client, made)
    own = record.c.id == UUID(made["id"])
    async with space.database.transaction() as work:
        await work.execute(update(record).where(own).values(title="B", data={"price": 2}))
    assert await history(client, made) == shown
    assert await _stored(space, made) == (1, ["record.created"])
