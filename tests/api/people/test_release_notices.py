"""Release notices over HTTP: published by administrators, read and acknowledged by everyone."""

import asyncio
from typing import Any
from uuid import uuid4

import pytest

from cli.supervisor.development import DevelopmentIssuer
from tests.support.admins import admin_session
from tests.support.client import Client
from tests.support.items import Json, read, refused
from tests.support.spaces import MakeSpace, Space

NOTICES = "/v1/admin/release-notices"
ACK = "/v1/me/whats-new/ack"


@pytest.fixture
def admin(client: Client, issuer: DevelopmentIssuer) -> Client:
    """A platform administrator."""
    return client.with_token(admin_session(issuer))


async def publish(admin: Client, channel: str = "web", **parts: Any) -> str:
    body = {"channel": channel, "title": "Timers", "body": "**New**", **parts}
    answer = await admin.post(NOTICES, json=body)
    assert answer.status_code == 201
    id_: str = answer.json()["data"]["id"]
    return id_


async def news(client: Client, channel: str = "web") -> Json:
    found: Json = read(await client.get(f"/v1/me/whats-new/state/{channel}"))
    return found


async def acknowledge(client: Client, release_id: str, channel: str = "web") -> Json:
    body = {"channel": channel, "releaseId": release_id}
    state: Json = read(await client.post(ACK, json=body))
    return state


async def shown(client: Client, channel: str = "web") -> list[str]:
    return [one["id"] for one in (await news(client, channel))["releases"]]


async def test_releases_after_the_account_are_new(client: Client, admin: Client) -> None:
    before = await news(client)
    assert before.keys() == {"channel", "accountCreatedAt", "releases"}
    assert before["releases"] == []
    url = "https://example.test/timers"
    first, second = await publish(admin, url=url), await publish(admin)
    found = await news(client)
    assert [one["id"] for one in found["releases"]] == [second, first]
    assert {**found, "releases": []} == before
    oldest = found["releases"][1]
    assert oldest.pop("publishedAt") > found["accountCreatedAt"]
    known = {"id": first, "channel": "web", "title": "Timers", "body": "**New**", "url": url}
    assert oldest == known
    assert await shown(client, "mobile") == []


async def test_the_watermark_moves_forward_only_on_its_channel(
    client: Client, admin: Client
) -> None:
    ids = [await publish(admin) for _ in range(3)]
    elsewhere = await publish(admin, "mobile")
    state = await acknowledge(client, ids[1])
    assert state["lastSeenReleaseId"] == ids[1]
    assert state["channel"] == "web"
    for old in (ids[0], ids[1]):
        assert await acknowledge(client, old) == state
    found = await news(client)
    assert [one["id"] for one in found.pop("releases")] == [ids[2]]
    assert found == state
    assert await shown(client, "mobile") == [elsewhere]
    await acknowledge(client, ids[2])
    assert await shown(client) == []
    assert "lastSeenReleaseId" not in await news(client, "mobile")


async def test_acknowledgements_at_once_leave_the_newest(client: Client, admin: Client) -> None:
    ids = [await publish(admin) for _ in range(4)]
    await asyncio.gather(*(acknowledge(client, one) for one in (ids * 3)))
    assert (await news(client))["lastSeenReleaseId"] == ids[-1]


async def test_everybody_has_their_own_watermark(
    client: Client, admin: Client, space: Space, foreign: Space, issuer: DevelopmentIssuer
) -> None:
    id_ = await publish(admin)
    await acknowledge(client, id_)
    assert id_ in await shown(client.with_token(foreign.token))
    by_session = client.with_token(issuer.mint(space.email, "Test"))
    assert (await news(by_session))["lastSeenReleaseId"] == id_
    later = client.with_token(issuer.mint(f"{uuid4().hex}@example.test", "New"))
    assert await shown(later) == []


async def test_administrators_list_what_was_published(admin: Client) -> None:
    ids = [await publish(admin, channel) for channel in ("web", "mobile", "web")]
    page = read(await admin.get(NOTICES, params={"limit": "2"}))
    assert [one["id"] for one in page["releases"]] == ids[:0:-1]
    rest = read(await admin.get(NOTICES, params={"limit": "1", "cursor": page["cursor"]}))
    assert [one["id"] for one in rest["releases"]] == ids[:1]
    mobile = read(await admin.get(NOTICES, params={"channel": "mobile", "limit": "1"}))
    assert [one["id"] for one in mobile["releases"]] == [ids[1]]


async def test_an_unknown_channel_or_release_is_refused(client: Client, admin: Client) -> None:
    mobile = await publish(admin, "mobile")
    await publish(admin)
    for release_id in (str(uuid4()), "none", mobile):
        answer = await client.post(ACK, json={"channel": "web", "releaseId": release_id})
        assert refused(answer) == (404, "not_found")
    for body in (
        {"channel": "tv", "releaseId": mobile},
        {"releaseId": mobile},
        {"channel": "web"},
        {"channel": "web", "releaseId": ""},
        {"channel": "web", "releaseId": 1},
        {"channel": "web", "releaseId": mobile, "all": True},
    ):
        assert refused(await client.post(ACK, json=body)) == (400, "validation_error")
    for channel in ("tv", "WEB"):
        answer = await client.get(f"/v1/me/whats-new/state/{channel}")
        assert refused(answer) == (400, "validation_error")
    assert "lastSeenReleaseId" not in await news(client)


@pytest.mark.parametrize(
    "change",
    [
        {"channel": "tv"},
        {"title": ""},
        {"title": "a" * 201},
        {"body": "a" * 20_001},
        {"body": None},
        {"url": "javascript:alert(1)"},
        {"url": "https://a b"},
        {"id": str(uuid4())},
        {"publishedAt": "2026-01-01T00:00:00Z"},
    ],
)
async def test_an_invalid_notice_is_refused(admin: Client, change: Json) -> None:
    body = {"channel": "web", "title": "Timers", "body": "**New**", **change}
    assert refused(await admin.post(NOTICES, json=body)) == (400, "validation_error")


async def test_only_administrators_publish(client: Client, workspace: MakeSpace) -> None:
    owner = client.with_token((await workspace()).token)
    body = {"channel": "web", "title": "T", "body": ""}
    assert refused(await owner.post(NOTICES, json=body)) == (403, "denied")
    assert refused(await owner.get(NOTICES)) == (403, "denied")
