"""Nothing of a secret is anywhere but where it is sealed and where it was sent.

Planted secrets go through every flow that takes one; then all tables, histories and logs are read.
"""

import asyncio
import base64
import html
import json
import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, quote_plus
from uuid import uuid4

import pytest
import structlog
from sqlalchemy import text

from models.automation.secrets.store import PutSecret, put_secret
from models.core.access.rules import Actor, Role
from models.tables import metadata
from runtime.database import Database
from runtime.observability.logs import configure_logging
from runtime.temporal.workflow_kinds import WorkflowKind
from tests.support.actions import step
from tests.support.automations import path_of, publish, read
from tests.support.client import Client
from tests.support.endpoint import Endpoint, Received, Script, Serve, reply
from tests.support.engine import KEYS, Engine, Json, graph, node
from tests.support.hooks import make_hook, send
from tests.support.incidents import grouped
from tests.support.patience import eventually
from tests.support.spaces import Space


def bind(kind: str, value: Any) -> Json:
    return {"type": kind, "value": value}


@pytest.fixture
def logged() -> Iterator[list[str]]:
    """The lines of the log, written as processes write them at their most talkative."""
    lines: list[str] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(self.format(record))

    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    configure_logging("json", "debug")
    # A replay in the same process silences the SDK.
    logging.getLogger("temporalio").setLevel(logging.NOTSET)
    # What is logged while this test runs must not keep its configuration.
    structlog.configure(cache_logger_on_first_use=False)
    handler = Kept()
    handler.setFormatter(root.handlers[0].formatter)
    root.handlers[:] = [handler]
    yield lines
    root.handlers[:], root.level = handlers, level
    structlog.reset_defaults()


def spellings(canary: str) -> set[str]:
    """How a text may be written in JSON, in bytes shown as hexadecimal, or encoded."""
    raw = canary.encode()
    # All but the characters at either end, which depend on what stands before and behind.
    encoded = {base64.b64encode(b" " * before + raw).decode()[4:-4] for before in range(3)}
    return {canary, raw.hex(), *encoded}


async def rows_with(database: Database, canaries: Iterable[str]) -> list[tuple[str, str]]:
    """Tables and canaries, for every row of any table in which one is found."""
    wanted = {spelled: canary for canary in canaries for spelled in spellings(canary)}
    found: set[tuple[str, str]] = set()
    async with database.transaction() as work:
        for table in metadata.sorted_tables:
            rows = await work.rows(text(f"SELECT to_jsonb(t)::text FROM {table.name} t"))  # noqa: S608
            shown = "\n".join(row for (row,) in rows)
            found |= {(table.name, wanted[spelled]) for spelled in wanted if spelled in shown}
    return sorted(found)


async def history(engine: Engine, run_id: Any) -> str:
    handle = engine.client.get_workflow_handle(WorkflowKind.AUTOMATION_RUN.workflow_id(run_id))
    return (await handle.fetch_history()).to_json()


async def nowhere(
    engine: Engine, logged: list[str], run_ids: Iterable[Any], canaries: Iterable[str]
) -> None:
    """No table, no history of these runs and no line of the log has any of the canaries."""
    canaries = list(canaries)
    assert await rows_with(engine.database, canaries) == []
    for run_id in run_ids:
        told = await history(engine, run_id)
        assert [one for one in canaries for spelled in spellings(one) if spelled in told] == []
    assert logged
    assert [line for line in logged for one in canaries if one in line] == []


async def keep(engine: Engine, actor: Actor, name: str, value: str) -> None:
    async with engine.database.transaction() as work:
        await put_secret(work, actor, KEYS, name, PutSecret(value=value))


def echoes(secret: str) -> Json:
    """What a server answers that knows the secret."""
    return {"told": secret, "nested": [{secret: f"Bearer {secret}"}]}


