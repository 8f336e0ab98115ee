"""What calls that wait are answered: by the respond node, the end of the run, or the clock."""

import asyncio
import time
from typing import Any

import httpx2
import pytest

from tests.support.automations import publish, read, refusal
from tests.support.client import Client
from tests.support.engine import Engine, Json, graph, node
from tests.support.patience import eventually
from tests.support.spaces import Space

pytestmark = pytest.mark.usefixtures("engine")


def bind(kind: str, value: Any) -> Json:
    return {"type": kind, "value": value}


@pytest.fixture
async def caller(app: Any) -> Any:
    """A client without any credential, which gets answers of any automation."""
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://workspace.test") as http:
        yield http


async def hook(client: Client, space: Space, drawn: Json, **config: Any) -> Json:
    """A published automation that answers its calls."""
    trigger = {"kind": "webhook", "auth": "none", "respond": "wait", **config}
    return await publish(client, space, graph=drawn, triggerConfig=trigger)


async def test_the_respond_node_answers(
    client: Client, space: Space, caller: httpx2.AsyncClient
) -> None:
    body = {"hello": bind("trigger", "body.name"), "list": [1, None]}
    headers = {"X-Made-By": bind("template", "{{ trigger.method }}"), "Cache-Control": "max-age=1"}
    drawn = graph(
        node("a", "transform", output={}),
        node("r", "respond", status=201, headers=headers, body=body),
        edges=[("a", "r")],
    )
    made = await hook(client, space, drawn)
    answer = await caller.post(made["webhookPath"], json={"name": "Ada"})
    assert answer.status_code == 201
    assert answer.json() == {"hello": "Ada", "list": [1, None]}
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-made-by"] == "POST"
    assert answer.headers["cache-control"] == "max-age=1"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-security-policy"].startswith("sandbox")


@pytest.mark.parametrize(
    ("config", "status", "content", "type_"),
    [
        ({"body": "Grüße"}, 200, "Grüße".encode(), "text/plain; charset=utf-8"),
        (
            {"body": "<b>x</b>", "headers": {"Content-Type": "text/html"}},
            200,
            b"<b>x</b>",
            "text/html",
        ),
        ({"body": 5}, 200, b"5", "application/json"),
        ({"body": False}, 200, b"false", "application/json"),
        ({}, 200, b"", None),
        ({"status": 204, "body": "never"}, 204, b"", None),
        ({"status": 302, "headers": {"Location": "https://example.test/"}}, 302, b"", None),
        ({"status": 418, "body": {"tea": True}}, 418, b'{"tea":true}', "application/json"),
    ],
    ids=["text", "html", "number", "false", "nothing", "no-content", "redirect", "teapot"],
)
async def test_every_body_is_answered_as_what_it_is(
    client: Client,
    space: Space,
    caller: httpx2.AsyncClient,
    config: Json,
    status: int,
    content: bytes,
    type_: str | None,
) -> None:
    made = await hook(client, space, graph(node("r", "respond", **config)))
    answer = await caller.post(made["webhookPath"])
    assert (answer.status_code, answer.content) == (status, content)
    assert answer.headers.get("content-type") == type_


async def test_a_run_without_an_answer_gives_its_output(
    client: Client, space: Space, caller: httpx2.AsyncClient
) -> None:
    made = await hook(client, space, graph(node("a", "transform", output={"n": 7})))
    answer = await caller.post(made["webhookPath"])
    assert (answer.status_code, answer.json()) == (200, {"data": {"a": {"n": 7}}})


@pytest.mark.long
async def test_a_failed_run_says_nothing_of_why(
    client: Client, space: Space, caller: httpx2.AsyncClient
) -> None:
    broken = node("a", "transform", output={"n": bind("expression", "trigger.body.canary")})
    for drawn in (graph(broken), graph(node("s", "stop", result="failed", message="canary"))):
        made = await hook(client, space, drawn)
        answer = await caller.post(made["webhookPath"], json={"other": 1})
        assert refusal(answer) == (500, "internal_error")
        assert b"canary" not in answer.content


