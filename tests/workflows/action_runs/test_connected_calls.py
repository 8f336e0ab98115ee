"""Calls of actions that sign in through a connection."""

from typing import Any

import pytest

from models.core.base import Id
from models.sources.connections.providers import CreateConnection
from models.sources.connections.store import create_connection, delete_connection
from runtime.errors import ValidationError
from tests.support.actions import act, make
from tests.support.endpoint import Serve, reply
from tests.support.engine import KEYS, Engine

SECRET = "canary-5f2a"


async def connect(engine: Engine, url: str, **config: Any) -> Id:
    body = CreateConnection.model_validate(
        {
            "provider": "http",
            "label": "Goods",
            "config": {"baseUrl": url, **config},
            "credentials": {"secret": SECRET},
        }
    )
    async with engine.database.transaction() as work:
        return (await create_connection(work, engine.actor, KEYS, body)).id


async def test_a_call_signs_in_and_its_secret_stays_out_of_the_run(
    engine: Engine, serve: Serve
) -> None:
    endpoint = await serve(reply(200, {"echo": f"Bearer {SECRET}"}), reply(422, f"no {SECRET}"))
    connection_id = await connect(engine, endpoint.url)
    run = await act(engine, "http_request", url=endpoint.url, connectionId=str(connection_id))
    assert run.status == "succeeded", run
    assert endpoint.requests[0].headers["authorization"] == f"Bearer {SECRET}"
    assert SECRET not in run.model_dump_json()

    failed = await act(engine, "http_request", url=endpoint.url, connectionId=str(connection_id))
    assert failed.status == "failed"
    assert SECRET not in failed.model_dump_json()

    async with engine.database.transaction() as work:
        await delete_connection(work, engine.actor, connection_id)


async def test_a_call_elsewhere_sends_nothing(engine: Engine, serve: Serve) -> None:
    endpoint, elsewhere = await serve(reply(200, {})), await serve(reply(200, {}))
    connection_id = await connect(engine, endpoint.url)
    run = await act(engine, "http_request", url=elsewhere.url, connectionId=str(connection_id))
    assert run.status == "failed"
    assert run.error == "The connection is for another origin than the URL."
    assert elsewhere.requests == []


async def test_a_connection_that_a_binding_names_is_not_used(engine: Engine, serve: Serve) -> None:
    endpoint = await serve(reply(200, {}))
    connection_id = await connect(engine, endpoint.url)
    bound = {"type": "expression", "value": f"'{connection_id}'"}
    with pytest.raises(ValidationError) as refused:
        await make(engine, "http_request", url=endpoint.url, connectionId=bound)
    assert [one.path for one in refused.value.details] == ["config.connectionId"]
    assert endpoint.requests == []