async def test_a_secret_that_is_sent_in_every_way(
    engine: Engine, serve: Serve, logged: list[str]
) -> None:
    canary = f"canary{uuid4().hex}"
    await keep(engine, engine.actor, "CANARY", canary)
    value = bind("secret", "CANARY")
    good = await serve(reply(200, echoes(canary), x_echo=canary))
    bad = await serve(reply(422, echoes(canary), x_echo=canary))
    sent = {
        "auth": {"type": "bearer", "token": value},
        "headers": {"X-Key": value},
        "query": {"k": value},
        "body": {"k": value},
        "method": "POST",
        "retry": {"maxAttempts": 2, "initialDelaySeconds": 0},
    }
    nodes = [
        node("good", "http_request", url=good.url, **sent),
        node("bad", "http_request", url=bad.url, **sent),
        node("odd", "http_request", url=value),
        node("wide", "http_request", url=good.url, headers={"X": value}, expectStatus=[value]),
        node("mail", "send_email", to=["a@example.test"], subject=value, body=value),
        node("hook", "send_webhook", url=good.url, type="x", data={"k": value}),
    ]
    automation = await engine.publish({**graph(*nodes), "onError": "continue"})
    run_id = await engine.start(automation.id)
    run = await engine.ended(automation.id, run_id)
    assert {one.node_id for one in run.node_runs} == {one["id"] for one in nodes}
    assert any(canary in json.dumps(got.headers) for got in good.requests)
    assert any(canary in got.body for got in good.requests)
    await nowhere(engine, logged, [run_id], [canary])


async def test_the_secrets_of_a_webhook_and_of_what_waits_behind_it(
    engine: Engine, client: Client, space: Space, app: Any, serve: Serve, logged: list[str]
) -> None:
    canary = f"canary{uuid4().hex}"
    await keep(engine, space.actor, "CANARY", canary)
    endpoint = await serve(reply(200, echoes(canary)))
    auth = {"type": "bearer", "token": bind("secret", "CANARY")}
    drawn = graph(
        node("call", "http_request", url=endpoint.url, auth=auth),
        node("wait", "wait_event", eventKey="order"),
        node("answer", "respond", body=bind("node", "call")),
        edges=[("call", "wait"), ("wait", "answer")],
    )
    made = await make_hook(client, space, drawn)
    stranger = client.with_token(None)
    run_id = read(await send(stranger, made), 202)["runId"]
    once = {"Idempotency-Key": uuid4().hex}
    rotate = f"{path_of(made)}/rotate-webhook-secret"
    rotated = read(await client.post(rotate, json={}, headers=once))
    assert read(await client.post(rotate, json={}, headers=once)) == rotated
    assert read(await send(stranger, rotated), 202)
    run_path = f"{path_of(made)}/runs/{run_id}"
    resume: list[str] = []

    async def waits() -> bool:
        nodes = read(await client.get(run_path))["nodeRuns"]
        told = [one["metadata"].get("wait", {}) for one in nodes]
        resume[:] = [one["resumeUrl"] for one in told if "resumeUrl" in one]
        return bool(resume)

    await eventually(waits, what="a wait")
    assert (await stranger.post(resume[0], json={"data": {"n": 1}})).is_success

    async def ended() -> bool:
        return bool(read(await client.get(run_path))["status"] == "succeeded")

    await eventually(ended, what="the end of the run")
    await app.state.services.request_log.flush()
    secrets = [one["webhookSecret"].removeprefix("whsec_") for one in (made, rotated)]
    keys = [base64.b64decode(one).hex() for one in secrets]
    token = resume[0].rpartition("/")[2]
    assert endpoint.requests[0].headers["authorization"] == f"Bearer {canary}"
    await nowhere(engine, logged, [run_id], [canary, *secrets, *keys, token, space.token])


# ---- services that repeat what they are sent


def quarrelsome(canary: str) -> dict[str, str]:
    """Secrets whose parts, each of them a canary, are easily taken for something else."""
    lines = "\n".join(f"{canary}{line}{'k' * 30}" for line in range(4))
    return {
        "cut": canary * 2,
        "key": f"-----BEGIN PRIVATE KEY-----\n{lines}\n-----END PRIVATE KEY-----\n",
        "spaced": f"{canary}  battery staple",
        "quoted": f'"{canary}" & "{canary}"',
    }


