"""The same call twice has one effect and one answer (interface.md#idempotency)."""

import asyncio
from datetime import timedelta
from uuid import uuid4

import pytest
from sqlalchemy import func, select, update

from cli.supervisor.development import DevelopmentIssuer
from models.core.access.rules import Role
from models.core.idempotency import idempotency_reply
from models.people.users import app_user
from models.people.workspaces import add_member, workspace_member
from runtime.errors import InvalidError
from tests.api.kernel.conftest import REFUSALS
from tests.support.automations import path_of, publish
from tests.support.client import Client
from tests.support.spaces import Space
from tests.support.watched import WatchedDatabase


async def _effects(database: WatchedDatabase, name: str) -> int:
    """The number of probes that ran for this name; the probe's row has its last time."""
    async with database.transaction() as work:
        query = select(func.count()).where(app_user.c.subject == name)
        count: int = await work.scalar(query)
    return count


def _key(value: str) -> dict[str, str]:
    return {"Idempotency-Key": value}


async def test_a_repeated_call_gets_the_same_bytes(client: Client, space: Space) -> None:
    body = {"name": "once", "scopes": ["workspace:read"]}
    first = await client.post(f"{space.path}/api-keys", json=body, headers=_key("k"))
    again = await client.post(f"{space.path}/api-keys", json=body, headers=_key("k"))
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.content == first.content
    assert again.headers["content-type"] == first.headers["content-type"]
    assert again.headers["idempotency-replayed"] == "true"
    assert "idempotency-replayed" not in first.headers
    listed = await client.get(f"{space.path}/api-keys")
    assert len(listed.json()["data"]) == 2


async def test_order_and_spacing_of_keys_are_the_same_request(client: Client, space: Space) -> None:
    path = f"{space.path}/api-keys"
    headers = {**_key("k"), "Content-Type": "application/json"}
    first = await client.post(
        path, content=b'{"name":"a","scopes":["workspace:read"]}', headers=headers
    )
    again = await client.post(
        path, content=b' {"scopes": ["workspace:read"], "name": "a"}', headers=headers
    )
    assert again.content == first.content


async def test_fifty_at_once_have_one_effect(client: Client, space: Space) -> None:
    body = {"name": "crowd", "scopes": ["workspace:read"]}
    answers = await asyncio.gather(
        *(
            client.post(f"{space.path}/api-keys", json=body, headers=_key("crowd"))
            for _ in range(50)
        )
    )
    made = {answer.content for answer in answers if answer.status_code == 201}
    refused = [answer for answer in answers if answer.status_code != 201]
    assert len(made) == 1
    assert {(a.status_code, a.json()["error"]) for a in refused} <= {(409, "in_progress")}
    assert all(answer.headers["retry-after"] == "2" for answer in refused)
    listed = await client.get(f"{space.path}/api-keys")
    assert len(listed.json()["data"]) == 2


async def test_an_id_in_another_spelling_is_the_same_request(
    probes: Client, probe_path: str, space: Space, database: WatchedDatabase
) -> None:
    name = uuid4().hex
    first = await probes.post(probe_path, json={"name": name}, headers=_key(name))
    start, _, probed = probe_path.rpartition("/")
    for path in (
        f"{start}/{probed.upper()}",
        probe_path.replace(str(space.id), str(space.id).upper()),
        f"{start}/{probed.replace('-', '%2d').upper()}",
    ):
        again = await probes.post(path, json={"name": name}, headers=_key(name))
        assert (again.status_code, again.content) == (200, first.content)
        assert again.headers["idempotency-replayed"] == "true"
    assert await _effects(database, name) == 1


async def test_a_key_with_another_body_or_query_is_a_conflict(client: Client, space: Space) -> None:
    path = f"{space.path}/api-keys"
    await client.post(path, json={"name": "a", "scopes": ["ai:read"]}, headers=_key("k"))
    other = await client.post(
        path, json={"name": "b", "scopes": ["workspace:read"]}, headers=_key("k")
    )
    assert other.status_code == 422
    assert other.json()["_tag"] == "ApiConflictingMutation"


async def test_keys_are_each_callers_own(client: Client, space: Space, foreign: Space) -> None:
    body = {"name": "a", "scopes": ["workspace:read"]}
    mine = await client.post(f"{space.path}/api-keys", json=body, headers=_key("k"))
    other_principal = client.with_token(await space.key())
    theirs = await other_principal.post(f"{space.path}/api-keys", json=body, headers=_key("k"))
    elsewhere = await client.with_token(foreign.token).post(
        f"{foreign.path}/api-keys", json=body, headers=_key("k")
    )
    key_id = mine.json()["data"]["apiKey"]["id"]
    other_path = await client.delete(f"{space.path}/api-keys/{key_id}", headers=_key("k"))
    assert [mine.status_code, theirs.status_code, elsewhere.status_code] == [201, 201, 201]
    assert other_path.status_code == 200
    assert "idempotency-replayed" not in other_path.headers
    assert len({mine.content, theirs.content, elsewhere.content}) == 3


