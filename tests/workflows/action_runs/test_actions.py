"""Runs of actions, by themselves and for a node: steps, retries, cancels, and exactly once."""

import asyncio
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from sqlalchemy import func, select, text, update
from sqlalchemy.exc import DatabaseError

from activities.action_runs.steps import ActionSteps, Attempt
from activities.automation_runs.nodes.effects import RecordNodes
from models.automation.action_runs import execution
from models.automation.action_runs.execution import load_header
from models.automation.action_runs.store import (
    ActionRequest,
    RunAction,
    accept,
    run_action,
    runnable_action,
)
from models.automation.action_runs.tables import action_run
from models.automation.actions.store import action
from models.automation.automations import commands as automations
from models.automation.automations.shapes import PublishAutomation, UpdateAutomation
from models.core.base import Id
from models.data.records.tables import record
from runtime.temporal.outbox import withdraw_starts
from runtime.temporal.workflow_kinds import WorkflowKind
from tests.support import actions
from tests.support.actions import act, make, states, step
from tests.support.endpoint import Serve, never, once, reply
from tests.support.engine import KEYS, Engine, by_node, graph, node
from tests.support.patience import ENOUGH, eventually, promised
from tests.support.post_office import PostOffice
from tests.support.run_rows import attempts, error_codes

pytestmark = pytest.mark.takes(seconds=30)

Json = dict[str, Any]
AT_ONCE = {"maxAttempts": 3, "initialDelaySeconds": 0}
INPUT = {"type": "trigger", "value": "name"}


async def count(engine: Engine, database_id: Id, title: str) -> int:
    async with engine.database.transaction() as work:
        statement = select(func.count()).select_from(record)
        return int(
            await work.scalar(
                statement.where(record.c.database_id == database_id, record.c.title == title)
            )
        )


# ---- by themselves


@pytest.mark.long
async def test_an_action_has_one_step(engine: Engine) -> None:
    run = await act(engine, "transform", {"name": "Ada"}, output={"hello": INPUT})
    assert (run.status, run.error, run.result) == ("succeeded", None, {"hello": "Ada"})
    (main,) = run.step_results.values()
    assert (main.step_id, main.index, main.kind, main.status) == (
        "main",
        0,
        "transform",
        "succeeded",
    )
    assert (main.result, main.attempt) == ({"hello": "Ada"}, 1)
    assert main.started_at is not None
    assert main.completed_at is not None
    assert run.completed_at is not None
    assert run.started_at <= main.started_at <= main.completed_at <= run.completed_at
    assert run.metadata == {"temporalWorkflowId": WorkflowKind.ACTION_RUN.workflow_id(run.id)}


@pytest.mark.parametrize("of_a_node", [False, True])
async def test_a_database_that_goes_away_after_a_call_is_waited_for(
    engine: Engine, serve: Serve, monkeypatch: pytest.MonkeyPatch, *, of_a_node: bool
) -> None:
    complete = execution.complete_step
    troubles = iter([psycopg.OperationalError("gone")])

    async def failing(*given: Any) -> None:
        for trouble in troubles:
            raise trouble
        await complete(*given)

    monkeypatch.setattr(execution, "complete_step", failing)
    endpoint = await serve(reply())
    if of_a_node:
        action_id = await make(engine, "http_request", method="POST", url=endpoint.url)
        run: Any = await engine.run(graph(act_node(action_id)))
    else:
        run = await act(engine, "http_request", method="POST", url=endpoint.url)
    assert (run.status, run.error, len(endpoint.requests)) == ("succeeded", None, 1)


async def test_records_are_written_once_as_an_editor_would(engine: Engine, table: Id) -> None:
    title = uuid4().hex
    run = await act(
        engine,
        "create_record",
        {"name": title},
        databaseId=str(table),
        data={"title": INPUT, "code": INPUT},
    )
    assert run.result is not None, run.error
    assert run.result["record"]["title"] == title
    assert run.result["record"]["createdByUserId"] == str(engine.actor.user_id)
    assert await count(engine, table, title) == 1


