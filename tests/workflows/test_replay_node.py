"""`workspace replay RUN --node NODE`: what ended is executed once more, and nothing is kept."""

import asyncio
import base64
import os
import tempfile
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from sqlalchemy import text

from cli.replay.divergence import print_reexecution
from cli.replay.histories import HistoryUnavailableError
from cli.replay.reexecution import End, Options, Reexecution, Request, reexecute
from models.automation.secrets.store import PutSecret, put_secret
from models.core.access.rules import Role
from models.core.base import Id
from runtime.clock import utc_now
from runtime.configuration.settings import Settings
from runtime.database import Database
from runtime.ids import new_id
from tests.support import actions, forked
from tests.support.actions import make, step
from tests.support.client import Client
from tests.support.endpoint import Serve, after, reply
from tests.support.engine import KEYS, Engine, graph, node
from tests.support.patience import found_when
from tests.support.sources import goods, make_source
from tests.support.spaces import MASTER_SECRET, Space, make_space
from tests.support.waits import approval, member, resume, waiting

pytestmark = pytest.mark.long

Json = dict[str, Any]
OURS = {"temporal_address": "127.0.0.1:1"}


WORKSPACE_OF = """
SELECT workspace_id FROM automation_run WHERE id = :id
UNION ALL SELECT workspace_id FROM action_run WHERE id = :id
UNION ALL SELECT workspace_id FROM data_source_run WHERE id = :id
"""
ROWS = "SELECT md5(string_agg(t::text, '|' ORDER BY t::text)) FROM {} t"


async def digests(database: Database, workspace_id: Id) -> dict[str, str]:
    """A digest of the rows of every table, of those of a workspace where they have one.

    Workers continue the work that other tests left in others.
    """
    async with database.snapshot() as work:
        tables = await work.rows(
            text(
                "SELECT table_name AS name, bool_or(column_name = 'workspace_id') AS owned"
                " FROM information_schema.columns WHERE table_schema = 'public' GROUP BY 1"
            )
        )
        rows = {}
        for table in tables:
            whole = ROWS.format(table.name)
            some = text(f"{whole} WHERE workspace_id = :id" if table.owned else whole)
            rows[table.name] = await work.scalar(some, {"id": workspace_id} if table.owned else {})
        return rows


async def settled(database: Database, workspace_id: Id) -> dict[str, str]:
    """The digests, once the workers have done what there is to do."""

    async def twice() -> dict[str, str] | None:
        before = await digests(database, workspace_id)
        await asyncio.sleep(0.3)
        is_idle = before["ungrouped_failure"] is before["outbox"] is None
        return before if is_idle and await digests(database, workspace_id) == before else None

    return await found_when(twice, bool, what="workers without work")


@pytest_asyncio.fixture
async def engine(engine: Engine) -> Engine:
    """The engine with a workspace that no poll or message of another test writes to."""
    return replace(engine, actor=(await make_space(engine.database, KEYS)).actor)


@pytest.fixture
def once(engine: Engine, settings: Settings) -> Any:
    """Executes once more without a Temporal, and sees that nothing was kept."""
    known = settings.model_copy(update=OURS)

    async def execute(run_id: Id, node_id: str, **options: Any) -> Reexecution:
        database = engine.database
        async with database.reading() as work:
            owner = await work.scalar(text(WORKSPACE_OF), {"id": run_id})
        workspace_id = owner or engine.actor.workspace_id
        before = await settled(database, workspace_id)
        try:
            return await reexecute(known, Request(run_id, node_id, Options(**options)))
        finally:
            assert await digests(database, workspace_id) == before

    return execute


def expression(value: str) -> Json:
    return {"type": "expression", "value": value}


KINDS: dict[str, tuple[Json, Json]] = {
    "transform": ({"output": {"name": {"type": "trigger", "value": "name"}}}, {"name": "Ada"}),
    "condition": ({"expression": "trigger.name == 'Ada'"}, {"result": True}),
    "switch": ({"cases": [{"key": "a", "expression": "trigger.name == 'Ada'"}]}, {"case": "a"}),
    "stop": ({"result": "failed", "message": "No"}, {"result": "failed", "message": "No"}),
    "respond": ({"status": 202, "body": "ok"}, {"status": 202, "headers": {}, "body": "ok"}),
    "delay": ({"seconds": 0}, {}),
}


