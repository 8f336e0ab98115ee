"""Nodes that sign in through a connection: only one that their author saw, and no binding's."""

import pytest

from runtime.errors import NotFoundError, ValidationError
from tests.support.endpoint import Serve, reply
from tests.support.engine import KEYS, Engine, graph, node
from tests.support.spaces import make_space
from tests.workflows.action_runs.test_connected_calls import SECRET, connect


async def test_a_node_signs_in_and_its_secret_stays_out_of_the_run(
    engine: Engine, serve: Serve
) -> None:
    endpoint = await serve(reply(200, {"echo": f"Bearer {SECRET}"}))
    named = str(await connect(engine, endpoint.url))
    calling = node("call", "http_request", url=endpoint.url, connectionId=named)
    run = await engine.run(graph(calling))
    assert run.status == "succeeded", run
    assert endpoint.requests[0].headers["authorization"] == f"Bearer {SECRET}"
    assert SECRET not in run.model_dump_json()


async def test_a_binding_names_no_connection(engine: Engine, serve: Serve) -> None:
    endpoint = await serve(reply(200, {}))
    named = str(await connect(engine, endpoint.url))
    for value in ({"type": "literal", "value": named}, {"type": "trigger", "value": "id"}):
        bound = node("call", "http_request", url=endpoint.url, connectionId=value)
        with pytest.raises(ValidationError, match="Must be an id, not a binding"):
            await engine.publish(graph(bound))
    assert endpoint.requests == []


async def test_an_author_names_what_the_author_sees(engine: Engine, serve: Serve) -> None:
    endpoint = await serve(reply(200, {}))
    elsewhere = Engine(
        engine.database, engine.client, (await make_space(engine.database, KEYS)).actor
    )
    named = str(await connect(elsewhere, endpoint.url))
    calling = node("call", "http_request", url=endpoint.url, connectionId=named)
    with pytest.raises(NotFoundError):
        await engine.publish(graph(calling))
