"""What an operator sees of a run in Temporal, and what no history may hold."""

import asyncio
import base64
import json
from typing import Any

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.api.sdk.v1 import WorkflowMetadata
from temporalio.client import WorkflowExecutionStatus, WorkflowFailureError, WorkflowHandle
from temporalio.common import SearchAttributeKey

from models.automation.automation_runs.calls import called_run_id
from models.core.base import Id
from tests.support.endpoint import Serve, once, reply
from tests.support.engine import Engine, Json, graph, node
from tests.support.patience import ENOUGH

CANARY = "canary-5f0c"


def binding(type_: str, value: Any) -> dict[str, Any]:
    return {"type": type_, "value": value}


def handle_of(engine: Engine, run_id: Id) -> WorkflowHandle[Any, Any]:
    return engine.client.get_workflow_handle(f"automation-run/{run_id}")


async def table_of_nodes(handle: WorkflowHandle[Any, Any]) -> str:
    """The current details, as the Temporal UI asks for them."""
    metadata = await handle.query("__temporal_workflow_metadata", result_type=WorkflowMetadata)
    return str(metadata.current_details)


def calls_and_waits(url: str) -> Json:
    """A call that is tried twice, a branch that is not taken, and a wait."""
    retry = {"maxAttempts": 2, "initialDelaySeconds": 0}
    return graph(
        node("first", "transform", label="Prepare | all", output={}),
        node("call", "http_request", label="Call them", url=url, retry=retry),
        node("check", "condition", expression="true"),
        node("dead", "transform", output={}),
        node("wait", "delay", label="Sleep on it", seconds=600),
        edges=[("first", "call"), ("call", "check"), ("check", "dead", "false"),
               ("check", "wait", "true")],
    )  # fmt: skip


@pytest.mark.long
async def test_a_run_is_found_and_read_in_temporal(engine: Engine, serve: Serve) -> None:
    seen = asyncio.Event()
    endpoint = await serve(once(seen, reply(500)), reply())
    automation = await engine.publish(calls_and_waits(endpoint.url), label="Nightly sync")
    run_id = await engine.start(automation.id)
    handle = handle_of(engine, run_id)
    await asyncio.wait_for(endpoint.reached.wait(), ENOUGH)
    assert (await table_of_nodes(handle)).splitlines() == [
        "| Node | Kind | Status | Attempt |",
        "|---|---|---|---|",
        "| Prepare \\| all | transform | ✔ succeeded | 1 |",
        "| Call them | http_request | ▶ running | 1 |",
    ]
    seen.set()
    await engine.until(automation.id, run_id, lambda run: run.status == "waiting")
    assert (await table_of_nodes(handle)).splitlines()[3:] == [
        "| Call them | http_request | ✔ succeeded | 2 |",
        "| check | condition | ✔ succeeded | 1 |",
        "| Sleep on it | delay | ⏸ waiting | 1 |",
        "| dead | transform | - skipped | - |",
    ]
    described = await handle.describe()
    assert described.workflow_type == "AutomationRun"
    assert await described.static_summary() == "Nightly sync · v1 · manual"
    attributes = {
        name: described.typed_search_attributes.get(SearchAttributeKey.for_keyword(name))
        for name in ("WorkspaceId", "ResourceId", "RunKind", "RunSource")
    }
    assert attributes == {
        "WorkspaceId": str(engine.actor.workspace_id),
        "ResourceId": str(automation.id),
        "RunKind": "automation-run",
        "RunSource": "manual",
    }
    await engine.cancel(automation.id, run_id)
    summaries = await summaries_of(handle)
    assert summaries[EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED] == ["Call them"]
    timers = summaries[EventType.EVENT_TYPE_TIMER_STARTED]
    assert timers == ["Run time limit", "Sleep on it"]


@pytest.mark.long
async def test_a_loop_beside_other_nodes_is_shown_whole_at_its_end(
    engine: Engine, serve: Serve, table: Id
) -> None:
    endpoint = await serve(reply())
    into, coded = {"databaseId": str(table)}, {"code": binding("expression", "string(item)")}
    automation = await engine.publish(
        graph(
            node("find", "query_records", **into),
            node("call", "http_request", url=endpoint.url),
            node("each", "for_each", label="Every car", items=list(range(30))),
            node("car", "create_record", **into, data=coded),
            node("other", "create_record", **into, data={"code": "other"}),
            node("end", "join"),
            node("wait", "delay", seconds=600),
            edges=[("find", "call"), ("find", "each"), ("find", "other"), ("each", "car", "item"),
                   ("call", "end"), ("each", "end", "done"), ("other", "end"), ("end", "wait")],
        )
    )  # fmt: skip
    run_id = await engine.start(automation.id)
    await engine.until(automation.id, run_id, lambda run: run.status == "waiting")
    shown = await table_of_nodes(handle_of(engine, run_id))
    assert "| Every car | for_each | ✔ succeeded 30/30 | 1 |" in shown.splitlines()
    await engine.cancel(automation.id, run_id)


async def summaries_of(handle: WorkflowHandle[Any, Any]) -> dict[int, list[str]]:
    """The summaries of a history's events, by their type."""
    found: dict[int, list[str]] = {}
    for event in (await handle.fetch_history()).events:
        if event.user_metadata.HasField("summary"):
            summary = json.loads(event.user_metadata.summary.data)
            found.setdefault(event.event_type, []).append(summary)
    return found


