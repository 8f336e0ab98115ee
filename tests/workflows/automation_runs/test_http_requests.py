"""http_request on the real engine, against real servers: answers, limits, what is shown."""

import asyncio
from typing import Any

import pytest

from activities.automation_runs import outside_nodes
from models.content.files.queries import list_files
from models.core.pagination import PageRequest
from tests.support.actions import act, make, step
from tests.support.endpoint import Serve, after, never, reply
from tests.support.engine import KEYS, Engine, by_node, graph, node
from tests.support.patience import promised
from tests.support.run_rows import attempts, error_codes

MEBIBYTE = 1024 * 1024
JSON = "application/json"


async def test_an_answer_is_the_output(engine: Engine, serve: Serve) -> None:
    endpoint = await serve(reply(201, {"id": 7}, x_kind="made"))
    run = await engine.run(
        graph(
            node(
                "call",
                "http_request",
                method="POST",
                url=endpoint.url,
                query={"page": {"type": "trigger", "value": "page"}, "all": True},
                headers={"X-Who": {"type": "template", "value": "I am {{ trigger.name }}"}},
                body={"name": {"type": "trigger", "value": "name"}, "tags": ["a"]},
            )
        ),
        {"name": "Ada", "page": 2},
    )
    assert run.status == "succeeded", run.error
    assert run.output is not None
    output = run.output["call"]
    assert (output["status"], output["body"]) == (201, {"id": 7})
    assert output["headers"]["x-kind"] == "made"
    (request,) = endpoint.requests
    assert request.line == "POST /?all=true&page=2 HTTP/1.1"  # JSONB orders keys
    assert request.headers["x-who"] == "I am Ada"
    assert request.json() == {"name": "Ada", "tags": ["a"]}
    assert by_node(run)["call"].attempt == 1


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (reply(200, "plain text", type_="text/plain"), "plain text"),
        (reply(200, "<b>ü</b>".encode("latin-1"), type_="text/html; charset=latin-1"), "<b>ü</b>"),
        (reply(200, b"\xff\x00\x01", type_="application/octet-stream"), "/wAB"),
        (reply(200, b"caf\xe9", type_="text/plain"), "Y2Fm6Q=="),
        (reply(200, b"%PDF-1.7", type_="application/pdf"), "JVBERi0xLjc="),
        (reply(200, '{"p": "5 €"}'.encode("iso-8859-15"), type_=f"{JSON}; charset=ISO-8859-15"),
         {"p": "5 €"}),
        (reply(200, [1, None, "x"]), [1, None, "x"]),
        (reply(200, {"\x00": "\ud800"}), {"\ufffd": "\ufffd"}),
        (reply(204, b"", type_=""), None),
    ],
    ids=["text", "charset", "bytes with NUL", "no UTF-8", "ASCII of a PDF", "JSON in a charset",
         "list", "unstorable", "empty"],
)  # fmt: skip
async def test_bodies_of_every_type(engine: Engine, serve: Serve, answer: bytes, body: Any) -> None:
    endpoint = await serve(answer)
    run = await engine.run(graph(node("call", "http_request", url=endpoint.url)))
    assert run.status == "succeeded", run.error
    assert run.output is not None
    assert run.output["call"]["body"] == body


