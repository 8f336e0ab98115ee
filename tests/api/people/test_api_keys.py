"""API keys from creation to revocation, and the log of what was done (interface.md#api-keys)."""

from datetime import UTC, datetime, timedelta

import pytest
from fastapi import FastAPI
from sqlalchemy import update

from models.core.access.rules import Role, Scope
from models.people.api_keys import api_key
from runtime.clock import wire_timestamp
from tests.support.client import Client
from tests.support.spaces import Space


async def _create(client: Client, space: Space, **changes: object) -> dict[str, object]:
    body = {"name": "ci", "scopes": ["workspace:read"], **changes}
    answer = await client.post(f"{space.path}/api-keys", json=body)
    assert answer.status_code == 201, answer.text
    made: dict[str, object] = answer.json()["data"]
    return made


async def test_a_key_works_until_it_is_revoked(client: Client, space: Space) -> None:
    made = await _create(client, space)
    key, token = made["apiKey"], str(made["token"])
    assert isinstance(key, dict)
    assert token.startswith(key["prefix"])
    assert len(key["prefix"]) == 14
    assert key["boundUserId"] == key["createdByUserId"] == str(space.user_id)
    holder = client.with_token(token)
    assert (await holder.get(space.path)).json()["data"]["permissions"] == ["workspace:read"]

    path = f"{space.path}/api-keys/{key['id']}"
    assert (await client.delete(path)).json() == {"data": {"id": key["id"]}}
    assert (await holder.get(space.path)).status_code == 401
    first = (await client.get(f"{space.path}/api-keys")).json()["data"][0]["revokedAt"]
    assert (await client.delete(path)).status_code == 200
    listed = (await client.get(f"{space.path}/api-keys")).json()["data"]
    assert listed[0]["revokedAt"] == first is not None


async def test_secrets_are_shown_once(client: Client, space: Space) -> None:
    made = await _create(client, space)
    secret = str(made["token"])[14:]
    assert secret not in (await client.get(f"{space.path}/api-keys")).text
    assert space.token[14:] not in (await client.get(f"{space.path}/api-keys")).text


@pytest.mark.parametrize(
    "expires_at",
    [
        "2020-01-01T00:00:00Z",
        "9999-12-31T23:59:59-23:59",
        "9999-01-01T00:00:00Z",
        "1e18",
        "253402300800",
        253402300800,
        1e18,
        "2030-01-01T00:00:00",
        "2030-01-01",
        "2030-02-30T00:00:00Z",
        "tomorrow",
        "",
        True,
        {},
    ],
)
async def test_bad_expiries_are_refused(client: Client, space: Space, expires_at: object) -> None:
    body = {"name": "n", "scopes": ["workspace:read"], "expiresAt": expires_at}
    answer = await client.post(f"{space.path}/api-keys", json=body)
    assert answer.status_code == 400, answer.text
    assert answer.json()["details"][0]["path"] == "expiresAt"


async def test_now_is_no_expiry(client: Client, space: Space) -> None:
    body = {
        "name": "n",
        "scopes": ["workspace:read"],
        "expiresAt": wire_timestamp(datetime.now(UTC)),
    }
    assert (await client.post(f"{space.path}/api-keys", json=body)).status_code == 400


async def test_an_expiry_is_echoed_in_utc_and_kept(client: Client, space: Space) -> None:
    year = datetime.now(UTC).year + 1
    made = await _create(client, space, expiresAt=f"{year}-05-05T12:00:00.123456+02:00")
    assert made["apiKey"]["expiresAt"] == f"{year}-05-05T10:00:00.123Z"  # type: ignore[index]
    day = timedelta(days=1)
    short = await _create(client, space, expiresAt=wire_timestamp(datetime.now(UTC) + day))
    holder = client.with_token(str(short["token"]))
    assert (await holder.get("/v1/me")).status_code == 200
    async with space.database.transaction() as work:
        a_day_on = update(api_key).where(api_key.c.id == short["apiKey"]["id"])  # type: ignore[index]
        await work.execute(a_day_on.values(expires_at=api_key.c.expires_at - day))
    assert (await holder.get("/v1/me")).status_code == 401


