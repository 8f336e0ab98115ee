"""Pauses of connections: calls through one wait in order, say so, and are made after a resume."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import func, select, update

from models.automation.automations.shapes import AutomationDetail
from models.core.base import Id
from models.core.pauses.store import PauseShape, PauseWork
from models.sources.connections.providers import CreateConnection
from models.sources.connections.store import create_connection, delete_connection
from models.sources.outbound_limits.commands import call_back, pause_of
from models.sources.outbound_limits.queries import ResumeConnection
from models.sources.outbound_limits.tables import outbound_call, outbound_place
from models.sources.outbound_limits.turns import Call, ask, leave_lines
from models.workspace import pauses
from runtime.ids import new_id
from tests.support import actions
from tests.support.automations import read
from tests.support.client import Client
from tests.support.endpoint import Endpoint, Serve, reply
from tests.support.engine import KEYS, Engine, graph, node
from tests.support.patience import ENOUGH, eventually
from tests.support.sources import goods, make_source
from tests.support.spaces import Space

pytestmark = pytest.mark.takes(seconds=15)


async def connect(engine: Engine, url: str) -> Id:
    body = CreateConnection.model_validate(
        {
            "provider": "http",
            "label": "Goods",
            "shared": True,
            "config": {"baseUrl": url},
            "credentials": {"secret": "canary-8812"},
        }
    )
    async with engine.database.transaction() as work:
        return (await create_connection(work, engine.actor, KEYS, body)).id


async def pause(engine: Engine, connection_id: Id, reason: str = "It moves.") -> None:
    async with engine.database.transaction() as work:
        await pauses.pause_connection(work, engine.actor, connection_id, PauseWork(reason=reason))


async def resume(engine: Engine, connection_id: Id, rate: int | None = None) -> None:
    async with engine.database.transaction() as work:
        body = ResumeConnection(rate=rate)
        await pauses.resume_connection(work, engine.actor, connection_id, body)


async def shown(engine: Engine, connection_id: Id) -> PauseShape:
    async with engine.database.reading() as work:
        return await pause_of(work, engine.actor, connection_id)


async def until_waiting(engine: Engine, connection_id: Id, count: int) -> None:
    """Wait until this number of calls are queued, and their activities have ended."""

    async def waits() -> bool:
        place, call = outbound_place.c, outbound_call.c
        async with engine.database.reading() as work:
            away = (
                select(func.count())
                .join(outbound_place, place.id == call.place_id)
                .where(place.connection_id == connection_id, call.execution.is_not(None))
            )
            return bool(await work.scalar(away) == count)

    await eventually(waits, f"{count} calls in line")


def asked(endpoint: Endpoint) -> list[str]:
    """The numbers of the calls that have arrived, in their order."""
    return [one.line.partition("?n=")[2][0] for one in endpoint.requests]


async def workers_were_away(engine: Engine, connection_id: Id) -> None:
    """Let the calls in line be without a worker for a minute."""
    async with engine.database.transaction() as work:
        mine = select(outbound_place.c.id).where(outbound_place.c.connection_id == connection_id)
        ended = func.clock_timestamp() - timedelta(minutes=1)
        line = update(outbound_call).where(outbound_call.c.place_id.in_(mine))
        await work.execute(line.values(ends_at=ended))


def waiting_are(engine: Engine, connection_id: Id, count: int) -> Callable[[], Awaitable[bool]]:
    """True once this number of calls wait."""

    async def are() -> bool:
        return (await shown(engine, connection_id)).resting == count

    return are


async def line_of(engine: Engine, connection_id: Id) -> list[Id]:
    """The runs whose calls wait, in the order of their line."""
    async with engine.database.reading() as work:
        rows = await work.rows(
            select(outbound_call.c.work_id)
            .join(outbound_place, outbound_place.c.id == outbound_call.c.place_id)
            .where(outbound_place.c.connection_id == connection_id, ~outbound_call.c.gone)
            .order_by(outbound_call.c.position)
        )
    return [row.work_id for row in rows]


async def calling(engine: Engine, endpoint: Endpoint, connection_id: Id) -> AutomationDetail:
    """An automation that calls a server through a connection, with its payload in the URL."""
    url = {"type": "expression", "value": f"'{endpoint.url}?n=' + string(trigger.n)"}
    call = node("call", "http_request", url=url, connectionId=str(connection_id))
    return await engine.publish(graph(call))


@pytest.mark.long
async def test_runs_wait_in_order_say_so_and_go_after_a_resume(
    engine: Engine, serve: Serve
) -> None:
    endpoint = await serve(reply(200))
    connection_id = await connect(engine, endpoint.url)
    made = await calling(engine, endpoint, connection_id)
    await pause(engine, connection_id)
    runs = []
    for number in range(4):
        runs.append(await engine.start(made.id, {"n": number}))
        await until_waiting(engine, connection_id, number + 1)
    assert endpoint.requests == []
    run = await engine.get(made.id, runs[0])
    waits = run.metadata["waitingFor"]
    assert (run.status, waits["kind"], waits["subject"]) == ("running", "paused", "connection")
    assert (waits["subjectId"], waits["reason"]) == (str(connection_id), "It moves.")
    assert (await shown(engine, connection_id)).resting == 4
    await workers_were_away(engine, connection_id)
    runs.append(await engine.start(made.id, {"n": 4}))
    await until_waiting(engine, connection_id, 5)
    assert await line_of(engine, connection_id) == runs
    # At a call a minute only the first one has a time.
    await resume(engine, connection_id, rate=1)
    assert (await shown(engine, connection_id)).state == "resuming"
    await eventually(waiting_are(engine, connection_id, 4), "the first call")
    await asyncio.wait_for(endpoint.reached.wait(), ENOUGH)
    assert asked(endpoint) == ["0"]
    assert await line_of(engine, connection_id) == runs[1:]
    await resume(engine, connection_id)
    for run_id in runs:
        ended = await engine.ended(made.id, run_id)
        assert (ended.status, ended.node_runs[0].attempt) == ("succeeded", 1)
        assert "waitingFor" not in ended.metadata
    assert sorted(asked(endpoint)) == ["0", "1", "2", "3", "4"]
    assert (await shown(engine, connection_id)).state == "running"


@pytest.mark.long
async def test_a_resume_at_once_leaves_nothing(engine: Engine, serve: Serve) -> None:
    endpoint = await serve(reply(200))
    connection_id = await connect(engine, endpoint.url)
    made = await calling(engine, endpoint, connection_id)
    await pause(engine, connection_id)
    runs = [await engine.start(made.id, {"n": number}) for number in range(5)]
    await until_waiting(engine, connection_id, 5)
    await resume(engine, connection_id)
    for run_id in runs:
        assert (await engine.ended(made.id, run_id)).status == "succeeded"
    async with engine.database.reading() as work:
        mine = select(outbound_place.c.id).where(outbound_place.c.connection_id == connection_id)
        assert await work.first(mine) is None


@pytest.mark.long
async def test_a_pause_stops_a_release_and_a_step_that_has_begun_continues(
    engine: Engine, serve: Serve
) -> None:
    endpoint = await serve(reply(200))
    connection_id = await connect(engine, endpoint.url)
    made = await calling(engine, endpoint, connection_id)
    await pause(engine, connection_id)
    runs = [await engine.start(made.id, {"n": number}) for number in range(3)]
    await until_waiting(engine, connection_id, 3)
    # The first one goes, and the next one a minute later.
    await resume(engine, connection_id, rate=1)
    await eventually(waiting_are(engine, connection_id, 2), "the first call")
    await asyncio.wait_for(endpoint.reached.wait(), ENOUGH)
    await pause(engine, connection_id, "Again.")
    assert (await shown(engine, connection_id)).resting == 2
    assert len(endpoint.requests) == 1
    call = Call(engine.actor.workspace_id, new_id(), "begun/2", "127.0.0.1", connection_id, True)
    async with engine.database.transaction() as work:
        assert not await ask(work, call), "it goes at once"
        assert await ask(work, replace(call, key="begun/1", passes=False))
        await leave_lines(work, call.workspace_id, [call.work_id])
    await resume(engine, connection_id)
    for run_id in runs:
        assert (await engine.ended(made.id, run_id)).status == "succeeded"
    assert len(endpoint.requests) == 3


@pytest.mark.long
async def test_a_cancel_ends_a_run_that_waits_at_once(engine: Engine, serve: Serve) -> None:
    endpoint = await serve(reply(200))
    connection_id = await connect(engine, endpoint.url)
    made = await calling(engine, endpoint, connection_id)
    await pause(engine, connection_id)
    gone, kept = [await engine.start(made.id, {"n": number}) for number in range(2)]
    await until_waiting(engine, connection_id, 2)
    assert (await engine.cancel(made.id, gone)).status == "cancelled"
    assert (await shown(engine, connection_id)).resting == 1, "it has left the line"
    await resume(engine, connection_id)
    assert (await engine.ended(made.id, kept)).status == "succeeded"
    assert asked(endpoint) == ["1"]
    assert (await engine.get(made.id, gone)).status == "cancelled"


@pytest.mark.long
async def test_calls_of_a_deleted_connection_fail(engine: Engine, serve: Serve) -> None:
    endpoint = await serve(reply(200))
    connection_id = await connect(engine, endpoint.url)
    made = await calling(engine, endpoint, connection_id)
    await pause(engine, connection_id)
    run_id = await engine.start(made.id, {"n": 0})
    await until_waiting(engine, connection_id, 1)
    async with engine.database.transaction() as work:
        await call_back(work, engine.actor.workspace_id, connection_id)
        await delete_connection(work, engine.actor, connection_id)
    ended = await engine.ended(made.id, run_id)
    assert (ended.status, endpoint.requests) == ("failed", [])


@pytest.mark.long
async def test_an_action_and_a_refresh_wait_and_say_so(
    client: Client, space: Space, engine: Engine, serve: Serve
) -> None:
    engine = replace(engine, actor=space.actor)
    endpoint = await serve(goods(("a", "Apple", 1)))
    connection_id = await connect(engine, endpoint.url)
    await pause(engine, connection_id)
    action_id = await actions.make(
        engine, "http_request", url=endpoint.url, connectionId=str(connection_id)
    )
    run_id = await actions.start(engine, action_id)
    auth = {"type": "connection", "connectionId": str(connection_id)}
    source = await make_source(client, space, serve, config={"url": endpoint.url, "auth": auth})
    accepted = read(await client.post(f"{source.path}/refresh", json={}))
    await until_waiting(engine, connection_id, 2)
    run = await actions.get(engine, action_id, run_id)
    assert run.metadata["waitingFor"]["subjectId"] == str(connection_id)
    page = f"/v1/data-source-runs/{accepted['id']}"
    assert read(await client.get(page))["run"]["waitingFor"]["reason"] == "It moves."
    await resume(engine, connection_id)
    assert (await actions.ended(engine, action_id, run_id)).status == "succeeded"
    assert (await source.ended(accepted["id"]))["status"] == "succeeded"
    assert "waitingFor" not in read(await client.get(page))["run"]
