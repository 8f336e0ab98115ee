"""Webhook endpoints: told once of what happens, by calls that the published library verifies."""

import asyncio
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import select, update
from standardwebhooks import Webhook, WebhookVerificationError

from activities.pollers import WebhookFanOut
from models.core.access.rules import Role
from models.core.base import Id
from models.messages.deliveries import rules
from models.messages.deliveries.commands import cancel_deliveries
from models.messages.deliveries.rules import DeliveryChannel
from models.messages.notifications.queries import notification
from models.messages.webhook_endpoints import deliveries as fan_out
from models.messages.webhook_endpoints.store import webhook_endpoint
from models.messages.workspace_events.log import append_event
from models.messages.workspace_events.rules import EventType
from tests.support.client import Client
from tests.support.endpoint import Endpoint, Received, Serve, reply
from tests.support.engine import Engine
from tests.support.patience import eventually
from tests.support.spaces import Space

pytestmark = [pytest.mark.takes(seconds=10), pytest.mark.usefixtures("engine")]

Json = dict[str, Any]


@pytest.fixture
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next attempt follows at once."""
    monkeypatch.setitem(rules.PAUSES, DeliveryChannel.WEBHOOK, (0.05, 0.05))


async def create(client: Client, space: Space, url: str, **changes: Any) -> Json:
    body = {"url": url, "eventTypes": ["data_source.run"], **changes}
    answer = await client.post(f"{space.path}/webhook-endpoints", json=body)
    assert answer.status_code == 201, answer.text
    made: Json = answer.json()["data"]
    return made


async def happen(
    space: Space, count: int = 1, kind: EventType = EventType.DATA_SOURCE_RUN, **options: Any
) -> None:
    """Something happens in the workspace."""
    for number in range(count):
        async with space.database.transaction() as work:
            data = {"number": number}
            await append_event(work, space.actor.principal, space.id, kind, data, **options)


async def tell(space: Space) -> None:
    """Tell now, and not within a second."""
    await WebhookFanOut(space.database).turn()


async def deliveries(client: Client, space: Space, endpoint: Json, **query: str) -> list[Json]:
    path = f"{space.path}/webhook-endpoints/{endpoint['id']}/deliveries"
    found: list[Json] = (await client.get(path, params=query)).json()["data"]["deliveries"]
    return found


async def ended(client: Client, space: Space, endpoint: Json, count: int = 1) -> list[Json]:
    """The deliveries of an endpoint, once this number of them have ended."""

    async def are_over() -> bool:
        found = await deliveries(client, space, endpoint)
        return len([one for one in found if one["status"] != "pending"]) >= count

    await eventually(are_over, what=f"the end of {count} deliveries")
    return await deliveries(client, space, endpoint)


async def arrived(receiver: Endpoint, count: int) -> list[Received]:
    async def are_there() -> bool:
        return len(receiver.requests) >= count

    await eventually(are_there, what=f"{count} calls")
    return receiver.requests


async def post(client: Client, space: Space, endpoint: Json, path: str) -> Json:
    answer = await client.post(f"{space.path}/webhook-endpoints/{endpoint['id']}/{path}")
    assert answer.status_code == 200, answer.text
    made: Json = answer.json()["data"]
    return made


async def shown(client: Client, space: Space, endpoint: Json) -> Json:
    answer = await client.get(f"{space.path}/webhook-endpoints/{endpoint['id']}")
    found: Json = answer.json()["data"]
    return found


async def test_an_event_arrives_once_and_signed(client: Client, space: Space, serve: Serve) -> None:
    receiver = await serve(reply(204, b""))
    await happen(space)
    endpoint = await create(client, space, receiver.url)
    await happen(space, 2)
    await happen(space, kind=EventType.NOTIFICATION_READ)
    await happen(space, audience_user_id=space.user_id)
    await tell(space)
    # Deliveries arrive in any order.
    first, second = sorted(await arrived(receiver, 2), key=lambda call: call.json()["seq"])
    for number, call in enumerate((first, second)):
        read = Webhook(endpoint["secret"]).verify(call.body, call.headers)
        assert read == call.json()
        assert read["type"] == "data_source.run"
        assert read["data"] == {"number": number}
        assert read["workspaceId"] == str(space.id)
    with pytest.raises(WebhookVerificationError):
        Webhook(endpoint["secret"]).verify(first.body + " ", first.headers)
    assert first.headers["webhook-id"] != second.headers["webhook-id"]

    log = await ended(client, space, endpoint, 2)
    assert [one["status"] for one in log] == ["delivered", "delivered"]
    assert log[0]["attempts"] == 1
    assert log[0]["answerStatus"] == 204
    ids = {f"msg_{one['eventId']}": one["payload"] for one in log}
    assert ids == {call.headers["webhook-id"]: call.json() for call in (first, second)}
    assert endpoint["secret"] not in (await client.get(f"{space.path}/webhook-endpoints")).text


@pytest.mark.long
async def test_fan_outs_at_once_deliver_once(client: Client, space: Space, serve: Serve) -> None:
    receiver = await serve(reply(200))
    endpoint = await create(client, space, receiver.url)
    await happen(space, 20)
    await asyncio.gather(*(WebhookFanOut(space.database).turn() for _ in range(8)))
    log = await ended(client, space, endpoint, 20)
    assert len({one["eventId"] for one in log}) == len(log) == 20
    assert len({call.headers["webhook-id"] for call in receiver.requests}) == 20


async def test_an_endpoint_that_does_not_answer_is_sent_no_more_than_it_can_hold(
    client: Client, space: Space, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fan_out, "MOST_OPEN", 2)
    receiver = await serve(reply(500))
    endpoint = await create(client, space, receiver.url)
    await happen(space, 2)
    await tell(space)
    await happen(space, 3)
    await tell(space)
    waiting = await deliveries(client, space, endpoint)
    assert [one["status"] for one in waiting] == ["pending", "pending"]
    async with space.database.transaction() as work:
        await cancel_deliveries(work, space.id, [UUID(one["id"]) for one in waiting])
    await tell(space)
    found = await deliveries(client, space, endpoint)
    assert len({one["eventId"] for one in found}) == 5


@pytest.mark.long
@pytest.mark.usefixtures("_soon")
async def test_it_is_tried_again_under_the_same_id(
    client: Client, space: Space, serve: Serve
) -> None:
    receiver = await serve(reply(500), reply(404), reply(200))
    endpoint = await create(client, space, receiver.url)
    await happen(space)
    await tell(space)
    (log,) = await ended(client, space, endpoint)
    assert (log["status"], log["attempts"]) == ("delivered", 3)
    calls = receiver.requests
    assert len({call.headers["webhook-id"] for call in calls}) == 1
    assert len({call.body for call in calls}) == 1
    assert "failingSince" not in await shown(client, space, endpoint)


async def test_only_the_status_of_an_answer_counts(
    client: Client, space: Space, serve: Serve
) -> None:
    elsewhere = await serve(reply(200))
    moved = await serve(reply(302, b"", location=elsewhere.url))
    endless = await serve(reply(200, b"x" * 1_000_000))
    endpoints = [await create(client, space, one.url) for one in (moved, endless)]
    for endpoint in endpoints:
        await post(client, space, endpoint, "test")
    (log,) = await ended(client, space, endpoints[1])
    assert (log["status"], log["attempts"], log["answerStatus"]) == ("delivered", 1, 200)

    async def was_refused() -> bool:
        (log,) = await deliveries(client, space, endpoints[0])
        return (log["status"], log.get("answerStatus")) == ("pending", 302)

    await eventually(was_refused, what="the answer of one that moved")
    assert elsewhere.requests == []


@pytest.mark.long
@pytest.mark.usefixtures("_soon")
async def test_an_undeliverable_event_can_be_sent_again(
    client: Client, space: Space, serve: Serve
) -> None:
    receiver = await serve(reply(500), reply(500), reply(500), reply(200))
    endpoint = await create(client, space, receiver.url)
    await happen(space)
    await tell(space)
    (failed,) = await ended(client, space, endpoint)
    assert (failed["status"], failed["errorCode"]) == ("failed", "http_500")
    assert (await shown(client, space, endpoint))["failingSince"]
    again = await post(client, space, endpoint, f"deliveries/{failed['id']}/redeliver")
    assert again["id"] != failed["id"]
    assert (await ended(client, space, endpoint, 2))[0]["status"] == "delivered"
    assert len({call.headers["webhook-id"] for call in receiver.requests}) == 1
    assert "failingSince" not in await shown(client, space, endpoint)
    assert len(await deliveries(client, space, endpoint, status="failed")) == 1


async def test_while_a_secret_changes_both_sign(client: Client, space: Space, serve: Serve) -> None:
    receiver = await serve(reply(200))
    endpoint = await create(client, space, receiver.url)
    rotated = await post(client, space, endpoint, "rotate-secret")
    assert rotated["secret"] != endpoint["secret"]
    assert rotated["previousSecretUntil"]
    await post(client, space, endpoint, "test")
    (call,) = await arrived(receiver, 1)
    for secret in (endpoint["secret"], rotated["secret"]):
        assert Webhook(secret).verify(call.body, call.headers)["type"] == "webhook.test"

    async with space.database.transaction() as work:
        over = work.now - timedelta(seconds=1)
        await work.execute(update(webhook_endpoint).values(previous_secret_until=over))
    await post(client, space, endpoint, "test")
    _, later = await arrived(receiver, 2)
    Webhook(rotated["secret"]).verify(later.body, later.headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(endpoint["secret"]).verify(later.body, later.headers)


async def told_of_disabling(space: Space) -> list[Any]:
    async with space.database.reading() as work:
        own = notification.c.workspace_id == space.id, notification.c.kind == "system"
        return list(
            await work.rows(select(notification.c.user_id, notification.c.data).where(*own))
        )


async def test_410_disables_an_endpoint(client: Client, space: Space, serve: Serve) -> None:
    receiver = await serve(reply(410))
    endpoint = await create(client, space, receiver.url)
    await happen(space)
    await tell(space)
    (log,) = await ended(client, space, endpoint)
    assert (log["status"], log["errorCode"]) == ("undeliverable", "http_410")
    found = await shown(client, space, endpoint)
    assert (found["enabled"], found["disabledReason"]) == (False, "gone")
    (notice,) = await told_of_disabling(space)
    assert notice.user_id == space.user_id
    assert notice.data == {"webhookEndpointId": endpoint["id"], "reason": "gone"}
    path = f"{space.path}/webhook-endpoints/{endpoint['id']}"
    assert (await client.post(f"{path}/test")).status_code == 409
    again = f"{path}/deliveries/{log['id']}/redeliver"
    assert (await client.post(again)).status_code == 409

    await happen(space)
    assert (await client.patch(path, json={"enabled": True})).status_code == 200
    found = await shown(client, space, endpoint)
    assert found["enabled"]
    assert "disabledReason" not in found
    await tell(space)
    assert len(await deliveries(client, space, endpoint)) == 1


async def test_days_of_failure_disable_an_endpoint(
    client: Client, space: Space, serve: Serve
) -> None:
    receiver = await serve(reply(503))
    endpoint = await create(client, space, receiver.url)
    async with space.database.transaction() as work:
        this = webhook_endpoint.c.id == Id(endpoint["id"])
        long_ago = work.now - timedelta(days=3, seconds=1)
        await work.execute(update(webhook_endpoint).where(this).values(failing_since=long_ago))
    await post(client, space, endpoint, "test")

    async def is_disabled() -> bool:
        return (await shown(client, space, endpoint)).get("disabledReason") == "failing"

    await eventually(is_disabled, what="the end of an endpoint")
    assert len(await told_of_disabling(space)) == 1


async def test_sent_events_are_shown_to_members_who_see_all_items(
    client: Client, space: Space, serve: Serve
) -> None:
    receiver = await serve(reply(200))
    endpoint = await create(client, space, f"{receiver.url}?key=canary-41&a=1")
    path = f"{space.path}/webhook-endpoints/{endpoint['id']}"
    await happen(space)
    await tell(space)
    (log,) = await ended(client, space, endpoint)
    assert log["payload"]["data"] == {"number": 0}
    _, token = await space.member(Role.EDITOR)
    editor = client.with_token(token)
    (seen,) = await deliveries(editor, space, endpoint)
    assert seen == {**log, "payload": {key: log["payload"][key] for key in ("type", "timestamp")}}
    listed = await editor.get(f"{space.path}/webhook-endpoints")
    assert "canary-41" not in listed.text
    url = (await shown(editor, space, endpoint))["url"]
    assert url == f"{receiver.url}?key=[redacted]&a=1"
    # Given back as it is shown, it stays; for another host it must be given.
    kept = (await client.patch(path, json={"url": url})).json()["data"]
    assert kept["url"] == f"{receiver.url}?key=canary-41&a=1"
    other = {"url": "https://elsewhere.example.test/?key=[redacted]"}
    assert (await client.patch(path, json=other)).status_code == 400


async def test_a_deleted_endpoint_is_not_called(client: Client, space: Space, serve: Serve) -> None:
    receiver = await serve(reply(500))
    endpoint = await create(client, space, receiver.url)
    await post(client, space, endpoint, "test")
    await arrived(receiver, 1)
    path = f"{space.path}/webhook-endpoints/{endpoint['id']}"
    assert (await client.delete(path)).json()["data"] == {"id": endpoint["id"]}
    assert (await client.get(path)).status_code == 404
    await happen(space)
    await tell(space)
    assert len(receiver.requests) == 1


async def test_a_private_address_is_never_called(
    client: Client, space: Space, engine: Engine
) -> None:
    del engine
    path = f"{space.path}/webhook-endpoints"
    for url in ("http://10.0.0.1/", "http://[::1]/", "http://169.254.169.254/", "ftp://a.test/"):
        assert (await client.post(path, json={"url": url})).status_code == 400, url
    endpoint = await create(client, space, "https://hooks.example.test/")
    async with space.database.transaction() as work:
        this = webhook_endpoint.c.id == Id(endpoint["id"])
        moved = {"url": "http://169.254.169.254/latest"}
        await work.execute(update(webhook_endpoint).where(this).values(moved))
    await post(client, space, endpoint, "test")
    (log,) = await ended(client, space, endpoint)
    assert (log["status"], log["errorCode"]) == ("failed", "outbound_blocked")