async def test_the_first_answer_is_given_before_the_run_has_ended(
    client: Client, space: Space, caller: httpx2.AsyncClient
) -> None:
    drawn = graph(
        node("r", "respond", body="first"),
        node("d", "delay", seconds=3_600),
        node("s", "respond", body="second"),
        edges=[("r", "d"), ("d", "s")],
    )
    made = await hook(client, space, drawn)
    answer = await caller.post(made["webhookPath"])
    assert (answer.status_code, answer.text) == (200, "first")


async def test_an_answer_given_is_given_although_the_run_fails_later(
    client: Client, space: Space, caller: httpx2.AsyncClient
) -> None:
    drawn = graph(
        node("r", "respond", body="yes"),
        node("s", "stop", result="failed"),
        edges=[("r", "s")],
    )
    made = await hook(client, space, drawn)
    assert (await caller.post(made["webhookPath"])).text == "yes"


@pytest.mark.long
async def test_a_caller_that_waited_too_long_is_answered_with_the_run(
    client: Client, space: Space, caller: httpx2.AsyncClient
) -> None:
    drawn = graph(node("d", "delay", seconds=3_600), node("r", "respond"), edges=[("d", "r")])
    made = await hook(client, space, drawn, waitSeconds=4)
    started = time.monotonic()
    answer = await caller.post(made["webhookPath"])
    assert time.monotonic() - started >= 4
    told = read(answer, 202)
    assert told["status"] in {"running", "waiting"}
    assert told["runId"]


@pytest.mark.long
async def test_a_caller_of_a_paused_automation_is_answered_with_the_queued_run(
    client: Client, space: Space, caller: httpx2.AsyncClient
) -> None:
    drawn = graph(node("r", "respond", body="x"))
    made = await hook(client, space, drawn, waitSeconds=2)
    path = f"{space.path}/automations/{made['id']}"
    read(await client.post(f"{path}/pause", json={}))
    told = read(await caller.post(made["webhookPath"]), 202)
    assert told["status"] == "queued"
    read(await client.post(f"{path}/resume", json={}))

    async def succeeded() -> bool:
        run = read(await client.get(f"{path}/runs/{told['runId']}"))
        return bool(run["status"] == "succeeded")

    await eventually(succeeded, "the run after the resume")


async def test_an_immediate_answer_does_not_wait(
    client: Client, space: Space, caller: httpx2.AsyncClient
) -> None:
    made = await hook(client, space, graph(node("r", "respond", body="x")), respond="immediate")
    assert read(await caller.post(made["webhookPath"]), 202)["status"] == "queued"


@pytest.mark.long
async def test_everybody_gets_their_own_answer_and_copies_the_same(
    client: Client, space: Space, caller: httpx2.AsyncClient
) -> None:
    drawn = graph(node("r", "respond", body={"n": bind("trigger", "body.n")}))
    dedupe = {"source": "path", "name": "body.n"}
    made = await hook(client, space, drawn, dedupe=dedupe)
    numbers = [*range(20), *range(20)]
    answers = await asyncio.gather(
        *(caller.post(made["webhookPath"], json={"n": number}) for number in numbers)
    )
    assert [answer.json() for answer in answers] == [{"n": number} for number in numbers]
    runs = read(await client.get(f"{space.path}/automations/{made['id']}/runs?limit=100"))
    assert len(runs["runs"]) == 20


async def test_the_answer_is_the_output_of_the_run(engine: Engine) -> None:
    drawn = graph(
        node("r", "respond", status=202, headers={"X-A": 1}, body="text"),
        node("leaf", "transform", output={"n": 1}),
        edges=[("r", "leaf")],
    )
    run = await engine.run(drawn)
    assert run.status == "succeeded"
    assert run.output == {"status": 202, "headers": {"X-A": "1"}, "body": "text"}


@pytest.mark.parametrize("name", ["Set-Cookie", "Transfer-Encoding", "X-Accel-Redirect"])
async def test_a_header_that_no_answer_may_set_fails_the_node(engine: Engine, name: str) -> None:
    drawn = graph(node("r", "respond", headers=bind("trigger", "headers")))
    automation = await engine.publish(drawn)
    run_id = await engine.start(automation.id, {"headers": {name: "x"}})
    run = await engine.ended(automation.id, run_id)
    assert run.status == "failed"
    assert "no answer may set" in (run.error or "")
