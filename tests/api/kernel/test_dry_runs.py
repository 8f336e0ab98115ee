"""`Prefer: dry-run`: a request is answered as it would be, with its changes, and keeps nothing."""

import asyncio
from typing import Any
from uuid import UUID

import httpx2
import pytest
from fastapi import FastAPI
from sqlalchemy import func, select, text, update

from api.kernel.request import prefers
from models.content.items.joins import item
from models.core.access.rules import Role, Scope
from models.people.request_logs import request_log
from models.tables import metadata
from models.workspace.changes.differences import REPORTED
from tests.support.client import Client
from tests.support.spaces import Space
from tests.support.triggers import Listening
from tests.support.watched import WatchedDatabase

DRY = {"Prefer": "dry-run"}


async def make(client: Client, space: Space) -> str:
    """The path of the records of a new database."""
    body = {"label": "Things", "fields": [{"label": "Part", "kind": "number"}]}
    answer = await client.post(f"{space.path}/databases", json=body)
    assert answer.status_code == 201, answer.text
    return f"/v1/databases/{answer.json()['data']['id']}/records"


async def titles(client: Client, records: str) -> list[str]:
    answer = await client.post(f"{records}/query", json={})
    return [one["title"] for one in answer.json()["data"]["records"]]


def changes(answer: httpx2.Response) -> Any:
    assert answer.is_success, answer.text
    assert answer.headers["Preference-Applied"] == "dry-run"
    return answer.json()["changes"]


@pytest.mark.parametrize(
    ("header", "is_dry_run"),
    [
        (b"dry-run", True),
        (b"wait=5, Dry-Run", True),
        (b'dry-run="yes"; strict', True),
        (b'foo="dry-run"', False),
        (b"dry-runs", False),
        (b"", False),
    ],
)
def test_the_preference_is_known_among_others(header: bytes, is_dry_run: bool) -> None:
    assert prefers("dry-run", [header]) is is_dry_run


async def test_a_created_record_is_answered_and_not_kept(client: Client, space: Space) -> None:
    records = await make(client, space)
    body: dict[str, Any] = {"title": "Bolt", "data": {"part": 7}}
    answer = await client.post(records, json=body, headers=DRY)
    assert answer.status_code == 201, answer.text
    tried = changes(answer)
    assert tried["counts"] == [
        {"kind": "record", "created": 1, "updated": 0, "deleted": 0, "restored": 0}
    ]
    (change,) = tried["resources"]
    assert change["after"] == {"title": "Bolt", "part": 7, "archived": False}
    assert await titles(client, records) == []
    real = (await client.post(records, json=body)).json()
    assert "changes" not in real
    assert await titles(client, records) == ["Bolt"]


async def test_a_change_and_a_deletion_have_both_sides(client: Client, space: Space) -> None:
    records = await make(client, space)
    body = {"title": "Bolt", "data": {"part": 7}}
    made = (await client.post(records, json=body)).json()["data"]
    path = f"/v1/records/{made['id']}"
    answer = await client.patch(path, json={"data": {"part": 8}}, headers=DRY)
    (change,) = changes(answer)["resources"]
    assert (change["operation"], change["changedKeys"]) == ("updated", ["part"])
    assert (change["before"], change["after"]) == ({"part": 7}, {"part": 8})
    (change,) = changes(await client.delete(path, headers=DRY))["resources"]
    assert (change["operation"], change["before"]["title"]) == ("deleted", "Bolt")
    assert "after" not in change
    assert (await client.get(path)).json()["data"]["data"]["part"] == 7


async def test_new_records_are_counted_and_the_first_are_listed(
    client: Client, space: Space
) -> None:
    records = await make(client, space)
    rows = [{"op": "create", "title": str(number)} for number in range(130)]
    answer = await client.post(f"{records}/batch", json={"operations": rows}, headers=DRY)
    tried = changes(answer)
    assert tried["counts"][0]["created"] == 130
    assert tried["omitted"] == 30
    shown = [one["after"] for one in tried["resources"]]
    assert shown == [{"title": str(number), "archived": False} for number in range(100)]


async def test_a_definition_has_both_sides(client: Client, space: Space) -> None:
    records = await make(client, space)
    database = records.removesuffix("/records")
    field = {"label": "Size", "kind": "text"}
    answer = await client.post(f"{database}/fields", json=field, headers=DRY)
    fields = [one for one in changes(answer)["resources"] if one["kind"] == "field"]
    assert [one["after"]["label"] for one in fields] == ["Size"]


