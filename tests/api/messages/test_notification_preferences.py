"""Notification preferences over HTTP."""

from itertools import product
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import func, select

from cli.supervisor.development import DevelopmentIssuer
from models.core.access.rules import Role
from models.messages.deliveries.commands import delivery
from models.messages.notification_preferences import NotificationKind
from models.messages.notifications.commands import ACTS, Notice, notify
from models.messages.notifications.queries import notification
from tests.support.client import Client
from tests.support.items import Json, read, refused
from tests.support.spaces import Space

CHANNELS = ("inApp", "push", "mail")
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
    assert mailed == {"mention", "assignment", "approval_request", "share", "alert"}


async def test_they_are_replaced_whole(client: Client) -> None:
    defaults = await shown(client)
    found = await put(client, comment={"push": False, "mail": True}, share={"inApp": False})
    assert found["comment"] == {"inApp": True, "push": False, "mail": True}
    assert found["share"] == {"inApp": False, "push": True, "mail": True}
    assert (await put(client, mention={"mail": False}))["comment"] == defaults["comment"]
    assert await put(client) == defaults


async def test_each_kind_goes_where_its_user_wants_it(
    client: Client, space: Space, issuer: DevelopmentIssuer
) -> None:
    session = client.with_token(await space.session(space.user_id, issuer))
    device = {"installationId": uuid4().hex, "platform": "ios", "token": uuid4().hex}
    read(await session.post("/v1/me/push-devices", json=device))
    left, _ = await space.member(Role.EDITOR)
    await space.remove(left)
    choices = _subsets()
    wanted: dict[tuple[str, str], set[str]] = {}
    for turn in range(len(choices)):
        chosen = {
            kind.value: choices[(turn + place) % len(choices)]
            for place, kind in enumerate(NotificationKind)
        }
        await put(
            client,
            **{kind: {one: one in at for one in CHANNELS} for kind, at in chosen.items()},
        )
        async with space.database.transaction() as work:
            for kind, at in chosen.items():
                notice = Notice(kind=NotificationKind(kind), title=str(turn))
                assert await notify(work, space.id, [space.user_id, left], notice) == [
                    space.user_id
                ]
                wanted[kind, str(turn)] = at
    assert await received(space) == wanted


async def test_a_member_is_not_notified_of_their_own_action(space: Space) -> None:
    async with space.database.transaction() as work:
        for kind in NotificationKind:
            notice = Notice(kind=kind, title="Done", actor_user_id=space.user_id)
            notified = await notify(work, space.id, [space.user_id], notice)
            assert notified == ([] if kind in ACTS else [space.user_id])


def _subsets() -> list[set[str]]:
    """Every choice of channels."""
    bits = product((True, False), repeat=len(CHANNELS))
    return [{one for one, on in zip(CHANNELS, row, strict=True) if on} for row in bits]


async def received(space: Space) -> dict[tuple[str, str], set[str]]:
    """By which channels each notification of a workspace goes, by kind and title."""
    sent = func.array_remove(func.array_agg(delivery.c.channel), None).label("sent")
    columns = (notification.c.kind, notification.c.title, notification.c.archived_at)
    statement = (
        select(*columns, sent)
        .outerjoin(delivery, delivery.c.subject_id == notification.c.id)
        .where(notification.c.workspace_id == space.id)
        .group_by(notification.c.id)
    )
    async with space.database.reading() as work:
        rows = await work.rows(statement)
    return {
        (row.kind, row.title): {*row.sent, *(() if row.archived_at else ("inApp",))} for row in rows
    }


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
async def test_an_invalid_preference_is_refused(client: Client, body: Json) -> None:
    assert refused(await client.put(PREFERENCES, json=body)) == (400, "validation_error")