@pytest.mark.parametrize("kind", KINDS)
async def test_a_node_ends_as_it_did(engine: Engine, once: Any, kind: str) -> None:
    config, output = KINDS[kind]
    run = await engine.run(graph(node("it", kind, **config)), {"name": "Ada"})
    found = await once(run.id, "it")
    assert found.is_same, found
    assert (found.now.status, found.now.output) == ("succeeded", output)


async def test_rows_are_refused_for_what_reads_none(
    engine: Engine, once: Any, tmp_path: Path
) -> None:
    run = await engine.run(graph(node("it", "transform", output={})))
    file = tmp_path / "rows.csv"
    file.write_bytes(b"a\n1\n")
    with pytest.raises(HistoryUnavailableError, match="--rows is for refreshes and imports"):
        await once(run.id, "it", rows=file)


async def test_a_node_fails_as_it_did(engine: Engine, once: Any) -> None:
    run = await engine.run(
        graph(node("it", "transform", output={"a": expression("1 / trigger.zero")})), {"zero": 0}
    )
    assert run.status == "failed"
    found = await once(run.id, "it")
    assert found.now == found.before
    assert (found.now.status, found.now.code) == ("failed", "binding_error")


async def test_a_node_reads_what_it_read_then(engine: Engine, once: Any) -> None:
    """Not what a later node has written, nor the end of the loop around it."""
    loop = node("loop", "for_each", items=[1, 2], collect=True)
    seen = {"seen": expression("has(nodes.loop) ? 'end' : 'no end'"), "item": expression("item")}
    run = await engine.run(
        graph(
            node("first", "transform", output={"n": 1}),
            loop,
            node("each", "transform", output={**seen, "n": expression("nodes.first.n")}),
            edges=[("first", "loop"), ("loop", "each", "item")],
        )
    )
    assert run.status == "succeeded", run.error
    for index in (0, 1):
        found = await once(run.id, "each", scope=f"loop:{index}")
        assert found.now == found.before
        assert found.now.output == {"seen": "no end", "item": index + 1, "n": 1}
    found = await once(run.id, "loop")
    assert found.now == found.before
    with pytest.raises(HistoryUnavailableError, match='by --scope: "loop:0'):
        await once(run.id, "each")


async def test_the_iteration_that_failed_is_meant(engine: Engine, once: Any) -> None:
    loop = node("loop", "for_each", items=[1, 0], onItemError="continue")
    body = node("each", "transform", output={"a": expression("1 / item")})
    run = await engine.run(graph(loop, body, edges=[("loop", "each", "item")]))
    found = await once(run.id, "each")
    assert (found.name, found.now) == ("node each in loop:1", found.before)


async def test_records_are_written_and_rolled_back(engine: Engine, once: Any, table: Id) -> None:
    made = node("make", "create_record", databaseId=str(table), title="A", data={"code": "a"})
    run = await engine.run(graph(made))
    assert run.status == "succeeded", run.error
    found = await once(run.id, "make")
    assert found.now.status == "succeeded", found
    assert found.now.output["record"]["title"] == "A"
    assert found.now.output["record"]["id"] != found.before.output["record"]["id"]
    assert found.is_same


def test_only_ids_and_times_that_were_made_now_may_differ() -> None:
    old, began = str(new_id()), utc_now()
    new, then, now = str(new_id()), (began - timedelta(days=1)).isoformat(), utc_now().isoformat()

    def is_same(before: Any, now: Any) -> bool:
        was, is_ = (End("succeeded", None, None, {"a": [{"b": one}]}) for one in (before, now))
        return Reexecution("node a", "transform", was, is_, "", None, began).is_same

    for recorded, present in ((old, new), (then, now), (old, old), (1, 1)):
        assert is_same(recorded, present)
    for recorded, present in ((now, then), (old, now), (then, new), (1, 2), (None, new)):
        assert not is_same(recorded, present)


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (reply(201, {"id": 7}), None),
        (reply(200, "é".encode("latin-1"), type_="text/plain; charset=latin-1"), None),
        (reply(200, bytes([0, 255]), type_="application/pdf"), None),
        (reply(204, b"", type_=""), None),
        (reply(404, {"no": 1}), "http_404"),
        (reply(200, "{broken"), "invalid_body"),
        (reply(200, b"x" * (1024 * 1024 + 1), type_="text/plain"), "too_large"),
        (after(0, b""), "invalid_response"),
    ],
    ids=["JSON", "charset", "bytes", "empty", "404", "broken", "too large", "no answer"],
)
async def test_calls_are_answered_from_what_was_recorded(
    engine: Engine, once: Any, serve: Serve, answer: Any, code: str | None
) -> None:
    endpoint = await serve(answer)
    call = node("call", "http_request", url=endpoint.url, retry={"maxAttempts": 1})
    run = await engine.run(graph(call))
    asked = len(endpoint.requests)
    found = await once(run.id, "call")
    assert found.now == found.before
    assert (found.now.code, found.calls) == (code, "replayed from the recording")
    assert len(endpoint.requests) == asked