@pytest.mark.parametrize(
    "refusal",
    [
        *("validation_error", "invalid", "unauthorized", "denied", "not_found", "rate_limited"),
        *("payload_too_large", "unsupported_media_type", "in_progress", "upstream_error"),
        *("unavailable", "bug"),
    ],
)
async def test_a_correctable_refusal_leaves_nothing_and_frees_its_key(
    probes: Client, probe_path: str, database: WatchedDatabase, refusal: str
) -> None:
    name = uuid4().hex
    body = {"name": name, "raises": refusal}
    refused = await probes.post(probe_path, json=body, headers=_key(name))
    assert refused.status_code >= 400
    assert await _effects(database, name) == 0
    other = await probes.post(probe_path, json={"name": name}, headers=_key(name))
    assert other.status_code == 200
    assert await _effects(database, name) == 1


@pytest.mark.parametrize(
    "refusal", ["run_error", "conflict", "unsupported", "conflicting_mutation"]
)
async def test_a_refusal_by_the_state_stays_the_answer(
    probes: Client,
    probe_path: str,
    database: WatchedDatabase,
    monkeypatch: pytest.MonkeyPatch,
    refusal: str,
) -> None:
    name = uuid4().hex
    body = {"name": name, "raises": refusal}
    refused = await probes.post(probe_path, json=body, headers=_key(name))
    assert refused.status_code in {409, 422}
    assert "idempotency-replayed" not in refused.headers
    # The state that refused it changes.
    monkeypatch.setitem(REFUSALS, refusal, InvalidError)
    again = await probes.post(probe_path, json=body, headers=_key(name))
    assert (again.status_code, again.content) == (refused.status_code, refused.content)
    assert again.headers["idempotency-replayed"] == "true"
    assert await _effects(database, name) == 0
    other = await probes.post(probe_path, json={"name": name}, headers=_key(name))
    assert (other.status_code, other.json()["error"]) == (422, "conflicting_mutation")
    assert (await probes.post(probe_path, json=body)).status_code == 400


async def test_a_reply_is_replayed_until_its_window_ends(
    client: Client, space: Space, database: WatchedDatabase
) -> None:
    body = {"name": "a", "scopes": ["workspace:read"]}
    first = await client.post(f"{space.path}/api-keys", json=body, headers=_key("k"))
    async with database.transaction() as work:
        past = work.now - timedelta(milliseconds=1)
        await work.execute(update(idempotency_reply).values(expires_at=past))
    second = await client.post(f"{space.path}/api-keys", json=body, headers=_key("k"))
    third = await client.post(f"{space.path}/api-keys", json=body, headers=_key("k"))
    assert second.content != first.content
    assert third.content == second.content


async def test_a_caller_who_lost_access_gets_no_stored_reply(client: Client, space: Space) -> None:
    user_id, token = await space.member(Role.ADMIN)
    body = {"name": "a", "scopes": ["workspace:read"]}
    member = client.with_token(token)
    first = await member.post(f"{space.path}/api-keys", json=body, headers=_key("k"))
    assert first.status_code == 201
    await space.remove(user_id)
    again = await member.post(f"{space.path}/api-keys", json=body, headers=_key("k"))
    assert again.status_code == 404


async def test_stored_replies_are_encrypted(
    client: Client, space: Space, database: WatchedDatabase
) -> None:
    body = {"name": "a", "scopes": ["workspace:read"]}
    answer = await client.post(f"{space.path}/api-keys", json=body, headers=_key("k"))
    token = answer.json()["data"]["token"].encode()
    async with database.transaction() as work:
        filled = idempotency_reply.c.reply.is_not(None)
        stored = await work.rows(select(idempotency_reply.c.reply).where(filled))
    assert stored
    assert all(token not in row.reply for row in stored)


@pytest.mark.parametrize(
    "values", [[b""], [b" "], [b"x" * 256], [b"a\x01b"], [b"\xc3\xa9"], [b"a\x7f"], [b"a", b"a"]]
)
async def test_malformed_idempotency_keys_are_refused(
    client: Client, space: Space, values: list[bytes]
) -> None:
    headers = [(b"Idempotency-Key", value) for value in values]
    answer = await client.post(
        f"{space.path}/api-keys", json={"name": "a", "scopes": ["workspace:read"]}, headers=headers
    )
    assert answer.status_code == 400
    assert answer.json()["details"][0]["path"] == "Idempotency-Key"


async def test_the_longest_key_and_reads_that_ignore_it(client: Client, space: Space) -> None:
    longest = _key("x" * 255)
    body = {"name": "a", "scopes": ["workspace:read"]}
    made = await client.post(f"{space.path}/api-keys", json=body, headers=longest)
    assert made.status_code == 201
    assert (await client.get("/v1/me", headers=_key("x" * 999))).status_code == 200


