"""Duplicate database from the request to the answer, with real workers in between."""

import asyncio
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import func, select

from api.kernel.request import ApiRequest
from api.routers.data import databases as database_copies
from models.core.access.rules import Role, Scope
from models.data.database_copies import copying
from models.data.database_copies.copying import copy_records
from models.data.fields.tables import database as database_table
from models.data.records.tables import record
from runtime.errors import ConflictError
from tests.support.client import Client
from tests.support.copies import fill
from tests.support.engine import Engine
from tests.support.patience import eventually
from tests.support.spaces import Space

FIELDS = [{"label": "Code", "kind": "text"}, {"label": "Price", "kind": "number"}]


@pytest.fixture
async def source(client: Client, space: Space, engine: Engine) -> Any:
    """A database with the fields title, code and price; workers are running."""
    assert engine.database is space.database
    body = {"label": "Goods", "fields": FIELDS}
    return (await client.post(f"{space.path}/databases", json=body)).json()["data"]


async def copy(client: Client, space: Space, source: Any, **options: Any) -> Any:
    path = f"{space.path}/databases/{source['id']}/duplicate"
    return await client.post(path, **{"json": {}, **options})


async def count(space: Space, database_id: str) -> int:
    async with space.database.transaction() as work:
        found: int = await work.scalar(
            select(func.count()).where(record.c.database_id == UUID(database_id))
        )
        return found


@pytest.mark.long
@pytest.mark.parametrize("records", [0, 1_000, 20_000])
async def test_the_answer_is_the_whole_copy(
    client: Client, space: Space, source: Any, records: int
) -> None:
    await fill(space.database, space.id, UUID(source["id"]), records)
    answer = await copy(client, space, source, json={"includeRecords": True})
    assert answer.status_code == 200, answer.text
    made = answer.json()["data"]
    assert (made["label"], made.get("parentItemId")) == ("Goods copy", None)
    assert [one["key"] for one in made["fields"]] == ["title", "code", "price"]
    assert await count(space, made["id"]) == records
    read = await client.get(f"{space.path}/databases/{made['id']}")
    assert read.json()["data"] == made


async def test_without_a_body_the_copy_is_empty(client: Client, space: Space, source: Any) -> None:
    await fill(space.database, space.id, UUID(source["id"]), 10)
    answers = [await copy(client, space, source, json=None), await copy(client, space, source)]
    labels = [answer.json()["data"]["label"] for answer in answers]
    assert labels == ["Goods copy", "Goods copy 2"]
    for answer in answers:
        assert await count(space, answer.json()["data"]["id"]) == 0


@pytest.mark.parametrize("value", ["yes", "true", 1, None, []])
async def test_flags_are_truth_values(
    client: Client, space: Space, source: Any, value: Any
) -> None:
    answer = await copy(client, space, source, json={"includeRecords": value})
    assert answer.status_code == 400
    assert answer.json()["details"][0]["path"] == "includeRecords"


async def test_the_same_key_gives_the_same_copy(client: Client, space: Space, source: Any) -> None:
    await fill(space.database, space.id, UUID(source["id"]), 1_000)
    options = {"json": {"includeRecords": True}, "headers": {"Idempotency-Key": uuid4().hex}}
    answers = await asyncio.gather(*(copy(client, space, source, **options) for _ in range(4)))
    answers.append(await copy(client, space, source, **options))
    whole = {answer.content for answer in answers if answer.status_code == 200}
    assert len(whole) == 1
    assert {answer.status_code for answer in answers} == {200}
    assert await databases(space) == 2


@pytest.mark.long
async def test_calls_without_a_key_join_the_copy_that_is_being_made(
    client: Client, space: Space, source: Any
) -> None:
    await fill(space.database, space.id, UUID(source["id"]), 20_000)
    body = {"includeRecords": True}
    answers = await asyncio.gather(*(copy(client, space, source, json=body) for _ in range(4)))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.content for answer in answers}) == 1
    assert await databases(space) == 2
    # It was answered: the next call means another copy.
    assert (await copy(client, space, source)).json()["data"]["label"] == "Goods copy 2"


async def gone(_: ApiRequest) -> bool:
    return True