async def test_a_call_is_really_made_when_that_is_said(
    engine: Engine, once: Any, serve: Serve
) -> None:
    endpoint = await serve(reply(500, {"n": 1}), reply(200, {"n": 2}))
    retry = {"maxAttempts": 1}
    run = await engine.run(graph(node("call", "http_request", url=endpoint.url, retry=retry)))
    found = await once(run.id, "call", live=True)
    assert (found.before.status, found.now.status) == ("failed", "succeeded")
    assert (found.now.output["body"], found.calls) == ({"n": 2}, "made")
    assert len(endpoint.requests) == 2


@pytest.mark.parametrize("status", [200, 500])
async def test_headers_of_a_response_are_shown_and_not_compared(
    engine: Engine,
    once: Any,
    serve: Serve,
    capsys: pytest.CaptureFixture[str],
    status: int,
) -> None:
    """The date and others differ with each call."""
    endpoint = await serve(
        *(reply(status, {"n": 1}, x_request_id=f"id-{n}") for n in (1, 2)),
        reply(status, {"n": 2}),
    )
    call = node("call", "http_request", url=endpoint.url, retry={"maxAttempts": 1})
    run = await engine.run(graph(call))
    found = await once(run.id, "call", live=True)
    assert found.is_same, found
    print_reexecution(found)
    shown = capsys.readouterr().out
    assert "output         same" in shown
    assert "headers        differs (not compared)" in shown
    assert "id-2" in shown
    found = await once(run.id, "call", live=True)
    assert not found.is_same


async def test_headers_that_a_node_itself_makes_are_compared(engine: Engine, once: Any) -> None:
    run = await engine.run(graph(node("it", "respond", status=200, headers={"X-A": "a"}, body="")))
    found = await once(run.id, "it")
    assert found.now.output["headers"] == {"X-A": "a"}
    assert found.now.headers is None


async def test_a_failed_last_attempt_is_that_attempt(
    engine: Engine, once: Any, serve: Serve
) -> None:
    endpoint = await serve(reply(500, {}))
    retry = {"maxAttempts": 2, "initialDelaySeconds": 0}
    run = await engine.run(graph(node("call", "http_request", url=endpoint.url, retry=retry)))
    found = await once(run.id, "call")
    assert found.now == found.before
    assert found.now.code == "http_500"


async def test_secrets_are_sent_and_not_shown(engine: Engine, once: Any, serve: Serve) -> None:
    async with engine.database.transaction() as work:
        await put_secret(work, engine.actor, KEYS, "TOKEN", PutSecret(value="s3cret-value-1"))
    endpoint = await serve(reply(200, {}), reply(200, {"said": "s3cret-value-1"}))
    auth = {"type": "bearer", "token": {"type": "secret", "value": "TOKEN"}}
    run = await engine.run(graph(node("call", "http_request", url=endpoint.url, auth=auth)))
    assert run.status == "succeeded", run.error
    found = await once(run.id, "call", live=True)
    assert endpoint.requests[1].headers["authorization"] == "Bearer s3cret-value-1"
    assert found.now.output["body"] == {"said": "[secret TOKEN]"}
    assert "s3cret" not in str(found)


async def test_a_saved_answer_was_not_recorded(engine: Engine, once: Any, serve: Serve) -> None:
    endpoint = await serve(reply(200, b"a,b", type_="text/csv"))
    call = node("call", "http_request", url=endpoint.url, saveAs={"name": "a.csv"})
    run = await engine.run(graph(call))
    assert run.status == "succeeded", run.error
    with pytest.raises(HistoryUnavailableError, match=r"not recorded\. Use --live"):
        await once(run.id, "call")
    found = await once(run.id, "call", live=True)
    assert found.now.status == "succeeded"


async def test_mails_and_webhooks(engine: Engine, once: Any, serve: Serve) -> None:
    endpoint = await serve(reply(200, {}))
    for kind, config in (
        ("send_email", {"to": ["ada@example.com"], "subject": "Hi", "body": "You"}),
        ("send_webhook", {"url": endpoint.url, "type": "x", "data": {"a": 1}}),
    ):
        run = await engine.run(graph(node("it", kind, **config)))
        assert run.status == "succeeded", run.error
        found = await once(run.id, "it")
        assert found.now == found.before, kind
    assert len(endpoint.requests) == 1


