"""Lines: a receiver that fails is called once at a time, and holds back no other (ADR 0070)."""

import asyncio
import socket
from collections.abc import Sequence
from datetime import timedelta

import pytest
from sqlalchemy import func, select, update

from activities.pollers import DeliveryStarter, WebhookFanOut
from models.core.base import Id
from models.messages.deliveries import lines, rules
from models.messages.deliveries.commands import EXECUTING, delivery, delivery_line
from models.messages.deliveries.lines import expire_deliveries, try_now
from models.messages.deliveries.rules import DeliveryChannel
from models.messages.webhook_endpoints import deliveries as fan_out
from models.messages.webhook_endpoints.deliveries import expire_untold
from models.messages.workspace_events.log import workspace_event
from tests.support.ageing import ago, purged
from tests.support.client import Client
from tests.support.endpoint import Serve, reply
from tests.support.patience import eventually
from tests.support.spaces import Space
from tests.workflows.deliveries.test_webhooks import (
    Json,
    create,
    deliveries,
    ended,
    happen,
    post,
    shown,
    tell,
)

pytestmark = [pytest.mark.takes(seconds=20), pytest.mark.usefixtures("engine")]


@pytest.fixture
def _quick_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    """A circuit is open for a second and more; what failed waits an hour by itself."""
    monkeypatch.setattr(lines, "FIRST_CIRCUIT_PAUSE", 1.0)
    monkeypatch.setitem(rules.PAUSES, DeliveryChannel.WEBHOOK, (3_600.0,) * 9)


def closed_port() -> str:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{unused.getsockname()[1]}/"


async def executing(space: Space) -> dict[Id, int]:
    """The number of open executions by target."""
    async with space.database.reading() as work:
        counted = select(delivery.c.target_id, func.count().label("number")).where(
            EXECUTING, delivery.c.workspace_id == space.id
        )
        rows = await work.rows(counted.group_by(delivery.c.target_id))
    return {row.target_id: row.number for row in rows}


async def circuit_of(client: Client, space: Space, endpoint: Json) -> Json:
    found: Json = (await shown(client, space, endpoint))["circuit"]
    return found


async def in_state(client: Client, space: Space, endpoint: Json, *states: str) -> Json:
    async def has_come() -> bool:
        return (await circuit_of(client, space, endpoint))["state"] in states

    await eventually(has_come, what=f"a circuit that is {states}")
    return await circuit_of(client, space, endpoint)


async def try_later(space: Space, endpoint: Json) -> None:
    """Have an open circuit stay so for an hour."""
    async with space.database.transaction() as work:
        this = delivery_line.c.target_id == Id(endpoint["id"])
        later = work.now + timedelta(hours=1)
        await work.execute(update(delivery_line).where(this).values(retry_at=later))


async def tell_all(space: Space) -> None:
    while await WebhookFanOut(space.database).turn():
        pass


def numbers(bodies: Sequence[Json]) -> list[int]:
    return [body["data"]["number"] for body in bodies]


@pytest.mark.long
async def test_failing_endpoints_hold_back_no_good_one(
    client: Client, space: Space, serve: Serve
) -> None:
    failing = [await create(client, space, closed_port()) for _ in range(5)]
    receiver = await serve(reply(200))
    good = await create(client, space, receiver.url)
    await happen(space, 60)
    most: dict[Id, int] = {}
    await tell(space)
    while len(receiver.requests) < 60:
        for target, number in (await executing(space)).items():
            most[target] = max(most.get(target, 0), number)
        await asyncio.sleep(0.01)
    assert max(most.get(Id(one["id"]), 0) for one in failing) <= 1
    assert most[Id(good["id"])] <= lines.LINE_ROOM
    arrived = numbers([call.json() for call in receiver.requests])
    assert sorted(arrived) == list(range(60))
    # As many as are under way at once may overtake each other.
    displaced = [abs(number - place) for place, number in enumerate(arrived)]
    assert max(displaced) <= 2 * lines.LINE_ROOM
    for one in failing:
        found = await in_state(client, space, one, "open", "half_open")
        assert found["failures"] >= lines.MOST_FAILURES
        assert found["nextAttemptAt"] > found["since"]