def repeats(status: int, requests: list[Received]) -> Script:
    """A service that says what it was sent: cut by others, collapsed, and escaped twice."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        got = requests[-1]
        sent = got.json()["k"]
        twice = json.dumps(json.dumps({"got": got.body}))
        encoded = base64.b64encode(f"key:{sent}".encode()).decode()
        parts = ("x" * 470 + sent, twice, quote_plus(sent), html.escape(sent), encoded)
        writer.write(reply(status, "\n".join(parts), type_="text/plain", x_echo=quote(sent)))
        await writer.drain()

    return answer


async def repeating(serve: Serve, status: int) -> Endpoint:
    endpoint = await serve(b"")
    endpoint.answers[:] = [repeats(status, endpoint.requests)]
    return endpoint


class Repeating(NamedTuple):
    """An automation whose nodes, and an action, send secrets to who repeats them."""

    automation: Json
    action_id: str
    good: dict[str, Endpoint]
    bad: dict[str, Endpoint]


async def sending(client: Client, space: Space, serve: Serve, names: Collection[str]) -> Repeating:
    """Send each secret to a service that refuses it, by node and by step, and to another."""
    first, *others = names
    bad = {name: await repeating(serve, 400) for name in names}
    good = {name: await repeating(serve, 200) for name in names}

    def sends(name: str, endpoints: Mapping[str, Endpoint]) -> Json:
        value = bind("secret", name)
        return {"method": "POST", "url": endpoints[name].url, "body": {"k": value}}

    steps = [step(name, "http_request", **sends(name, bad)) for name in (*others, first)]
    for one in steps[:-1]:
        one["continueOnError"] = True
    act = {"label": "Act", "kind": "sequence", "config": {"kind": "sequence", "steps": steps}}
    action = read(await client.post(f"{space.path}/actions", json=act), 201)
    nodes = [node(f"bad-{name}", "http_request", **sends(name, bad)) for name in names]
    nodes += [node(f"good-{name}", "http_request", **sends(name, good)) for name in names]
    nodes.append({"id": "act", "kind": "action", "actionId": action["id"], "input": {}})
    drawn = {**graph(*nodes), "onError": "continue"}
    made = await publish(client, space, trigger="manual", graph=drawn)
    return Repeating(made, action["id"], good, bad)


@pytest.mark.long
async def test_a_secret_that_a_service_repeats_is_not_shown(
    engine: Engine, client: Client, space: Space, serve: Serve, logged: list[str]
) -> None:
    canary = f"canary{uuid4().hex}"
    secrets = quarrelsome(canary)
    for name, secret in secrets.items():
        await keep(engine, space.actor, name, secret)
    made, action_id, good, bad = await sending(client, space, serve, secrets)
    run_id = read(await client.post(f"{path_of(made)}/run", json={}))["id"]

    async def ended() -> bool:
        shown = read(await client.get(f"{path_of(made)}/runs/{run_id}"))
        return shown["status"] in ("failed", "succeeded")

    await eventually(ended, what="the end of the run")
    for name, secret in secrets.items():
        sent = [got.json()["k"] for got in (*good[name].requests, *bad[name].requests)]
        assert sent == [secret] * 3
    _, viewer = await space.member(Role.VIEWER)
    seen = client.with_token(viewer)
    run = await seen.get(f"{path_of(made)}/runs/{run_id}")
    errors = {one["nodeId"]: one.get("error") for one in read(run)["nodeRuns"]}
    assert errors["bad-cut"].startswith("The server returned 400. The response is hidden")
    await grouped(engine.database)
    told = [
        run,
        await seen.get(f"{space.path}/actions/{action_id}/runs"),
        await client.get(f"{space.path}/notifications"),
    ]
    assert "failed" in told[-1].text
    (line,) = [told for told in map(json.loads, logged) if told["event"] == "automation_run_failed"]
    assert (line["run_id"], line["automation_id"]) == (run_id, made["id"])
    assert (line["node_id"].partition("-")[0], line["code"]) == ("bad", "http_400")
    for answer in told:
        assert answer.is_success
        assert [text for text in spellings(canary) if text in answer.text] == []
    await nowhere(engine, logged, [run_id], [canary])


def test_lines_of_libraries_that_quote_requests_are_not_written(logged: list[str]) -> None:
    for library in ("httpcore2.http11", "httpx2", "hpack.hpack"):
        logging.getLogger(library).info("return_value=%s", b"canary")
    assert logged == []