@pytest.mark.parametrize(
    ("answer", "code", "message"),
    [
        (reply(404, {"reason": "gone"}), "http_404", 'returned 404. Response: {"reason": "gone"}'),
        (reply(404, "<p>Gone</p>", type_="text/html"), "http_404", "The server returned 404."),
        (reply(200, "{broken"), "invalid_body", "not valid JSON"),
        (reply(200, b"x" * (MEBIBYTE + 1), type_="text/plain"), "too_large", "larger than 1048576"),
        (reply(200, "[" * 150 + "]" * 150), "invalid_body", "deeper than 100 levels"),
        (reply(200, "[" * 900 + "]" * 900), "invalid_body", ""),
        # Within the cap on the wire, beyond it as JSON text.
        (reply(200, b'"' * (MEBIBYTE - 9), type_="text/plain"), "output_too_large", "1 MiB"),
    ],
    ids=[
        "4xx",
        "4xx as a page",
        "broken JSON",
        "too large",
        "deep",
        "very deep",
        "too large as JSON",
    ],
)
async def test_a_final_failure_is_not_repeated(
    engine: Engine, serve: Serve, answer: bytes, code: str, message: str
) -> None:
    endpoint = await serve(answer)
    run = await engine.run(
        graph(
            node(
                "call",
                "http_request",
                label="Call them",
                url=endpoint.url,
                retry={"maxAttempts": 5, "initialDelaySeconds": 0},
            )
        )
    )
    assert (run.status, await error_codes(engine, run)) == ("failed", {"call": code})
    assert run.error is not None
    assert run.error.startswith("Call them: ")
    assert message in run.error
    assert (len(endpoint.requests), by_node(run)["call"].attempt) == (1, 1)
    assert await attempts(engine, run.id) == []


@pytest.mark.parametrize(
    ("answer", "status", "body", "encoding"),
    [
        (reply(404, {"reason": "gone"}, x_why="moved"), 404, {"reason": "gone"}, "json"),
        (reply(404, "<p>Gone</p>", type_="text/html"), 404, "<p>Gone</p>", "text"),
        (reply(502, b"\xff\x00", type_="image/png"), 502, "/wA=", "base64"),
        (reply(200, "{broken"), 200, "{broken", "text"),
        (reply(200, "[" * 150 + "]" * 150), 200, "[" * 150 + "]" * 150, "text"),
        (reply(200, b"x" * (MEBIBYTE + 1), type_="text/plain"), 200, None, None),
        (reply(200, b'"' * (MEBIBYTE - 9), type_="text/plain"), 200, None, "text"),
    ],
    ids=["4xx", "page", "bytes", "broken JSON", "deep", "too large", "too large as JSON"],
)
async def test_a_failed_call_keeps_what_was_answered(
    engine: Engine, serve: Serve, answer: bytes, status: int, body: Any, encoding: str | None
) -> None:
    endpoint = await serve(answer)
    reads = {
        key: {"type": "node", "value": f"call.{key}"}
        for key in ("status", "headers", "body", "bodyEncoding", "error", "errorCode")
    }
    run = await engine.run(
        graph(
            node("call", "http_request", url=endpoint.url),
            node("told", "transform", output=reads),
            edges=[("call", "told", "failure")],
        )
    )
    assert run.status == "succeeded", run.error
    failed = by_node(run)["call"]
    assert failed.status == "failed"
    assert failed.output is not None
    assert failed.output["headers"]["content-type"]
    kept = {key: failed.output[key] for key in ("status", "body", "bodyEncoding")}
    assert kept == {"status": status, "body": body, "bodyEncoding": encoding}
    told = by_node(run)["told"].output
    assert told == {**failed.output, "error": failed.error, "errorCode": told["errorCode"]}


async def test_the_answer_of_a_failed_call_holds_no_secret(engine: Engine, serve: Serve) -> None:
    endpoint = await serve(reply(500, {"you": "t0psecret-value"}, x_echo="t0psecret-value"))
    auth = {"type": "bearer", "token": "t0psecret-value"}
    run = await engine.run(graph(node("call", "http_request", url=endpoint.url, auth=auth)))
    failed = by_node(run)["call"]
    assert (failed.status, failed.output and failed.output["status"]) == ("failed", 500)
    assert "t0psecret" not in run.model_dump_json(by_alias=True)


async def test_a_failed_step_keeps_the_answer_of_its_action(engine: Engine, serve: Serve) -> None:
    endpoint = await serve(reply(409, {"reason": "taken"}))
    run = await act(engine, "http_request", url=endpoint.url)
    assert (run.status, run.result and run.result["status"]) == ("failed", 409)
    steps = [step("call", "http_request", url=endpoint.url)]
    action_id = await make(engine, "sequence", steps=steps)
    asked = await engine.run(
        graph(
            {"id": "act", "kind": "action", "actionId": str(action_id)},
            node("told", "transform", output={"is": {"type": "node", "value": "act.body.reason"}}),
            edges=[("act", "told", "failure")],
        )
    )
    assert by_node(asked)["told"].output == {"is": "taken"}