def steps_of_many_kinds(engine: Engine, table: Id, url: str, to: str) -> list[Json]:
    """A service asked, its answer kept, told, mailed, sent on, found again and counted."""
    data = {"title": INPUT, "code": INPUT, "price": {"type": "node", "value": "ask.body.price"}}
    named = {"filter": {"field": "title", "op": "eq", "value": INPUT}}
    subject = {"type": "template", "value": "{{ run.id }}"}
    return [
        step("ask", "http_request", method="POST", url=url, body={"for": INPUT}),
        step("keep", "create_record", databaseId=str(table), input={"data": data}),
        step("tell", "send_notification", userIds=[str(engine.actor.user_id)], title="Kept"),
        step("mail", "send_email", to=[to], subject=subject),
        step("hook", "send_webhook", url=url, type="kept"),
        step("find", "query_records", databaseId=str(table), query=named),
        step("end", "transform", output={"n": {"type": "node", "value": "find.count"}}),
    ]


async def test_a_sequence_hands_on_what_it_found(
    engine: Engine, table: Id, serve: Serve, post_office: PostOffice
) -> None:
    endpoint = await serve(reply(200, {"price": 3}))
    title, to = uuid4().hex, f"{uuid4().hex}@a.test"
    steps = steps_of_many_kinds(engine, table, endpoint.url, to)
    run = await act(engine, "sequence", {"name": title}, steps=steps)
    assert (run.status, run.error, run.result) == ("succeeded", None, {"n": 1})
    assert set(states(run).values()) == {"succeeded"}
    assert [one.index for one in run.step_results.values()] == list(range(7))
    asked, hooked = endpoint.requests
    assert asked.headers["idempotency-key"] == f"{run.id}:ask"
    assert hooked.headers["webhook-id"].startswith("msg_")
    assert post_office.to(to)[0].message["Subject"] == str(run.id)
    assert run.step_results["keep"].result is not None
    assert run.step_results["keep"].result["record"]["data"]["price"] == 3


async def test_a_condition_decides_and_a_failure_ends(engine: Engine) -> None:
    run = await act(
        engine,
        "sequence",
        {"go": False},
        steps=[
            step("no", "transform", output={}, when="trigger.go"),
            step(
                "yes",
                "transform",
                output={"a": 1},
                when="!trigger.go && nodes.?no == optional.none()",
            ),
            step(
                "bad",
                "transform",
                output={"a": {"type": "expression", "value": "1 / (run.id == '' ? 1 : 0)"}},
            ),
            step("never", "transform", output={}),
        ],
    )
    assert (run.status, run.result) == ("failed", None)
    assert run.error is not None
    assert run.error.startswith("bad: ")
    assert states(run) == {"no": "skipped", "yes": "succeeded", "bad": "failed", "never": "skipped"}


async def test_a_failure_may_be_borne(engine: Engine) -> None:
    run = await act(
        engine,
        "sequence",
        steps=[
            step(
                "bad",
                "transform",
                output={"a": {"type": "expression", "value": "1 / (run.id == '' ? 1 : 0)"}},
                continueOnError=True,
            ),
            step("good", "transform", output={"b": 1}),
        ],
    )
    assert (run.status, run.result, run.error) == ("succeeded", {"b": 1}, None)
    assert states(run) == {"bad": "failed", "good": "succeeded"}


async def test_a_condition_must_decide(engine: Engine) -> None:
    run = await act(
        engine, "sequence", {"go": 1}, steps=[step("a", "transform", output={}, when="trigger.go")]
    )
    assert (run.status, run.error) == ("failed", "when: The expression must return true or false.")