async def _record(client: Client, space: Space) -> str:
    made = await client.post(f"{space.path}/databases", json={"label": "Deals"})
    records = f"/v1/databases/{made.json()['data']['id']}/records"
    record = await client.post(records, json={"title": "One"})
    return f"/v1/records/{record.json()['data']['id']}"


async def test_a_key_with_another_body_is_a_conflict_when_its_subject_is_gone(
    client: Client, space: Space
) -> None:
    record = await _record(client, space)
    first = await client.patch(record, json={"title": "Two"}, headers=_key("k"))
    await client.delete(record)
    again = await client.patch(record, json={"title": "Two"}, headers=_key("k"))
    other = await client.patch(record, json={"title": "Three"}, headers=_key("k"))
    unknown = await client.patch(record, json={"title": "Two"}, headers=_key("another"))
    invalid = await client.patch(record, json={"title": 3}, headers=_key("k"))
    assert (again.status_code, again.content) == (200, first.content)
    assert again.headers["idempotency-replayed"] == "true"
    assert (other.status_code, other.json()["error"]) == (422, "conflicting_mutation")
    assert [unknown.status_code, invalid.status_code] == [404, 404]


async def test_fifty_deletions_at_once_give_one_answer(client: Client, space: Space) -> None:
    record = await _record(client, space)
    answers = await asyncio.gather(
        *(client.delete(record, headers=_key("crowd")) for _ in range(50))
    )
    answers.append(await client.delete(record, headers=_key("crowd")))
    given = {answer.content for answer in answers if answer.is_success}
    refused = {(a.status_code, a.json()["error"]) for a in answers if not a.is_success}
    assert len(given) == 1
    assert refused <= {(409, "in_progress")}


async def test_a_grant_that_was_withdrawn_leaves_the_answer_and_nothing_new(
    client: Client, space: Space
) -> None:
    user_id, token = await space.member(Role.EDITOR)
    made = await client.post("/v1/items", json={"kind": "folder", "title": "Plans"})
    folder = f"/v1/items/{made.json()['data']['item']['id']}"
    grants = [{"userId": str(user_id), "level": "edit"}]
    closed = {"accessMode": "restricted", "grants": grants}
    assert (await client.put(f"{folder}/access", json=closed)).status_code == 200
    member = client.with_token(token)
    first = await member.patch(folder, json={"title": "Ours"}, headers=_key("k"))
    await client.put(f"{folder}/access", json={**closed, "grants": []})
    await client.patch(folder, json={"title": "Secret"})
    again = await member.patch(folder, json={"title": "Ours"}, headers=_key("k"))
    assert (first.status_code, again.content) == (200, first.content)
    assert (await member.patch(folder, json={"title": "Ours"})).status_code == 404


@pytest.mark.parametrize("lost", ["membership", "scope"])
async def test_a_caller_without_the_workspace_gets_no_stored_answer(
    client: Client, space: Space, foreign: Space, issuer: DevelopmentIssuer, lost: str
) -> None:
    """The path names no workspace, and the caller keeps all rights in another one."""
    record = await _record(client, space)
    user_id, _ = await space.member(Role.EDITOR)
    async with foreign.database.transaction() as work:
        await add_member(work, foreign.id, user_id, Role.EDITOR)
    member = client.with_token(await space.session(user_id, issuer))
    first = await member.delete(record, headers=_key("k"))
    again = await member.delete(record, headers=_key("k"))
    assert (first.status_code, again.content) == (200, first.content)
    if lost == "membership":
        await space.remove(user_id)
    else:
        async with space.database.transaction() as work:
            own = workspace_member.c.user_id == user_id, workspace_member.c.workspace_id == space.id
            await work.execute(update(workspace_member).where(*own).values(role=Role.VIEWER))
    assert (await member.delete(record, headers=_key("k"))).status_code == 404


async def test_a_revoked_key_gets_no_answer_of_what_is_gone(client: Client, space: Space) -> None:
    record = await _record(client, space)
    key = client.with_token(await space.key())
    assert (await key.delete(record, headers=_key("k"))).status_code == 200
    listed = (await client.get(f"{space.path}/api-keys")).json()["data"]
    (key_id,) = (one["id"] for one in listed if one["name"] == "another")
    await client.delete(f"{space.path}/api-keys/{key_id}")
    assert (await key.delete(record, headers=_key("k"))).status_code == 401


async def test_a_run_is_answered_again_after_its_automation_was_deleted(
    client: Client, space: Space
) -> None:
    path = path_of(await publish(client, space))
    first = await client.post(f"{path}/run", json={}, headers=_key("k"))
    await client.delete(path)
    again = await client.post(f"{path}/run", json={}, headers=_key("k"))
    body = {"triggerPayload": {"a": 1}}
    other = await client.post(f"{path}/run", json=body, headers=_key("k"))
    assert (first.status_code, again.content) == (200, first.content)
    assert (other.status_code, other.json()["error"]) == (422, "conflicting_mutation")
