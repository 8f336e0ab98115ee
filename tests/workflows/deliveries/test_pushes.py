"""Notifications reach the devices and the mailbox of their user, as the user prefers."""

import json
from uuid import uuid4

import pytest
from sqlalchemy import select

from models.core.access.rules import Principal, PrincipalType
from models.core.base import Id
from models.messages.deliveries import rules
from models.messages.deliveries.commands import Delivery, delivery
from models.messages.deliveries.rules import DeliveryChannel
from models.messages.notification_preferences import (
    NotificationKind,
    ReplacePreferences,
    replace_preferences,
)
from models.messages.notifications.queries import Notification
from models.messages.push_devices import RegisterPushDevice, push_device, register_push_device
from tests.support.browsers import Browser
from tests.support.delivery_stories import attempted, ended, kept_in_temporal, member, tell
from tests.support.endpoint import Serve, reply
from tests.support.engine import KEYS, Engine

pytestmark = pytest.mark.takes(seconds=10)


def principal(user_id: Id) -> Principal:
    return Principal(type=PrincipalType.SESSION, id=user_id, user_id=user_id)


async def register(engine: Engine, user_id: Id, browser: Browser) -> None:
    body = {"installationId": uuid4().hex, "platform": "web", "token": browser.token}
    async with engine.database.transaction() as work:
        said = RegisterPushDevice.model_validate(body)
        await register_push_device(work, principal(user_id), KEYS, said)


async def prefer(engine: Engine, user_id: Id, **kinds: dict[str, bool]) -> None:
    async with engine.database.transaction() as work:
        body = ReplacePreferences.model_validate({"preferences": kinds})
        await replace_preferences(work, principal(user_id), body)


async def deliveries(engine: Engine, told: Notification) -> list[Delivery]:
    async with engine.database.reading() as work:
        own = select(delivery).where(delivery.c.subject_id == told.id)
        return list(await work.rows(own.order_by(delivery.c.channel), of=Delivery))


async def devices(engine: Engine, user_id: Id) -> int:
    async with engine.database.reading() as work:
        own = select(push_device.c.id).where(push_device.c.user_id == user_id)
        return len(await work.rows(own))


async def test_every_device_of_a_user_rings(engine: Engine, serve: Serve) -> None:
    endpoint, user_id = await serve(reply(201)), await member(engine)
    browsers = [Browser(f"{endpoint.url}{number}") for number in range(2)]
    for browser in browsers:
        await register(engine, user_id, browser)
    told = await tell(engine, user_id, title="Secret words")
    sent = await deliveries(engine, told)
    assert [one.channel for one in sent] == ["push", "push"]
    for one in sent:
        assert (await ended(engine, one.id)).status == "delivered"
    by_path = {one.line.split()[1]: one.content for one in endpoint.requests}
    for number, browser in enumerate(browsers):
        message = browser.read(by_path[f"/{number}"])
        assert message["title"] == "Secret words"
        assert message["data"]["notificationId"] == str(told.id)
    kept = await kept_in_temporal(engine, await ended(engine, sent[0].id))
    assert str(sent[0].id) in kept
    assert "Secret words" not in kept
    assert json.loads(browsers[0].token)["keys"]["auth"] not in kept


@pytest.mark.parametrize("status", [404, 410])
async def test_a_dead_token_revokes_its_device(engine: Engine, serve: Serve, status: int) -> None:
    endpoint, user_id = await serve(reply(status)), await member(engine)
    await register(engine, user_id, Browser(endpoint.url))
    ((sent),) = await deliveries(engine, await tell(engine, user_id))
    found = await ended(engine, sent.id)
    assert (found.status, found.error_code) == ("undeliverable", "dead_token")
    assert await devices(engine, user_id) == 0
    assert await deliveries(engine, await tell(engine, user_id)) == []


@pytest.mark.long
async def test_a_busy_provider_is_asked_again(
    engine: Engine, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses = (0.05,) * 3
    monkeypatch.setitem(rules.PAUSES, DeliveryChannel.PUSH, pauses)
    endpoint, user_id = await serve(reply(500), reply(503), reply(201)), await member(engine)
    await register(engine, user_id, Browser(endpoint.url))
    ((sent),) = await deliveries(engine, await tell(engine, user_id))
    found = await ended(engine, sent.id)
    assert (found.status, found.attempts, found.answer_status) == ("delivered", 3, 201)
    assert len({one.headers["topic"] for one in endpoint.requests}) == 1


async def test_retry_after_is_kept_to(engine: Engine, serve: Serve) -> None:
    endpoint, user_id = await serve(reply(429, "", Retry_After="900")), await member(engine)
    await register(engine, user_id, Browser(endpoint.url))
    ((sent),) = await deliveries(engine, await tell(engine, user_id))
    found = await attempted(engine, sent.id)
    assert found.next_attempt_at is not None
    assert 899 <= (found.next_attempt_at - found.created_at).total_seconds() < 960


async def test_a_device_that_is_gone_is_not_called(engine: Engine, serve: Serve) -> None:
    endpoint, user_id = await serve(reply(201)), await member(engine)
    await register(engine, user_id, Browser(endpoint.url))
    told = await tell(engine, user_id)
    async with engine.database.transaction() as work:
        await work.execute(push_device.delete().where(push_device.c.user_id == user_id))
    ((sent),) = await deliveries(engine, told)
    found = await ended(engine, sent.id)
    # Unless the push was quicker.
    assert (found.status, found.error_code) in {
        ("undeliverable", "device_revoked"),
        ("delivered", None),
    }


async def test_preferences_choose_the_channels(engine: Engine, serve: Serve) -> None:
    endpoint, user_id = await serve(reply(201)), await member(engine)
    await register(engine, user_id, Browser(endpoint.url))

    async def channels(kind: NotificationKind) -> set[str]:
        told = await tell(engine, user_id, kind)
        assert (told.archived_at is None) is (kind is not NotificationKind.SHARE)
        return {one.channel for one in await deliveries(engine, told)}

    mute = {"inApp": False, "push": False, "mail": False}
    await prefer(engine, user_id, share=mute, comment={"mail": True}, mention={"push": False})
    assert await channels(NotificationKind.SHARE) == set()
    assert await channels(NotificationKind.COMMENT) == {"push", "mail"}
    assert await channels(NotificationKind.MENTION) == {"mail"}
    assert await channels(NotificationKind.SYSTEM) == {"push"}