@pytest.mark.long
async def test_a_step_is_retried_as_it_asks(engine: Engine, serve: Serve) -> None:
    endpoint = await serve(reply(503), reply(500), reply(200, {"ok": True}))
    run = await act(
        engine,
        "sequence",
        steps=[step("call", "http_request", method="POST", url=endpoint.url, retry=AT_ONCE)],
    )
    assert run.status == "succeeded", run.error
    assert run.step_results["call"].attempt == 3
    assert {one.headers["idempotency-key"] for one in endpoint.requests} == {f"{run.id}:call"}


async def test_a_final_failure_is_not_retried(engine: Engine, serve: Serve) -> None:
    endpoint = await serve(reply(404))
    steps = [step("call", "http_request", url=endpoint.url, retry=AT_ONCE)]
    run = await act(engine, "sequence", steps=steps)
    assert (run.status, len(endpoint.requests)) == ("failed", 1)
    # One step is a sequence too, but its name says nothing then.
    assert run.error == "The server returned 404."


@pytest.mark.parametrize(
    ("kind", "config", "message"),
    [
        (
            "send_notification",
            {"userIds": {"type": "trigger", "value": "ids"}, "title": "x"},
            "user",
        ),
        ("update_record", {"recordId": INPUT, "data": {}}, "recordId"),
        ("http_request", {"url": INPUT}, "url"),
    ],
)
async def test_nonsense_fails_its_step(
    engine: Engine, kind: str, config: Json, message: str
) -> None:
    run = await act(engine, kind, {"ids": [str(uuid4())], "name": "nonsense"}, **config)
    assert (run.status, states(run)) == ("failed", {"main": "failed"})
    assert run.error is not None
    assert message in run.error


async def test_a_run_keeps_the_config_it_was_accepted_with(engine: Engine) -> None:
    action_id = await make(engine, "transform", output={"was": 1})
    async with engine.database.transaction() as work:
        run_id = uuid4()
        await run_action(work, engine.actor, action_id, run_id, RunAction())
        await work.execute(
            update(action).where(action.c.id == action_id).values(config={"output": {"is": 2}})
        )
    assert (await actions.ended(engine, action_id, run_id)).result == {"was": 1}


# ---- automations


@pytest.mark.long
async def test_an_automation_is_called_and_waited_for(engine: Engine) -> None:
    automation = await engine.publish(
        graph(
            node("pause", "delay", seconds=0.3),
            node("a", "transform", output={"hello": {"type": "trigger", "value": "name"}}),
            edges=[("pause", "a")],
        )
    )
    run = await act(
        engine, "run_automation", {"name": "Ada"}, automationId=str(automation.id), wait=True
    )
    assert run.result is not None, run.error
    assert (run.result["status"], run.result["output"]) == ("succeeded", {"a": {"hello": "Ada"}})
    called = await engine.get(automation.id, Id(run.result["runId"]))
    assert called.source == "automation"


async def test_an_automation_is_called_and_left_alone(engine: Engine) -> None:
    automation = await engine.publish(graph(node("a", "transform", output={})))
    run = await act(engine, "run_automation", automationId=str(automation.id))
    assert run.result is not None, run.error
    called = await engine.ended(automation.id, Id(run.result["runId"]))
    assert called.status == "succeeded"


async def test_a_failed_or_missing_automation_fails_the_step(engine: Engine) -> None:
    bad = await engine.publish(graph(node("a", "stop", result="failed", message="No.")))
    run = await act(engine, "run_automation", automationId=str(bad.id), wait=True)
    assert run.error == "The automation failed: a: No."
    draft = await engine.draft(graph(node("a", "transform", output={})))
    run = await act(engine, "run_automation", automationId=str(draft))
    assert run.error == "No published and enabled automation has this id."


# ---- cancel


