"""Push devices over HTTP: one registration for each installation and each token."""

import asyncio
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio
from sqlalchemy import select

from cli.supervisor.development import DevelopmentIssuer
from models.messages.push_devices import push_device
from tests.support.client import Client
from tests.support.items import Json, read, refused
from tests.support.spaces import Space

DEVICES = "/v1/me/push-devices"
TOKEN = "fGk3v0aT2l8:APA91b"


def device(**parts: Any) -> Json:
    fresh = uuid4().hex
    body = {"installationId": fresh, "platform": "android", "token": f"token-of-{fresh}"}
    return {**body, **parts}


@pytest.fixture
def mine(client: Client, space: Space, issuer: DevelopmentIssuer) -> Client:
    """The owner of the workspace in a session."""
    return client.with_token(issuer.mint(space.email, "Test"))


@pytest.fixture
def other(client: Client, foreign: Space, issuer: DevelopmentIssuer) -> Client:
    """Another user in a session."""
    return client.with_token(issuer.mint(foreign.email, "Test"))


async def register(client: Client, body: Json, path: str = DEVICES) -> None:
    answer = read(await client.post(path, json=body))
    assert answer == {"installationId": body["installationId"], "revoked": False}


async def revoke(client: Client, body: Json) -> bool:
    said = {"installationId": body["installationId"]}
    answer = read(await client.post(f"{DEVICES}/revoke", json=said))
    assert answer["installationId"] == body["installationId"]
    revoked: bool = answer["revoked"]
    return revoked


async def installations(client: Client) -> set[str]:
    return {one["installationId"] for one in read(await client.get(DEVICES))["devices"]}


async def test_one_is_registered_listed_and_revoked(mine: Client, client: Client) -> None:
    body = device(appVersion="2.4.0", locale="en-GB")
    await register(mine, body)
    await register(mine, body, f"{DEVICES}/register")
    ((shown),) = read(await client.get(DEVICES))["devices"]
    assert shown.pop("registeredAt")
    assert shown == {
        "installationId": body["installationId"],
        "platform": "android",
        "provider": "fcm",
        "appVersion": "2.4.0",
        "locale": "en-GB",
    }
    assert [await revoke(mine, body) for _ in range(2)] == [True, False]
    assert await installations(mine) == set()
    assert not await revoke(mine, device())


@pytest.mark.parametrize(
    ("said", "provider"),
    [
        ({"platform": "ios"}, "apns"),
        ({"platform": "ios", "provider": "fcm"}, "fcm"),
        ({"platform": "web"}, "webpush"),
        ({"platform": "web", "provider": "fcm"}, "fcm"),
        ({"platform": "android", "provider": None}, "fcm"),
    ],
)
async def test_a_platform_has_a_provider(mine: Client, said: Json, provider: str) -> None:
    await register(mine, device(**said))
    ((shown),) = read(await mine.get(DEVICES))["devices"]
    assert shown["provider"] == provider


async def test_an_installation_and_a_token_have_one_registration(
    mine: Client, other: Client
) -> None:
    first, second = device(), device()
    await register(mine, first)
    await register(mine, second)
    renewed = {**first, "token": f"renewed-{first['token']}"}
    await register(mine, renewed)
    assert await installations(mine) == {first["installationId"], second["installationId"]}
    moved = device(token=second["token"])
    await register(mine, moved)
    assert await installations(mine) == {first["installationId"], moved["installationId"]}
    await register(other, moved)
    assert await installations(mine) == {first["installationId"]}
    await register(other, device(installationId=first["installationId"]))
    assert await installations(mine) == set()
    assert await installations(other) == {moved["installationId"], first["installationId"]}


async def test_a_user_does_not_revoke_the_registration_of_another(
    mine: Client, other: Client
) -> None:
    body = device()
    await register(mine, body)
    assert not await revoke(other, body)
    assert await installations(other) == set()
    assert await installations(mine) == {body["installationId"]}


async def test_registrations_at_once_leave_one(mine: Client, other: Client) -> None:
    body = device()
    calls = [register(who, body) for who in (mine, other) * 4]
    calls += [register(mine, device(token=body["token"])) for _ in range(4)]
    await asyncio.gather(*calls)
    assert len(await installations(mine) | await installations(other)) == 1


async def test_a_user_has_fifty_devices_at_most(mine: Client) -> None:
    made = [device() for _ in range(51)]
    for body in made:
        await register(mine, body)
    page = read(await mine.get(DEVICES, params={"limit": "100"}))["devices"]
    assert [one["installationId"] for one in page] == [
        body["installationId"] for body in made[:0:-1]
    ]


@pytest_asyncio.fixture
async def stored(space: Space, mine: Client) -> Any:
    await register(mine, device(token=TOKEN))
    async with space.database.reading() as work:
        (row,) = await work.rows(select(push_device).where(push_device.c.user_id == space.user_id))
    return row


async def test_the_token_is_kept_sealed(stored: Any) -> None:
    assert TOKEN.encode() not in stored.sealed_token
    assert TOKEN not in str(stored)


@pytest.mark.parametrize(
    "change",
    [
        {"token": "a" * 15},
        {"token": "a" * 4097},
        {"token": " " * 20},
        {"token": "a" * 20 + "\n"},
        {"token": "ü" * 20},
        {"token": "a" * 10 + "\x07" + "a" * 10},
        {"token": None},
        {"token": 12345678901234567890},
        {"installationId": ""},
        {"installationId": "a b"},
        {"installationId": "a" * 201},
        {"platform": "windows"},
        {"platform": None},
        {"provider": "expo"},
        {"platform": "web", "provider": "apns"},
        {"locale": "not a locale"},
        {"appVersion": ""},
        {"userId": str(uuid4())},
    ],
)
async def test_a_malformed_registration_is_refused(mine: Client, change: Json) -> None:
    for path in (DEVICES, f"{DEVICES}/register"):
        answer = await mine.post(path, json=device(**change))
        assert refused(answer) == (400, "validation_error")
    assert await installations(mine) == set()


@pytest.mark.parametrize("length", [16, 4096])
async def test_tokens_of_every_length_between_are_taken(mine: Client, length: int) -> None:
    await register(mine, device(token=uuid4().hex[:8].ljust(length, "a")))


async def test_keys_neither_register_nor_revoke(client: Client) -> None:
    for path in (DEVICES, f"{DEVICES}/register", f"{DEVICES}/revoke"):
        assert refused(await client.post(path, json=device())) == (403, "denied")
