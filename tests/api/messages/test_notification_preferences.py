"""Notification preferences over HTTP."""

from typing import Any

import pytest

from models.messages.notifications.rules import NotificationKind
from tests.support.client import Client
from tests.support.items import Json, read, refused

PREFERENCES = "/v1/me/notification-preferences"


async def shown(client: Client) -> Json:
    found: Json = read(await client.get(PREFERENCES))["preferences"]
    return found


async def put(client: Client, **kinds: Any) -> Json:
    answer = read(await client.put(PREFERENCES, json={"preferences": kinds}))
    assert answer["preferences"] == await shown(client)
    return await shown(client)


async def test_every_kind_has_its_defaults(client: Client) -> None:
    found = await shown(client)
    assert list(found) == list(NotificationKind)
    assert all(one["inApp"] and one["push"] for one in found.values())
    mailed = {kind for kind, one in found.items() if one["mail"]}
    assert mailed == {"mention", "assignment", "approval_request", "share"}


async def test_they_are_replaced_whole(client: Client) -> None:
    defaults = await shown(client)
    found = await put(client, comment={"push": False, "mail": True}, share={"inApp": False})
    assert found["comment"] == {"inApp": True, "push": False, "mail": True}
    assert found["share"] == {"inApp": False, "push": True, "mail": True}
    assert (await put(client, mention={"mail": False}))["comment"] == defaults["comment"]
    assert await put(client) == defaults


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"preferences": None},
        {"preferences": []},
        {"preferences": {"weather": {"push": True}}},
        {"preferences": {"mention": {"sms": True}}},
        {"preferences": {"mention": {"push": "yes"}}},
        {"preferences": {"mention": True}},
        {"preferences": {}, "userId": "x"},
    ],
)
async def test_what_is_no_choice_is_refused(client: Client, body: Json) -> None:
    assert refused(await client.put(PREFERENCES, json=body)) == (400, "validation_error")