async def test_cancel_wins_over_what_would_follow(engine: Engine, serve: Serve) -> None:
    endpoint = await serve(never)
    action_id = await make(
        engine,
        "sequence",
        steps=[
            step("call", "http_request", url=endpoint.url),
            step("then", "transform", output={}),
        ],
    )
    run_id = await actions.start(engine, action_id)
    await asyncio.wait_for(endpoint.reached.wait(), ENOUGH)
    cancelled = await actions.cancel(engine, action_id, run_id)
    assert (cancelled.status, cancelled.completed_at is None) == ("cancelled", False)
    assert states(cancelled) == {"call": "cancelled", "then": "cancelled"}
    await asyncio.wait_for(endpoint.left.wait(), promised(20))
    assert await actions.cancel(engine, action_id, run_id) == cancelled
    await _closed(engine, run_id)
    assert await actions.get(engine, action_id, run_id) == cancelled


async def test_cancel_reaches_the_automation_that_is_waited_for(engine: Engine) -> None:
    automation = await engine.publish(graph(node("pause", "delay", seconds=600)))
    action_id = await make(engine, "run_automation", automationId=str(automation.id), wait=True)
    run_id = await actions.start(engine, action_id)
    (called,) = await _runs_of(engine, automation.id)
    await actions.cancel(engine, action_id, run_id)
    assert (await engine.get(automation.id, called)).status == "cancelled"


async def test_a_finished_run_is_left_as_it_is_for_ever(engine: Engine) -> None:
    action_id = await make(engine, "transform", output={})
    run = await actions.ended(engine, action_id, await actions.start(engine, action_id))
    assert await actions.cancel(engine, action_id, run.id) == run
    with pytest.raises(DatabaseError, match="cannot change from succeeded to failed"):
        async with engine.database.transaction() as work:
            await work.execute(
                update(action_run).where(action_run.c.id == run.id).values(status="failed")
            )


async def test_an_operator_can_cancel_in_temporal(engine: Engine, serve: Serve) -> None:
    endpoint = await serve(never)
    action_id = await make(engine, "http_request", url=endpoint.url)
    run_id = await actions.start(engine, action_id)
    await asyncio.wait_for(endpoint.reached.wait(), ENOUGH)
    workflow_id = WorkflowKind.ACTION_RUN.workflow_id(run_id)
    await engine.client.get_workflow_handle(workflow_id).cancel()
    run = await actions.ended(engine, action_id, run_id)
    assert (run.status, run.error) == ("cancelled", "Cancelled in Temporal.")
    assert states(run) == {"main": "cancelled"}


# ---- for a node


def act_node(action_id: Id, **fields: Any) -> Json:
    return {"id": "act", "kind": "action", "actionId": str(action_id), **fields}


async def test_a_node_runs_an_action_with_its_input(engine: Engine) -> None:
    action_id = await make(engine, "transform", output={"hello": INPUT})
    run = await engine.run(
        graph(
            act_node(action_id, input={"name": {"type": "trigger", "value": "who"}}),
            node("then", "transform", output={"got": {"type": "node", "value": "act.hello"}}),
            edges=[("act", "then")],
        ),
        {"who": "Ada"},
    )
    assert run.output == {"then": {"got": "Ada"}}, run.error
    (ran,) = await actions.of_action(engine, action_id)
    assert (ran.status, ran.input, ran.result) == ("succeeded", {"name": "Ada"}, {"hello": "Ada"})
    assert ran.metadata["automationRunId"] == str(run.id)
    assert ran.metadata["temporalWorkflowId"] == WorkflowKind.ACTION_RUN.workflow_id(ran.id)