async def test_a_failed_webhook_keeps_what_was_answered(engine: Engine, serve: Serve) -> None:
    endpoint = await serve(reply(410, "gone", type_="text/plain"))
    run = await engine.run(graph(node("hook", "send_webhook", url=endpoint.url, type="x")))
    output = by_node(run)["hook"].output
    assert output["webhookId"].startswith("msg_")
    assert (output["status"], output["body"], output["bodyEncoding"]) == (410, "gone", "text")


SAVED = graph(
    node(
        "call",
        "http_request",
        url={"type": "trigger", "value": "url"},
        saveAs={"parentItemId": None},
        retry={"maxAttempts": 2, "initialDelaySeconds": 0},
    )
)


@pytest.mark.long
async def test_an_answer_is_saved_as_a_file(engine: Engine, serve: Serve) -> None:
    content = b"%PDF-1.7\x00\xff" * MEBIBYTE
    name = "attachment; filename=no.pdf; filename*=UTF-8''%e2%82%ac%20a.pdf"
    good = reply(200, content, type_="application/pdf", content_disposition=name)
    endpoint = await serve(reply(503, {"why": "busy"}), good)
    run = await engine.run(SAVED, {"url": f"{endpoint.url}x.pdf"})
    assert run.status == "succeeded", run.error
    output = by_node(run)["call"].output
    assert (output["status"], output["body"], output["bodyEncoding"]) == (200, None, None)
    file = output["file"]
    assert file == {
        "fileId": file["fileId"],
        "name": "€ a.pdf",
        "mimeType": "application/pdf",
        "byteSize": len(content),
    }
    async with engine.database.transaction() as work:
        page = PageRequest(limit=100, after=None, keys=KEYS, context=b"files")
        found = await list_files(work, engine.actor, page)
    # Other tests save files in this workspace.
    (stored,) = (one for one in found.files if one.name == file["name"])
    assert str(stored.file_id) == file["fileId"]


async def test_no_file_is_made_of_an_answer_that_fails(engine: Engine, serve: Serve) -> None:
    endpoint = await serve(reply(404, {"why": "gone"}))
    run = await engine.run(SAVED, {"url": endpoint.url})
    failed = by_node(run)["call"]
    assert (failed.status, failed.output["status"]) == ("failed", 404)
    assert failed.output["body"] == {"why": "gone"}
    assert "file" not in failed.output


async def test_texts_beyond_ascii_are_counted_in_bytes_not_escapes(
    engine: Engine, serve: Serve
) -> None:
    endpoint = await serve(reply(200, "ж" * 400_000, type_="text/plain; charset=utf-8"))
    run = await engine.run(graph(node("call", "http_request", url=endpoint.url)))
    assert run.status == "succeeded", run.error


async def test_a_private_address_is_blocked(engine: Engine) -> None:
    run = await engine.run(graph(node("call", "http_request", url="http://169.254.169.254/latest")))
    assert await error_codes(engine, run) == {"call": "outbound_blocked"}
    assert run.error is not None
    assert "WORKSPACE_OUTBOUND_ALLOW" in run.error


async def test_expected_statuses_are_successes(engine: Engine, serve: Serve) -> None:
    endpoint = await serve(reply(404, {"reason": "gone"}))
    run = await engine.run(
        graph(node("call", "http_request", url=endpoint.url, expectStatus=["2xx", 404]))
    )
    assert run.output is not None
    assert run.output["call"]["body"] == {"reason": "gone"}