@pytest.mark.long
@pytest.mark.usefixtures("_quick_trials")
async def test_a_circuit_opens_is_tried_and_closes(
    client: Client, space: Space, serve: Serve
) -> None:
    receiver = await serve(*[reply(500)] * (lines.MOST_FAILURES + 1), reply(200))
    endpoint = await create(client, space, receiver.url)
    assert await circuit_of(client, space, endpoint) == {"state": "closed", "failures": 0}
    await happen(space, 12)
    await tell(space)
    opened = await in_state(client, space, endpoint, "open")
    assert opened["failures"] == lines.MOST_FAILURES
    path = f"{space.path}/webhook-endpoints/{endpoint['id']}/deliveries"
    assert (await client.get(path)).json()["data"]["circuit"]["state"] in {"open", "half_open"}
    assert len(receiver.requests) == lines.MOST_FAILURES, "nothing is tried while it is open"

    log = await ended(client, space, endpoint, 12)
    assert {one["status"] for one in log} == {"delivered"}
    closed = await circuit_of(client, space, endpoint)
    assert (closed["state"], closed["failures"]) == ("closed", 0)
    assert closed["since"] > opened["since"]
    # Those that failed are due at once too, although their own pauses are an hour.
    arrived = numbers([call.json() for call in receiver.requests])
    assert len(arrived) == 12 + lines.MOST_FAILURES + 1
    assert arrived[: lines.MOST_FAILURES] == list(range(lines.MOST_FAILURES))


async def test_workers_that_start_at_once_start_once(client: Client, space: Space) -> None:
    endpoint = await create(client, space, closed_port())
    await happen(space, 20)
    await tell(space)
    await asyncio.gather(*(DeliveryStarter(space.database).turn() for _ in range(6)))
    assert (await executing(space)).get(Id(endpoint["id"]), 0) <= 1
    async with space.database.reading() as work:
        own = delivery.c.target_id == Id(endpoint["id"])
        found = await work.rows(select(delivery.c.attempts, delivery.c.executions).where(own))
    assert all(row.executions - row.attempts in {0, 1} for row in found)


@pytest.mark.long
async def test_a_workspace_has_a_limited_number_of_executions(
    client: Client, space: Space, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "WORKSPACE_ROOM", 2)
    answer = asyncio.Event()

    async def slowly(writer: asyncio.StreamWriter) -> None:
        await answer.wait()
        writer.write(reply(200))

    receivers = [await serve(slowly) for _ in range(4)]
    endpoints = [await create(client, space, one.url) for one in receivers]
    await happen(space)
    await tell(space)

    async def are_under_way() -> bool:
        return sum([len(one.requests) for one in receivers]) == 2

    await eventually(are_under_way, what="two calls")
    await DeliveryStarter(space.database).turn()
    assert sum((await executing(space)).values()) == 2
    answer.set()
    for endpoint in endpoints:
        (log,) = await ended(client, space, endpoint)
        assert log["status"] == "delivered"


@pytest.mark.long
async def test_a_deleted_endpoint_leaves_no_line(client: Client, space: Space) -> None:
    endpoint = await create(client, space, closed_port())
    await happen(space, 8)
    await tell(space)
    await in_state(client, space, endpoint, "open")
    path = f"{space.path}/webhook-endpoints/{endpoint['id']}"
    assert (await client.delete(path)).status_code == 200

    async def nothing_is_left() -> bool:
        async with space.database.reading() as work:
            line = delivery_line.c.target_id == Id(endpoint["id"])
            own = delivery.c.target_id == Id(endpoint["id"])
            lines = await work.rows(select(delivery_line).where(line))
            statuses = await work.rows(select(delivery.c.status).where(own).distinct())
        return not lines and [row.status for row in statuses] == ["cancelled"]

    await eventually(nothing_is_left, what="the end of a line")