@pytest.mark.long
async def test_a_repeated_node_continues_where_its_action_failed(
    engine: Engine, table: Id, serve: Serve
) -> None:
    endpoint, title = await serve(reply(503), reply(500), reply(502), reply(200)), uuid4().hex
    action_id = await make(
        engine,
        "sequence",
        steps=[
            step(
                "keep", "create_record", databaseId=str(table), data={"title": title, "code": title}
            ),
            step(
                "call",
                "http_request",
                method="POST",
                url=endpoint.url,
                retry={"maxAttempts": 2, "initialDelaySeconds": 0},
            ),
        ],
    )
    run = await engine.run(graph(act_node(action_id, retry=AT_ONCE)))
    assert run.status == "succeeded", run.error
    assert await attempts(engine, run.id) == [("act", 1, "http_500")]
    assert await count(engine, table, title) == 1
    keys = [one.headers["idempotency-key"] for one in endpoint.requests]
    assert keys == [f"{run.id}:act::call"] * 4
    (ran,) = await actions.of_action(engine, action_id)
    assert states(ran) == {"keep": "succeeded", "call": "succeeded"}


async def test_a_failed_action_fails_its_node_with_its_reason(engine: Engine, serve: Serve) -> None:
    endpoint = await serve(reply(404))
    action_id = await make(engine, "http_request", url=endpoint.url)
    run = await engine.run(graph(act_node(action_id, retry=AT_ONCE)))
    assert (run.error, await error_codes(engine, run)) == (
        "act: The server returned 404.",
        {"act": "http_404"},
    )
    assert len(endpoint.requests) == 1
    (ran,) = await actions.of_action(engine, action_id)
    assert ran.status == "failed"


async def test_a_disabled_or_missing_action_fails_its_node(engine: Engine) -> None:
    action_id = await make(engine, "transform", output={})
    body = graph(act_node(action_id))
    automation = await engine.publish(body)
    async with engine.database.transaction() as work:
        await work.execute(update(action).where(action.c.id == action_id).values(enabled=False))
    run = await engine.ended(automation.id, await engine.start(automation.id))
    assert await error_codes(engine, run) == {"act": "validation_error"}
    assert run.error is not None
    assert "disabled" in run.error
    assert await actions.of_action(engine, action_id) == []


@pytest.mark.long
async def test_cancel_of_the_run_ends_the_action_of_its_node(engine: Engine, serve: Serve) -> None:
    endpoint = await serve(never)
    action_id = await make(
        engine,
        "sequence",
        steps=[
            step("call", "http_request", url=endpoint.url),
            step("then", "transform", output={}),
        ],
    )
    automation = await engine.publish(graph(act_node(action_id)))
    run_id = await engine.start(automation.id)
    await asyncio.wait_for(endpoint.reached.wait(), ENOUGH)
    await engine.cancel(automation.id, run_id)
    await asyncio.wait_for(endpoint.left.wait(), promised(20))
    (ran,) = await actions.of_action(engine, action_id)
    ran = await actions.ended(engine, action_id, ran.id)
    assert (ran.status, states(ran)) == ("cancelled", {"call": "cancelled", "then": "cancelled"})


async def test_a_cancelled_action_fails_its_node(engine: Engine, serve: Serve) -> None:
    cancelled = asyncio.Event()
    endpoint = await serve(once(cancelled, reply(503)), never)
    retry = {"maxAttempts": 2, "initialDelaySeconds": 0}
    action_id = await make(
        engine, "sequence", steps=[step("call", "http_request", url=endpoint.url, retry=retry)]
    )
    automation = await engine.publish(graph(act_node(action_id)))
    run_id = await engine.start(automation.id)
    await asyncio.wait_for(endpoint.reached.wait(), ENOUGH)
    (ran,) = await actions.of_action(engine, action_id)
    await actions.cancel(engine, action_id, ran.id)
    cancelled.set()
    run = await engine.ended(automation.id, run_id)
    assert await error_codes(engine, run) == {"act": "cancelled"}
    assert len(endpoint.requests) == 1


@pytest.mark.long
async def test_a_node_waits_for_the_automation_of_its_action(engine: Engine) -> None:
    called = await engine.publish(graph(node("a", "transform", output={"x": 1})))
    action_id = await make(engine, "run_automation", automationId=str(called.id), wait=True)
    run = await engine.run(graph(act_node(action_id)))
    assert run.output is not None, run.error
    assert run.output["act"]["output"] == {"a": {"x": 1}}
    assert by_node(run)["act"].status == "succeeded"