async def test_a_label_never_breaks_the_table(engine: Engine) -> None:
    automation = await engine.publish(
        graph(node("a", "delay", label="one\n| two |\r\n three", seconds=60))
    )
    run_id = await engine.start(automation.id)
    await engine.until(automation.id, run_id, lambda run: run.status == "waiting")
    lines = (await table_of_nodes(handle_of(engine, run_id))).splitlines()
    assert lines[2:] == ["| one \\| two \\| three | delay | ⏸ waiting | 1 |"]
    await engine.cancel(automation.id, run_id)


async def test_a_test_run_says_so(engine: Engine) -> None:
    automation_id = await engine.draft(graph(node("a", "transform", output={})), label="Trial")
    run = await engine.test(automation_id)
    described = await handle_of(engine, run.id).describe()
    assert await described.static_summary() == "Trial · v1 · test"


def works_on_canaries(url: str, database_id: str) -> Json:
    """A graph that takes the canary by its config, its bindings, its answers and its errors."""
    words = binding("trigger", "text")
    record = {"databaseId": database_id, "data": {"code": words, "price": 1}}
    calls = {
        "method": "POST",
        "query": {"q": CANARY},
        "headers": {"Authorization": CANARY},
        "body": {"text": words},
        "retry": {"maxAttempts": 2, "initialDelaySeconds": 0},
    }
    bad = binding("expression", f"{{'{CANARY}': 1}}")
    return graph(
        node("make", "create_record", **record),
        node("find", "query_records", databaseId=database_id, query={"search": CANARY}),
        node("call", "http_request", url=url, **calls),
        node("pick", "switch", cases=[{"key": "a", "expression": f"'{CANARY}' == 'x'"}]),
        node("bad", "create_record", databaseId=database_id, data=bad),
        node("lost", "http_request", url=binding("template", "http://{{ trigger.text }}.invalid/")),
        node("halt", "stop", result="failed", message=CANARY, output={"secret": CANARY}),
        edges=[("make", "find"), ("find", "call"), ("call", "pick"), ("pick", "bad", "default"),
               ("bad", "lost", "failure"), ("lost", "halt", "failure")],
    )  # fmt: skip


@pytest.mark.long
async def test_no_history_holds_what_a_run_works_on(
    engine: Engine, serve: Serve, table: Id
) -> None:
    endpoint = await serve(reply(500, CANARY), reply(200, {"answer": CANARY}, x_kind=CANARY))
    drawn = works_on_canaries(endpoint.url, str(table))
    run = await engine.run(drawn, {"text": CANARY, CANARY: True})
    assert (run.status, run.error) == ("failed", f"halt: {CANARY}")
    assert len(run.node_runs) == 7
    handle = handle_of(engine, run.id)
    history = (await handle.fetch_history()).to_json()
    assert str(run.id) in history
    assert CANARY not in history
    # Payloads are base64 in the JSON of a history.
    texts = "".join(decoded(json.loads(history)))
    assert f'"{run.id}"' in texts
    assert CANARY not in texts
    assert CANARY not in await table_of_nodes(handle)


def decoded(value: Any) -> list[str]:
    """Every text in a history's payloads."""
    if isinstance(value, dict):
        own = []
        if isinstance(value.get("data"), str):
            own = [base64.b64decode(value["data"]).decode("utf-8", "replace")]
        return own + [text for item in value.values() for text in decoded(item)]
    return [text for item in value for text in decoded(item)] if isinstance(value, list) else []


async def end_of(handle: WorkflowHandle[Any, Any]) -> tuple[Any, Any]:
    """How an execution ended, and with what error."""
    error = None
    try:
        await asyncio.wait_for(handle.result(), ENOUGH)
    except WorkflowFailureError as failed:
        error = failed.cause
    return (await handle.describe()).status, error


LAST: dict[str, tuple[dict[str, Any], str]] = {
    "stop": ({"result": "failed", "message": CANARY}, ""),
    "http_request": ({"url": f"http://nowhere.invalid/{CANARY}"}, ": connection_failed"),
    "notify": ({"role": binding("expression", f"'{CANARY}'"), "title": "x"}, ": binding_error"),
}


@pytest.mark.parametrize("kind", sorted(LAST))
async def test_the_execution_of_a_failed_run_has_failed(engine: Engine, kind: str) -> None:
    config, code = LAST[kind]
    run = await engine.run(graph(node("end", kind, label="The last", **config)))
    assert run.status == "failed"
    handle = handle_of(engine, run.id)
    status, error = await end_of(handle)
    assert status is WorkflowExecutionStatus.FAILED
    assert (error.type, error.message) == ("failed", f"The run failed at The last{code}.")
    history = (await handle.fetch_history()).to_json()
    assert CANARY not in history
    assert "stackTrace" not in history


@pytest.mark.long
async def test_the_caller_of_a_failed_run_continues_by_its_own_edges(engine: Engine) -> None:
    other = await engine.publish(graph(node("end", "stop", result="failed")))
    call = node("call", "call_automation", automationId=str(other.id))
    after = node("after", "transform", output={})
    run = await engine.run(graph(call, after, edges=[("call", "after", "failure")]))
    assert run.status == "succeeded"
    status, _ = await end_of(handle_of(engine, run.id))
    child, _ = await end_of(handle_of(engine, called_run_id(run.id, "call", "")))
    assert (status, child) == (WorkflowExecutionStatus.COMPLETED, WorkflowExecutionStatus.FAILED)