async def test_a_key_stays_free_and_an_answered_one_is_replayed(
    client: Client, space: Space
) -> None:
    records = await make(client, space)
    keyed = {"Idempotency-Key": "k"}
    body = {"title": "Bolt"}
    first = await client.post(records, json=body, headers={**DRY, **keyed})
    assert changes(first)["counts"]
    other = await client.post(records, json={"title": "Nut"}, headers=keyed)
    assert (other.status_code, "Idempotency-Replayed" in other.headers) == (201, False)
    again = await client.post(records, json={"title": "Nut"}, headers={**DRY, **keyed})
    assert again.headers["Idempotency-Replayed"] == "true"
    assert again.json()["data"] == other.json()["data"]
    assert changes(again)["counts"] == []


async def test_a_refusal_is_that_of_the_request_and_not_stored(
    client: Client, space: Space
) -> None:
    records = await make(client, space)
    keyed = {"Idempotency-Key": "k"}
    wrong = {"title": "Bolt", "data": {"part": "many"}}
    refused = await client.post(records, json=wrong, headers={**DRY, **keyed})
    assert refused.status_code == 400
    kept = await client.post(records, json={"title": "Bolt"}, headers=keyed)
    assert kept.status_code == 201


async def test_tables_may_change_between_dry_runs_of_a_connection(
    client: Client, space: Space
) -> None:
    """PostgreSQL looks types of functions up again after a table was analyzed or altered."""
    records = await make(client, space)
    for _ in range(3):
        await asyncio.gather(
            *(client.post(records, json={"title": "Bolt"}, headers=DRY) for _ in range(4))
        )
        async with space.database.transaction() as work:
            await work.execute(text("ANALYZE record"))
    for _ in range(4):
        changes(await client.post(records, json={"title": "Bolt"}, headers=DRY))


async def test_automations_that_would_start_are_named(client: Client, space: Space) -> None:
    listening = await Listening.within(space.database, space.actor, keys=space.keys)
    at_once = await listening.automation("record_created")
    later = await listening.automation("record_created", debounceSeconds=60)
    await listening.automation("record_deleted")
    path = f"/v1/databases/{listening.table}/records"
    answer = await client.post(path, json={"title": "Bolt"}, headers=DRY)
    started = {one["automationId"]: one for one in changes(answer)["automations"]}
    assert started.keys() == {str(at_once), str(later)}
    assert (started[str(at_once)]["runs"], started[str(at_once)]["debounced"]) == (1, 0)
    assert (started[str(later)]["runs"], started[str(later)]["debounced"]) == (0, 1)


async def test_hidden_automations_are_not_named(client: Client, space: Space) -> None:
    listening = await Listening.within(space.database, space.actor, keys=space.keys)
    made = await listening.automation("record_created")
    _, token = await space.member(Role.EDITOR)
    editor = client.with_token(token)
    path = f"/v1/databases/{listening.table}/records"
    seen = await editor.post(path, json={"title": "Bolt"}, headers=DRY)
    assert [one["automationId"] for one in changes(seen)["automations"]] == [str(made)]
    async with space.database.transaction() as work:
        mine = item.c.workspace_id == space.id, item.c.target_id == made
        await work.execute(update(item).where(*mine).values(access_mode="restricted"))
    hidden = await editor.post(path, json={"title": "Bolt"}, headers=DRY)
    assert str(made) not in hidden.text
    assert changes(hidden)["automations"] == []
    assert changes(hidden)["work"] == []


async def test_a_key_sees_only_what_its_scopes_read(client: Client, space: Space) -> None:
    listening = await Listening.within(space.database, space.actor, keys=space.keys)
    await listening.automation("record_created")
    writer = client.with_token(await space.key([Scope.RECORDS_WRITE]))
    path = f"/v1/databases/{listening.table}/records"
    tried = changes(await writer.post(path, json={"title": "Bolt"}, headers=DRY))
    assert (tried["counts"], tried["automations"], tried["messages"]) == ([], [], [])