@pytest.mark.parametrize(
    ("auth", "sent"),
    [
        ({"type": "bearer", "token": "t0psecret"}, "Bearer t0psecret"),
        ({"type": "basic", "username": "u", "password": "t0psecret"}, "Basic dTp0MHBzZWNyZXQ="),
        ({"type": "header", "name": "X-Key", "value": "t0psecret"}, None),
    ],
)
async def test_credentials_are_sent_and_never_shown(
    engine: Engine, serve: Serve, auth: dict[str, str], sent: str | None
) -> None:
    endpoint = await serve(reply())
    run = await engine.run(
        graph(
            node(
                "call",
                "http_request",
                url=endpoint.url,
                auth=auth,
                headers={"Cookie": "t0psecret", "X-Api-Key": "t0psecret", "X-Open": "shown"},
            )
        )
    )
    assert run.status == "succeeded", run.error
    headers = endpoint.requests[0].headers
    assert headers["cookie"] == "t0psecret"
    assert (headers.get("authorization"), headers.get("x-key")) == (
        sent,
        None if sent else "t0psecret",
    )
    shown = run.model_dump_json(by_alias=True)
    assert "t0psecret" not in shown
    assert "shown" in shown


@pytest.mark.parametrize(
    ("config", "path"),
    [
        ({"auth": {"type": "trigger", "value": "list"}}, "auth"),
        ({"headers": {"type": "trigger", "value": "list"}}, "headers"),
        ({"url": {"type": "trigger", "value": "none"}}, "url"),
        ({"method": {"type": "trigger", "value": "list"}}, "method"),
    ],
)
async def test_bindings_that_give_nonsense_are_binding_errors(
    engine: Engine, config: dict[str, Any], path: str
) -> None:
    run = await engine.test(
        (await engine.draft(graph(node("call", "http_request", **{"url": "http://x", **config})))),
        payload={"list": [1]},
    )
    assert await error_codes(engine, run) == {"call": "binding_error"}
    assert run.error is not None
    assert run.error.startswith(f"call: {path}")


@pytest.mark.long
async def test_a_writing_call_carries_one_idempotency_key(engine: Engine, serve: Serve) -> None:
    endpoint = await serve(reply(500), reply(500), reply())
    retry = {"maxAttempts": 3, "initialDelaySeconds": 0}
    run = await engine.run(
        graph(node("call", "http_request", method="POST", url=endpoint.url, retry=retry))
    )
    assert run.status == "succeeded", run.error
    keys = [request.headers["idempotency-key"] for request in endpoint.requests]
    assert keys == [f"{run.id}:call:"] * 3


async def test_a_reading_call_carries_no_idempotency_key(engine: Engine, serve: Serve) -> None:
    endpoint = await serve(reply())
    await engine.run(graph(node("call", "http_request", url=endpoint.url)))
    assert "idempotency-key" not in endpoint.requests[0].headers


@pytest.mark.long
async def test_a_config_timeout_is_a_failure_that_is_repeated(engine: Engine, serve: Serve) -> None:
    endpoint = await serve(never, after(0.01, reply(200, {"late": True})))
    run = await engine.run(
        graph(
            node(
                "call",
                "http_request",
                url=endpoint.url,
                input={"timeoutSeconds": {"type": "literal", "value": 3}},
                retry={"maxAttempts": 2, "initialDelaySeconds": 0},
            )
        )
    )
    assert run.status == "succeeded", run.error
    assert await attempts(engine, run.id) == [("call", 1, "timeout")]


@pytest.mark.long
async def test_the_time_of_a_node_bounds_every_attempt(
    engine: Engine, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    # 3 s for the call, and 10 s to write how it ended.
    monkeypatch.setattr(outside_nodes, "CLOSING_SECONDS", 10)
    monkeypatch.setattr(outside_nodes, "CLOSING_SHARE", 1)
    endpoint = await serve(never)
    run = await engine.run(
        graph(
            node(
                "call",
                "http_request",
                url=endpoint.url,
                timeoutSeconds=13,
                retry={"maxAttempts": 2, "initialDelaySeconds": 0},
            )
        )
    )
    assert await error_codes(engine, run) == {"call": "timeout"}
    assert run.error is not None
    assert "timed out after 13 s" in run.error
    assert by_node(run)["call"].attempt == 2
    assert await attempts(engine, run.id) == [("call", 1, "timeout")]
    await asyncio.wait_for(endpoint.left.wait(), promised(20))