async def test_waits_end_as_they_ended(engine: Engine, once: Any) -> None:
    boss = await member(engine, Role.VIEWER)
    place = await waiting(engine, approval(boss, title="Pay?"))
    found = await once(place[1], "ask")
    assert (found.before.status, found.now.status) == ("waiting", "waiting")
    await resume(engine, place, "ask", boss, decision="rejected")
    await engine.ended(*place)
    found = await once(place[1], "ask")
    assert found.now == found.before
    assert found.now.outcome == "rejected"


async def test_called_runs_and_actions_end_as_they_ended(engine: Engine, once: Any) -> None:
    broken = graph(node("it", "transform", output={"a": expression("1 / trigger.zero")}))
    called = await engine.publish(broken)
    config = {"automationId": str(called.id), "input": {"zero": 0}, "wait": True}
    calls = {"id": "call", "kind": "call_automation", "config": config}
    run = await engine.run(graph(calls))
    found = await once(run.id, "call")
    assert found.now == found.before
    assert found.now.code == "called_run_failed"
    action_id = await make(engine, "transform", output={"a": 1})
    acts = node("act", "action", actionId=str(action_id))
    run = await engine.run(graph({**acts, "actionId": str(action_id), "config": {}}))
    assert run.status == "succeeded", run.error
    found = await once(run.id, "act")
    assert found.is_same


async def test_steps_of_actions(engine: Engine, once: Any, serve: Serve) -> None:
    endpoint = await serve(reply(404, {"no": 1}))
    steps = [
        step("first", "transform", output={"n": 1}),
        step("call", "http_request", url=endpoint.url, continueOnError=True),
        step("last", "transform", output={"n": expression("nodes.first.n + 1")}),
        step("skipped", "transform", when="false", output={}),
    ]
    action_id = await make(engine, "sequence", steps=steps)
    run_id = await actions.start(engine, action_id)
    await actions.ended(engine, action_id, run_id)
    for name, status in (
        ("first", "succeeded"),
        ("call", "failed"),
        ("last", "succeeded"),
        ("skipped", "skipped"),
    ):
        found = await once(run_id, name)
        assert found.now == found.before, name
        assert found.now.status == status
    assert len(endpoint.requests) == 1
    with pytest.raises(HistoryUnavailableError, match="first \\(succeeded\\), call"):
        await once(run_id, "other")
    with pytest.raises(HistoryUnavailableError, match="--scope is for nodes of automations"):
        await once(run_id, "first", scope="items:1")


async def test_refreshes(
    engine: Engine, client: Client, space: Space, serve: Serve, once: Any
) -> None:
    assert engine.database is space.database
    source = await make_source(client, space, serve)
    source.answers(goods(("a", "Apple", 1), ("b", "Pear", None)))
    refreshed = await source.refresh()
    assert refreshed["status"] == "succeeded", refreshed
    run_id = Id(refreshed["id"])
    with pytest.raises(HistoryUnavailableError, match=r"not recorded\. Use --live"):
        await once(run_id, "apply")
    with pytest.raises(HistoryUnavailableError, match="fetch, stage, apply"):
        await once(run_id, "main")
    with pytest.raises(HistoryUnavailableError, match="--scope is for nodes of automations"):
        await once(run_id, "apply", scope="items:1")
    source.answers(reply(500, {}))
    found = await once(run_id, "apply", live=True)
    assert (found.now.status, found.calls) == ("failed", "made")
    source.answers(goods(("a", "Apple", 2), ("b", "Pear", 1), ("c", "Plum", 3)))
    found = await once(run_id, "apply", live=True)
    assert found.now.status == "succeeded", found.now
    assert found.now.output["stats"]["rowsInserted"] == 1
    assert (await source.records()).keys() == {"a", "b"}