async def test_a_key_gives_no_more_than_its_maker_has(client: Client, space: Space) -> None:
    keeper = await space.key([Scope.API_KEYS_WRITE, Scope.RECORDS_READ])
    path = f"{space.path}/api-keys"
    for scopes, status in ((["records:read"], 201), (["records:write"], 403)):
        body = {"name": "n", "scopes": scopes}
        assert (await client.with_token(keeper).post(path, json=body)).status_code == status
    _, admin = await space.member(Role.ADMIN)
    body = {"name": "n", "scopes": ["workspace:delete"]}
    denied = await client.with_token(admin).post(path, json=body)
    assert denied.status_code == 403
    assert "workspace:delete" in denied.json()["message"]


async def test_rights_follow_the_live_role(client: Client, space: Space) -> None:
    user_id, token = await space.member(Role.VIEWER)
    holder = client.with_token(token)
    permissions = (await holder.get(space.path)).json()["data"]["permissions"]
    assert "records:read" in permissions
    assert "records:write" not in permissions
    assert (await holder.get(f"{space.path}/api-keys")).status_code == 403
    await space.remove(user_id)
    assert (await holder.get(space.path)).status_code == 404
    assert (await holder.get("/v1/workspaces")).json()["data"]["workspaces"] == []
    assert (await holder.get("/v1/me")).status_code == 200


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"name": ""}, "name"),
        ({"name": "x" * 201}, "name"),
        ({"scopes": ["nope"]}, "scopes.0"),
        ({"scopes": "workspace:read"}, "scopes"),
        ({"scopes": None}, "scopes"),
        ({"scopes": []}, "scopes"),
        ({"scopes": ["workspace:read", "members:read", "workspace:read"]}, "scopes"),
        ({"boundUserId": "x"}, "boundUserId"),
        ({"revokedAt": None}, "revokedAt"),
        ({"expires_at": None}, "expires_at"),
    ],
)
async def test_bad_bodies_of_api_keys_are_refused(
    client: Client, space: Space, changes: dict[str, object], path: str
) -> None:
    body = {"name": "n", "scopes": ["workspace:read"], **changes}
    answer = await client.post(f"{space.path}/api-keys", json=body)
    assert answer.status_code == 400
    assert answer.json()["details"][0]["path"] == path


async def test_every_authenticated_call_is_logged_once(
    app: FastAPI, client: Client, space: Space, foreign: Space
) -> None:
    headers = {"Idempotency-Key": "log-1"}
    body = {"name": "n", "scopes": ["workspace:read"]}
    await client.get(f"{space.path}?x=secret")
    await client.post(f"{space.path}/api-keys", json=body, headers=headers)
    await client.get(foreign.path)
    await client.get(f"{space.path}/%00")
    await client.with_token(None).get(space.path)
    await client.with_token(foreign.token).get(space.path)
    # They are written beside the requests.
    await app.state.services.request_log.flush()
    rows = (await client.get(f"{space.path}/api-keys/request-logs")).json()["data"]
    assert [(row["method"], row["status"], row["error"]) for row in reversed(rows)] == [
        ("GET", 400, "validation_error"),
        ("POST", 201, None),
        ("GET", 404, "not_found"),
        ("GET", 404, "not_found"),
    ]
    assert all("secret" not in str(row) for row in rows)
    assert [row["idempotencyKey"] for row in rows if row["method"] == "POST"] == ["log-1"]
    assert {row["principalType"] for row in rows} == {"api_key"}
    assert {row["workspaceId"] for row in rows} == {str(space.id)}
    assert all(isinstance(row["durationMs"], float) for row in rows)
    assert all(space.token[14:] not in str(row) for row in rows)