@pytest.mark.long
async def test_a_call_without_a_key_gets_the_copy_of_an_abandoned_call(
    client: Client, space: Space, source: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(space.database, space.id, UUID(source["id"]), 20_000)
    body = {"includeRecords": True}
    with monkeypatch.context() as patched:
        patched.setattr(ApiRequest, "is_disconnected", gone)
        with pytest.raises(AssertionError):  # there is no answer
            await copy(client, space, source, json=body)

    async def whole() -> bool:
        listed = await client.get(f"{space.path}/databases")
        return len(listed.json()["data"]["databases"]) == 2

    await eventually(whole, what="the copy")
    other = client.with_token(await space.key())
    assert (await copy(other, space, source)).json()["data"]["label"] == "Goods copy 2"
    late = await copy(client, space, source, json=body)
    assert late.json()["data"]["label"] == "Goods copy"
    assert await databases(space) == 3


async def test_a_member_who_reads_a_database_may_duplicate_it(
    client: Client, space: Space, source: Any
) -> None:
    made = await client.post("/v1/items", json={"kind": "folder", "title": "Closed"})
    folder = made.json()["data"]["item"]["id"]
    moved = {"parentItemId": folder}
    assert (await client.post(f"/v1/items/{source['itemId']}/move", json=moved)).status_code == 200
    user_id, token = await space.member(Role.EDITOR)
    grants = [{"userId": str(user_id), "level": "view"}]
    access = {"accessMode": "restricted", "grants": grants}
    assert (await client.put(f"/v1/items/{folder}/access", json=access)).status_code == 200
    editor = client.with_token(token)
    made = await copy(editor, space, source)
    assert made.status_code == 200, made.text
    shown = made.json()["data"]
    assert "parentItemId" not in shown
    assert shown["label"] == "Goods copy"
    colleague = client.with_token((await space.member(Role.EDITOR))[1])
    path = f"{space.path}/databases/{shown['id']}"
    assert (await editor.get(path)).status_code == 200
    assert (await colleague.get(path)).status_code == 404
    assert (await copy(client, space, source)).json()["data"]["parentItemId"] == folder


async def databases(space: Space) -> int:
    async with space.database.transaction() as work:
        found: int = await work.scalar(
            select(func.count()).where(database_table.c.workspace_id == space.id)
        )
        return found


@pytest.mark.long
async def test_a_slow_copy_is_answered_later(
    client: Client, space: Space, source: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(space.database, space.id, UUID(source["id"]), 20_000)
    monkeypatch.setattr(database_copies, "WAIT_SECONDS", 0.0)
    options = {"json": {"includeRecords": True}, "headers": {"Idempotency-Key": uuid4().hex}}
    early = await copy(client, space, source, **options)
    assert (early.status_code, early.json()["error"]) == (409, "in_progress")
    assert early.headers["retry-after"]

    async def whole() -> bool:
        return bool((await copy(client, space, source, **options)).status_code == 200)

    await eventually(whole, what="the copy")
    made = (await copy(client, space, source, **options)).json()["data"]
    assert await count(space, made["id"]) == 20_000
    assert await databases(space) == 2


@pytest.mark.long
async def test_a_copy_that_cannot_be_made_is_refused_and_leaves_nothing(
    client: Client, space: Space, source: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(space.database, space.id, UUID(source["id"]), 12_000)
    copied = 0

    async def copy_some(*arguments: Any) -> int:
        nonlocal copied
        copied += await copy_records(*arguments)
        if copied >= 10_000:
            raise ConflictError("Something cannot be copied.")
        return copied

    with monkeypatch.context() as broken:
        broken.setattr(copying, "copy_records", copy_some)
        body = {"includeRecords": True}
        refused = await copy(client, space, source, json=body)
    assert copied >= 10_000
    assert (refused.status_code, refused.json()["error"]) == (409, "conflict")
    assert refused.json()["message"] == "Something cannot be copied."
    assert await databases(space) == 1
    async with space.database.transaction() as work:
        records = select(func.count()).where(record.c.workspace_id == space.id)
        assert await work.scalar(records) == 12_000
    # It was answered: the same call is made anew.
    again = await copy(client, space, source, json=body)
    assert again.status_code == 200
    assert await count(space, again.json()["data"]["id"]) == 12_000


@pytest.mark.long
async def test_a_worker_that_loses_its_transactions_makes_one_whole_copy(
    client: Client, space: Space, source: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(space.database, space.id, UUID(source["id"]), 12_000)
    calls = 0

    async def copy_some(*arguments: Any) -> int:
        nonlocal calls
        calls += 1
        made = await copy_records(*arguments)
        if calls % 2:
            raise RuntimeError("the connection was lost before the commit")
        return made

    monkeypatch.setattr(copying, "copy_records", copy_some)
    answer = await copy(client, space, source, json={"includeRecords": True})
    assert answer.status_code == 200, answer.text
    assert calls == 6
    assert await count(space, answer.json()["data"]["id"]) == 12_000


@pytest.mark.long
async def test_editors_with_the_scope_duplicate_a_database(
    client: Client, space: Space, foreign: Space, source: Any
) -> None:
    viewer = client.with_token((await space.member(Role.VIEWER))[1])
    denied = await copy(viewer, space, source)
    assert (denied.status_code, denied.json()["error"]) == (403, "denied")
    editor = client.with_token((await space.member(Role.EDITOR))[1])
    assert (await copy(editor, space, source)).status_code == 200
    both = [Scope.DATABASES_READ, Scope.DATABASES_WRITE]
    for scopes, status in ((both[:1], 403), (both[1:], 403), (both, 200)):
        key = client.with_token(await space.key(scopes))
        assert (await copy(key, space, source)).status_code == status
    theirs = (await client.with_token(foreign.token).post(
        f"{foreign.path}/databases", json={"label": "F"}
    )).json()["data"]  # fmt: skip
    there = await copy(client, space, theirs)
    nowhere = await copy(client, space, {"id": str(uuid4())})
    assert there.status_code == nowhere.status_code == 404
    assert there.content == nowhere.content