@pytest.mark.long
async def test_runs_that_lead_to_one_another_come_to_an_end(engine: Engine) -> None:
    automation_id = await engine.draft(graph(node("a", "transform", output={})))
    action_id = await make(engine, "run_automation", automationId=str(automation_id))
    automation = await _republish(engine, automation_id, graph(act_node(action_id)))
    first = await engine.start(automation)

    async def quiet() -> bool:
        runs = [await engine.get(automation, run) for run in await _runs_of(engine, automation)]
        return any(run.status == "failed" for run in runs)

    await engine.ended(automation, first)
    await eventually(quiet, what="the end of the loop")
    runs = await _runs_of(engine, automation)
    assert len(runs) <= 9
    failed = [run for run in runs if (await engine.get(automation, run)).status == "failed"]
    assert len(failed) == 1


# ---- steps happen once


async def test_an_effect_that_was_repeated_is_written_once(engine: Engine, table: Id) -> None:
    """Two executions of one step at once: the second finds that it has ended."""

    title, run_id = uuid4().hex, uuid4()
    action_id = await make(
        engine, "create_record", databaseId=str(table), data={"title": title, "code": title}
    )
    async with engine.database.transaction() as work:
        row = await runnable_action(work, engine.actor.workspace_id, action_id)
        assert await accept(work, engine.actor, row, ActionRequest(run_id))
        assert not await accept(work, engine.actor, row, ActionRequest(run_id))
        assert await withdraw_starts(work, [run_id])
        header = await load_header(work, run_id)
    steps = ActionSteps(engine.database, RecordNodes(KEYS).transactions(), {})
    attempt = Attempt(header, header.steps[0])
    replies = await asyncio.gather(*(steps.attempt(attempt) for _ in range(5)))
    assert {reply.state for reply in replies} == {"succeeded"}
    assert await count(engine, table, title) == 1


async def test_no_input_enters_history(engine: Engine, serve: Serve) -> None:
    endpoint = await serve(reply(200, {"canary": "canary"}))
    steps = [step("call", "http_request", method="POST", url=endpoint.url, body=INPUT)]
    run = await act(engine, "sequence", {"name": "canary"}, steps=steps)
    assert run.status == "succeeded", run.error
    await _closed(engine, run.id)
    handle = engine.client.get_workflow_handle(run.metadata["temporalWorkflowId"])
    assert "canary" not in (await handle.fetch_history()).to_json()


async def _closed(engine: Engine, run_id: Id) -> None:
    handle = engine.client.get_workflow_handle(WorkflowKind.ACTION_RUN.workflow_id(run_id))

    async def is_closed() -> bool:
        return (await handle.describe()).close_time is not None

    await eventually(is_closed, what="the end of the execution")


async def _runs_of(engine: Engine, automation_id: Id) -> list[Id]:
    async def found() -> bool:
        return bool(await _rows())

    async def _rows() -> list[Id]:
        async with engine.database.transaction() as work:
            statement = text("SELECT id FROM automation_run WHERE automation_id = :id")
            return [row.id for row in await work.rows(statement, {"id": automation_id})]

    await eventually(found, what="a run of the automation")
    return await _rows()


async def _republish(engine: Engine, automation_id: Id, body: Json) -> Id:
    """Publish an automation with another graph, enabled."""

    changed = UpdateAutomation.model_validate({"graph": body, "enabled": True})
    async with engine.database.transaction() as work:
        await automations.update_automation(work, engine.actor, KEYS, automation_id, changed)
    async with engine.database.transaction() as work:
        published = PublishAutomation.model_validate({})
        await automations.publish(work, engine.actor, KEYS, automation_id, published)
    return automation_id