async def test_imports(
    engine: Engine, client: Client, space: Space, once: Any, tmp_path: Path
) -> None:
    assert engine.database is space.database
    content = b"Name,Qty\na,1\nb,2\n"
    body = {
        "label": "Imported",
        "kind": "inline",
        "format": "csv",
        "content": base64.b64encode(content).decode(),
        "fields": [],
    }
    answered = await client.post(f"{space.path}/data-sources/import-spreadsheet", json=body)
    assert answered.status_code == 200, answered.text
    run_id = Id(answered.json()["data"]["importId"])
    with pytest.raises(HistoryUnavailableError, match="--rows FILE"):
        await once(run_id, "apply")
    file = tmp_path / "rows.csv"
    file.write_bytes(content)
    found = await once(run_id, "apply", rows=file)
    assert found.now.status == "succeeded", found
    assert found.now.output["stats"] == found.before.output["stats"]


async def command(
    database_url: str, settings: Settings, *arguments: str, keys: str = ""
) -> tuple[int, str, str]:
    """Exit code and output of `workspace replay`, with no Temporal."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("TEMPORAL_")},
        "DATABASE_URL": database_url,
        "WORKSPACE_SECRET_KEY": MASTER_SECRET,
        "WORKSPACE_OBJECT_STORE": settings.object_store,
        "WORKSPACE_OUTBOUND_ALLOW": "127.0.0.0/8",
        "TEMPORAL_ADDRESS": "127.0.0.1:1",
        "COLUMNS": "200",
    }
    with tempfile.TemporaryDirectory() as directory:
        given, out, err = (Path(directory) / name for name in ("given", "out", "err"))
        given.write_text(keys)
        process = forked.workspace(
            ["replay", *arguments], environment, given=given, out=out, err=err
        )
        code = await process.ended()
        return code, out.read_text(), err.read_text()


async def test_the_debugger_stops_in_the_code_of_the_node(
    engine: Engine, serve: Serve, database_url: str, settings: Settings
) -> None:
    endpoint = await serve(reply(404, {"no": 1}))
    run = await engine.run(
        graph(
            node("set", "transform", output={"n": 1}),
            node("call", "http_request", url=endpoint.url),
            edges=[("set", "call")],
        )
    )
    for name, code in (("set", "TransformConfig.model_validate"), ("call", "HttpRequestConfig")):
        arguments = (str(run.id), "--node", name, "--debug")
        exit_code, out, err = await command(database_url, settings, *arguments, keys="where\nc\n")
        assert exit_code == 0, err
        prompt, shown = out.split("(Pdb) ")[:2]
        assert code in prompt.splitlines()[-1]
        # One frame, and none of those that call it.
        assert len(shown.strip().splitlines()) == 2, shown
        assert "executed again. Nothing was saved." in out
    broken = node("set", "transform", output={"n": expression("1 / trigger.zero")})
    failed = await engine.run(graph(broken), {"zero": 0})
    earlier = (str(failed.id), "--node", "set", "--debug")
    exit_code, out, err = await command(database_url, settings, *earlier, keys="c\n")
    assert exit_code == 0, err
    assert "raise problem" in out
    assert "not reached" in out
    away = await command("postgresql://127.0.0.1:1/none", settings, *earlier)
    assert (away[0], "DATABASE_URL cannot be used" in away[2]) == (2, True)
    exit_code, _, err = await command(database_url, settings, *arguments, keys="q\n")
    assert exit_code == 1
    assert "Interrupted" in err


async def test_the_command_shows_the_difference(
    engine: Engine, serve: Serve, database_url: str, settings: Settings
) -> None:
    endpoint = await serve(reply(404, {"no": 1}), reply(200, {"yes": 1}))
    run = await engine.run(graph(node("call", "http_request", url=endpoint.url)))
    same = await command(database_url, settings, str(run.id), "--node", "call")
    assert same[0] == 0, same[2]
    assert "status         failed (same)" in same[1]
    other = await command(database_url, settings, str(run.id), "--node", "call", "--live")
    assert other[0] == 1, other[2]
    assert "succeeded (recorded: failed)" in other[1]
    assert '"yes": 1' in other[1]
    gone = await command(database_url, settings, str(new_id()), "--node", "call")
    assert gone[0] == 2
    assert "not found in this database" in gone[2]


async def test_a_missing_node_is_reported_with_the_reached_ones(engine: Engine, once: Any) -> None:
    run = await engine.run(
        graph(
            node("a", "condition", expression="false"),
            node("b", "transform", output={}),
            edges=[("a", "b", "true")],
        )
    )
    with pytest.raises(HistoryUnavailableError, match="reached: a \\(succeeded\\)"):
        await once(run.id, "c")
    with pytest.raises(HistoryUnavailableError, match="skipped b"):
        await once(run.id, "b")
    with pytest.raises(HistoryUnavailableError, match="not found in this database"):
        await once(new_id(), "a")
