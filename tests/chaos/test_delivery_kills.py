"""A worker that dies in the middle of a line: the next one continues at its place."""

import pytest
from sqlalchemy import select

from models.messages.deliveries.commands import Delivery, delivery
from models.messages.webhook_endpoints.store import CreateWebhookEndpoint, create_endpoint
from models.messages.workspace_events.log import append_event
from models.messages.workspace_events.rules import EventType
from runtime.crypto import KeyRing
from tests.chaos.processes import SECRET, Workers
from tests.support.endpoint import Serve, never, reply
from tests.support.engine import Engine
from tests.support.patience import eventually

pytestmark = [pytest.mark.crash, pytest.mark.takes(seconds=20), pytest.mark.long]

ONE_AT_A_TIME = "from models.messages.deliveries import lines; lines.LINE_ROOM = 1"
EVENTS, BEFORE = 12, 4


async def deliveries(engine: Engine) -> list[Delivery]:
    async with engine.database.reading() as work:
        own = delivery.c.workspace_id == engine.actor.workspace_id
        found = select(delivery).where(own).order_by(delivery.c.created_at, delivery.c.id)
        return [*await work.rows(found, of=Delivery)]


async def test_a_line_continues_in_order_and_repeats_only_what_was_being_attempted(
    idle: Engine, workers: Workers, serve: Serve
) -> None:
    receiver = await serve(*[reply(200)] * BEFORE, never, reply(200))
    body = {"url": receiver.url, "eventTypes": [EventType.DATA_SOURCE_RUN]}
    async with idle.database.transaction() as work:
        endpoint = CreateWebhookEndpoint.model_validate(body)
        await create_endpoint(work, idle.actor, KeyRing([SECRET]), endpoint)
    for number in range(EVENTS):
        async with idle.database.transaction() as work:
            who, kind = idle.actor.principal, EventType.DATA_SOURCE_RUN
            await append_event(work, who, idle.actor.workspace_id, kind, {"number": number})
    first = await workers.start(prepared=ONE_AT_A_TIME)

    async def is_in_the_middle() -> bool:
        return len(receiver.requests) > BEFORE

    await eventually(is_in_the_middle, what="the call that is not answered")
    first.process.kill()
    await first.ended()
    await workers.start(prepared=ONE_AT_A_TIME)

    async def are_over() -> bool:
        statuses = [one.status for one in await deliveries(idle)]
        return len(statuses) == EVENTS and "pending" not in statuses

    await eventually(are_over, what="the end of the line")
    numbers = [call.json()["data"]["number"] for call in receiver.requests]
    assert numbers == [*range(BEFORE), BEFORE, *range(BEFORE, EVENTS)]
    ids = [call.headers["webhook-id"] for call in receiver.requests]
    assert ids[BEFORE] == ids[BEFORE + 1]
    ended = await deliveries(idle)
    assert {one.status for one in ended} == {"delivered"}
    assert [one.executions for one in ended] == [1] * EVENTS
    assert [one.attempts for one in ended] == [1] * BEFORE + [2] + [1] * (EVENTS - BEFORE - 1)
