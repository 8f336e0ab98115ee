"""A server that fails and works again, as an alert rule of its connection sees it."""

import asyncio
from dataclasses import replace

import pytest

from tests.support.alerts import alerts, evaluated, make_rule, state_of
from tests.support.endpoint import Serve, reply
from tests.support.engine import KEYS, Engine, graph, node
from tests.support.spaces import make_space
from tests.workflows.action_runs.test_connected_calls import connect

pytestmark = pytest.mark.long


async def test_a_failing_server_fires_its_alert_until_it_answers_again(
    engine: Engine, serve: Serve
) -> None:
    space = await make_space(engine.database, KEYS)
    engine = replace(engine, actor=space.actor)
    works = asyncio.Event()

    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(reply(200 if works.is_set() else 503, {}))
        await writer.drain()

    server = await serve(answer)
    connection_id = await connect(engine, server.url)
    condition = {"kind": "connection_failing", "connectionId": connection_id, "failures": 3}
    rule = await make_rule(space, condition, label="Payments")
    url, named = server.url, str(connection_id)
    calling = await engine.publish(graph(node("call", "http_request", url=url, connectionId=named)))
    for number in range(3):
        run = await engine.ended(calling.id, await engine.start(calling.id))
        assert run.status == "failed"
        await evaluated(space)
        state = await state_of(space, rule.id)
        assert state.state == ("firing" if number == 2 else "ok")
    assert "3 calls in a row failed" in (state.message or "")
    works.set()
    run = await engine.ended(calling.id, await engine.start(calling.id))
    assert run.status == "succeeded"
    await evaluated(space)
    assert (await state_of(space, rule.id)).state == "ok"
    assert await alerts(space) == ["Payments", "Resolved: Payments"]
