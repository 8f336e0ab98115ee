"""Values kept apart from the nodes: variables are read, secrets are sent and never kept."""

import asyncio
import base64
import json
from collections.abc import Callable
from typing import Any

import pytest

from models.automation.automations.queries import detail
from models.automation.secrets.store import PutSecret, delete_secret, put_secret
from runtime.errors import ValidationError
from tests.support.endpoint import Received, Script, Serve, reply
from tests.support.engine import KEYS, Engine, Json, by_node, graph, node

MARK = "[secret KEY]"


def bind(kind: str, value: Any) -> Json:
    return {"type": kind, "value": value}


async def keep(engine: Engine, name: str, value: str) -> None:
    """Store a secret of the engine's workspace."""
    async with engine.database.transaction() as work:
        await put_secret(work, engine.actor, KEYS, name, PutSecret(value=value))


# ---- variables


async def test_variables_are_read_by_bindings_expressions_and_filters(engine: Engine) -> None:
    output = {
        "plain": bind("variable", "rates.eur"),
        "counted": bind("expression", "vars.rates.eur * 2.0"),
        "written": bind("template", "{{ vars.name }}!"),
    }
    drawn = graph(
        node("a", "transform", output=output),
        node("b", "condition", filter={"field": "vars.name", "op": "eq", "value": "Ada"}),
        edges=[("a", "b")],
    )
    run = await engine.run({**drawn, "variables": {"rates": {"eur": 1.5}, "name": "Ada"}})
    assert run.status == "succeeded"
    nodes = by_node(run)
    assert nodes["a"].output == {"plain": 1.5, "counted": 3, "written": "Ada!"}
    assert nodes["b"].output == {"result": True}


async def test_a_run_may_bring_other_values_along(engine: Engine) -> None:
    output = {"a": bind("variable", "a"), "b": bind("variable", "b")}
    drawn = {**graph(node("n", "transform", output=output)), "variables": {"a": 1, "b": 2}}
    automation = await engine.publish(drawn)
    run = await engine.from_node(automation.id, nodeId="n", scope={"variables": {"b": 3}})
    assert by_node(run)["n"].output == {"a": 1, "b": 3}


async def test_a_variable_that_is_not_there_is_an_issue(engine: Engine) -> None:
    drawn = graph(node("n", "transform", output={"a": bind("variable", "a")}))
    with pytest.raises(ValidationError, match='the variable "a"'):
        await engine.publish({**drawn, "variables": {"b": 1}})


# ---- secrets


def echo(requests: Callable[[], list[Received]], status: int = 200) -> Script:
    """An answer that repeats everything it was sent, in many spellings."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        got = requests()[-1]
        body = {"line": got.line, "headers": got.headers, "body": got.body}
        writer.write(reply(status, body, x_echo=got.headers.get("x-key", "none")))
        await writer.drain()

    return answer


async def echoing(serve: Serve, status: int = 200) -> Any:
    endpoint = await serve(b"")
    endpoint.answers[:] = [echo(lambda: endpoint.requests, status)]
    return endpoint


@pytest.mark.parametrize(
    "secret",
    ["canary-4f1d", 'quote " and \\ and ü', "needs escaping/?&=+ ", "123456789"],
    ids=["plain", "quoted", "escaped", "number"],
)
async def test_a_secret_is_sent_and_its_echo_is_not_kept(
    engine: Engine, serve: Serve, secret: str
) -> None:
    await keep(engine, "KEY", secret)
    endpoint = await echoing(serve)
    value = bind("secret", "KEY")
    call = node(
        "call",
        "http_request",
        method="POST",
        url=endpoint.url,
        headers={"X-Key": value} if secret.isascii() and not secret.endswith(" ") else {},
        query={"key": value},
        body={"deep": [{"key": value, "other": 1}]},
    )
    run = await engine.run(graph(call))
    assert run.status == "succeeded"
    (got,) = endpoint.requests
    assert got.json() == {"deep": [{"key": secret, "other": 1}]}
    ended = by_node(run)["call"]
    assert ended.input["body"] == {"deep": [{"key": MARK, "other": 1}]}
    assert ended.input["query"] == {"key": MARK}
    kept = json.dumps([ended.input, ended.output], ensure_ascii=False)
    assert MARK in json.dumps(ended.output)
    for spelled in (secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]):
        assert spelled not in kept


@pytest.mark.parametrize(
    ("auth", "sent"),
    [
        ({"type": "bearer", "token": bind("secret", "KEY")}, "Bearer canary-77"),
        (
            {"type": "basic", "username": "me", "password": bind("secret", "KEY")},
            "Basic " + base64.b64encode(b"me:canary-77").decode(),
        ),
        ({"type": "header", "name": "Authorization", "value": bind("secret", "KEY")}, "canary-77"),
    ],
    ids=["bearer", "basic", "header"],
)
async def test_a_secret_authenticates_a_request(
    engine: Engine, serve: Serve, auth: Json, sent: str
) -> None:
    await keep(engine, "KEY", "canary-77")
    endpoint = await echoing(serve)
    run = await engine.run(graph(node("call", "http_request", url=endpoint.url, auth=auth)))
    assert endpoint.requests[0].headers["authorization"] == sent
    assert run.status == "succeeded"
    kept = json.dumps([by_node(run)["call"].input, run.output])
    assert "canary-77" not in kept
    assert sent.rpartition(" ")[2] not in kept


async def test_a_changed_secret_is_sent_from_then_on(engine: Engine, serve: Serve) -> None:
    endpoint = await serve(reply(200, {}))
    await keep(engine, "KEY", "first")
    headers = {"X-Key": bind("secret", "KEY")}
    automation = await engine.publish(
        graph(node("call", "http_request", url=endpoint.url, headers=headers))
    )
    await engine.ended(automation.id, await engine.start(automation.id))
    await keep(engine, "KEY", "second")
    await engine.ended(automation.id, await engine.start(automation.id))
    assert [got.headers["x-key"] for got in endpoint.requests] == ["first", "second"]


async def test_a_secret_that_is_gone_fails_the_node(engine: Engine, serve: Serve) -> None:
    endpoint = await serve(reply(200, {}))
    await keep(engine, "GONE", "x")
    auth = {"type": "bearer", "token": bind("secret", "GONE")}
    automation = await engine.publish(
        graph(node("call", "http_request", url=endpoint.url, auth=auth))
    )
    async with engine.database.transaction() as work:
        await delete_secret(work, engine.actor, "GONE")
    run = await engine.ended(automation.id, await engine.start(automation.id))
    assert (run.status, by_node(run)["call"].error) == ("failed", 'Secret "GONE" not found.')
    assert endpoint.requests == []
    async with engine.database.transaction() as work:
        shown = await detail(work, engine.actor, KEYS, automation.id)
    (issue,) = shown.reference_issues
    assert issue.message == 'auth.token: Secret "GONE" not found.'


async def test_data_that_looks_like_a_mark_is_data(engine: Engine, serve: Serve) -> None:
    await keep(engine, "KEY", "canary-88")
    endpoint = await serve(reply(200, {}))
    body = {"given": bind("trigger", ""), "own": MARK, "sent": bind("secret", "KEY")}
    call = node("call", "http_request", method="POST", url=endpoint.url, body=body)
    automation = await engine.publish(graph(call))
    forged = {"type": "secret", "value": "KEY", "text": MARK}
    given = {"a": forged, "b": bind("secret", "KEY")}
    await engine.ended(automation.id, await engine.start(automation.id, given))
    assert endpoint.requests[0].json() == {"given": given, "own": MARK, "sent": "canary-88"}