async def test_webhook_endpoints_that_would_be_called_are_named(
    client: Client, space: Space
) -> None:
    records = await make(client, space)
    endpoint = {"url": "https://example.com/hook", "eventTypes": ["record.created"]}
    made = await client.post(f"{space.path}/webhook-endpoints", json=endpoint)
    assert made.status_code == 201, made.text
    tried = changes(await client.post(records, json={"title": "Bolt"}, headers=DRY))
    assert tried["messages"] == [
        {
            "channel": "webhook",
            "kind": "record.created",
            "endpointId": made.json()["data"]["id"],
            "count": 1,
        }
    ]


async def test_secrets_are_never_among_the_values(client: Client, space: Space) -> None:
    key = {"name": "CI", "scopes": ["records:read"]}
    answer = await client.post(f"{space.path}/api-keys", json=key, headers=DRY)
    shown = {name for one in changes(answer)["resources"] for name in one["after"]}
    assert shown == {"name", "scopes"}


async def test_numbers_of_the_log_are_not_taken(client: Client, space: Space) -> None:
    records = await make(client, space)

    async def last() -> Any:
        async with space.database.transaction() as work:
            return await work.scalar(text("SELECT last_value FROM workspace_event_number"))

    before = await last()
    changes(await client.post(records, json={"title": "Bolt"}, headers=DRY))
    assert await last() == before


async def test_it_is_marked_in_the_log_of_requests(
    app: FastAPI, client: Client, space: Space
) -> None:
    records = await make(client, space)
    await client.post(records, json={"title": "Bolt"})
    await client.post(records, json={"title": "Bolt"}, headers=DRY)
    await app.state.services.request_log.flush()
    async with space.database.transaction() as work:
        marked = select(func.count()).where(
            request_log.c.workspace_id == space.id, request_log.c.dry_run
        )
        assert await work.scalar(marked) == 1
    listed = (await client.get(f"{space.path}/audit-log")).json()["data"]["entries"]
    # The audit log leaves it out, since it changed nothing.
    assert [one["path"] for one in listed].count(records) == 1
    assert not any(one["dryRun"] for one in listed)


async def test_no_process_is_notified(
    client: Client, space: Space, database: WatchedDatabase
) -> None:
    records = await make(client, space)
    told: list[object] = []
    before = database.notify_readers, database.notify_workers
    database.notify_readers, database.notify_workers = told.append, lambda: told.append("workers")
    try:
        changes(await client.post(records, json={"title": "Bolt"}, headers=DRY))
        assert told == []
        await client.post(records, json={"title": "Bolt"})
        assert told != []
    finally:
        database.notify_readers, database.notify_workers = before


async def test_a_lock_of_another_request_is_not_waited_for_long(
    client: Client, space: Space
) -> None:
    records = await make(client, space)
    made = (await client.post(records, json={"title": "Bolt"})).json()["data"]
    async with space.database.transaction() as work:
        record = metadata.tables["record"]
        mine = record.c.id == UUID(made["id"])
        await work.execute(select(record.c.id).where(mine).with_for_update())
        body = {"title": "Nut"}
        trying = client.patch(f"/v1/records/{made['id']}", json=body, headers=DRY)
        refused = await asyncio.wait_for(trying, 60)
    assert refused.status_code == 503, refused.text
    assert refused.json()["message"].startswith("The dry run took too long.")


async def test_a_read_has_nothing_to_try(client: Client) -> None:
    answer = await client.get("/v1/me", headers=DRY)
    assert answer.status_code == 200
    assert "Preference-Applied" not in answer.headers
    assert "changes" not in answer.json()


async def test_an_unknown_caller_is_refused_as_ever(client: Client, space: Space) -> None:
    records = await make(client, space)
    stranger = client.with_token("svc_sk_wrong")
    answer = await stranger.post(records, json={"title": "Bolt"}, headers=DRY)
    assert answer.status_code == 401


async def test_every_reported_kind_is_captured(space: Space) -> None:
    statement = text("SELECT tgrelid::regclass::text FROM pg_trigger WHERE tgname ~ :name")
    async with space.database.transaction() as work:
        rows = await work.rows(statement, {"name": "^capture_dry_run"})
    captured = {row[0] for row in rows}
    assert REPORTED.keys() <= captured
    columns = {name: metadata.tables[name].columns.keys() for name in REPORTED}
    for name, kind in REPORTED.items():
        assert {*kind.columns} | ({kind.owner} if kind.owner else set()) <= {*columns[name]}, name