@pytest.mark.long
async def test_deliveries_that_wait_for_a_disabled_endpoint_end_with_it(
    client: Client, space: Space
) -> None:
    endpoint = await create(client, space, closed_port())
    await happen(space, 8)
    await tell(space)
    await in_state(client, space, endpoint, "open")
    await try_later(space, endpoint)
    path = f"{space.path}/webhook-endpoints/{endpoint['id']}"
    assert (await client.patch(path, json={"enabled": False})).status_code == 200
    # At once, and not one after the other with the trials of the circuit.
    log = await deliveries(client, space, endpoint)
    assert len(log) == 8
    assert {(one["status"], one["errorCode"]) for one in log} == {
        ("undeliverable", "endpoint_disabled")
    }


async def test_a_delivery_that_waits_for_too_long_ends_with_a_reason(
    client: Client, space: Space
) -> None:
    endpoint = await create(client, space, closed_port())
    await happen(space, 8)
    await tell(space)
    await in_state(client, space, endpoint, "open")
    async with space.database.transaction() as work:
        own = delivery.c.target_id == Id(endpoint["id"])
        await work.execute(update(delivery).where(own).values(expires_at=work.now))
    async with space.database.transaction() as work:
        assert await expire_deliveries(work) >= 8
    log = await deliveries(client, space, endpoint)
    assert {(one["status"], one["errorCode"]) for one in log} == {("failed", "expired")}


@pytest.mark.long
async def test_an_endpoint_that_fails_has_few_deliveries_until_it_takes_one(
    client: Client, space: Space, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fan_out, "MOST_FAILING", 6)
    monkeypatch.setattr(fan_out, "MOST_DELIVERIES", 3)
    receiver = await serve(*[reply(500)] * lines.MOST_FAILURES, reply(200))
    endpoint = await create(client, space, receiver.url)
    await happen(space, lines.MOST_FAILURES)
    await tell(space)
    await in_state(client, space, endpoint, "open")
    await happen(space, 20)
    await tell_all(space)
    assert 6 <= len(await deliveries(client, space, endpoint)) < 6 + fan_out.MOST_DELIVERIES
    async with space.database.transaction() as work:
        await try_now(work, space.id, DeliveryChannel.WEBHOOK, Id(endpoint["id"]))
    await in_state(client, space, endpoint, "closed")
    await tell_all(space)
    log = await ended(client, space, endpoint, 20 + lines.MOST_FAILURES)
    assert {one["status"] for one in log} == {"delivered"}


@pytest.mark.long
async def test_a_test_tries_at_once(client: Client, space: Space, serve: Serve) -> None:
    receiver = await serve(*[reply(500)] * lines.MOST_FAILURES, reply(200))
    endpoint = await create(client, space, receiver.url)
    await happen(space, 8)
    await tell(space)
    await in_state(client, space, endpoint, "open")
    await try_later(space, endpoint)
    await post(client, space, endpoint, "test")
    log = await ended(client, space, endpoint, 9)
    assert {one["status"] for one in log} == {"delivered"}


async def test_events_purged_before_an_endpoint_had_room_are_shown_as_failed(
    client: Client, space: Space, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fan_out, "MOST_OPEN", 0)
    receiver = await serve(reply(200))
    endpoint = await create(client, space, receiver.url)
    await happen(space, 3)
    old, new = ago(40), ago(1)
    async with space.database.transaction() as work:
        first, second, third = [
            row.seq
            for row in await work.rows(
                select(workspace_event.c.seq)
                .where(workspace_event.c.workspace_id == space.id)
                .order_by(workspace_event.c.seq.desc())
                .limit(3)
            )
        ][::-1]
        for seq, at in ((first, old), (second, old), (third, new)):
            this = workspace_event.c.seq == seq
            await work.execute(update(workspace_event).where(this).values(at=at))
    await purged(space.database, expire_untold, ago(30))
    log = await deliveries(client, space, endpoint)
    assert sorted(numbers([one["payload"] for one in log])) == [0, 1]
    assert {(one["status"], one["errorCode"]) for one in log} == {("failed", "expired")}
    monkeypatch.setattr(fan_out, "MOST_OPEN", 1_000)
    await tell(space)
    log = await ended(client, space, endpoint, 3)
    assert [one["status"] for one in log] == ["delivered", "failed", "failed"]
