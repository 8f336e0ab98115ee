"""Runs of actions that lost their executor, their answer or their time."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import func, insert, select, update
from temporalio.client import WorkflowHandle
from temporalio.testing import ActivityEnvironment

from activities.action_runs import steps as action_steps
from activities.action_runs.steps import ActionSteps, Attempt
from activities.automation_runs import outside_nodes
from activities.automation_runs.nodes.effects import effects_by_kind
from activities.maintenance.reconciler import Reconciler
from cli.work_handlers.runs import ActionRuns
from models.automation.action_runs.execution import ActionRunHeader, load_header
from models.automation.action_runs.store import ActionRequest, accept, runnable_action
from models.automation.action_runs.tables import action_run, action_step, purge_action_runs
from models.automation.automation_runs.tables import automation_run
from models.automation.secrets.store import PutSecret, put_secret
from models.core.base import Id
from runtime.ids import new_id
from runtime.object_store import ObjectStore
from runtime.outbound.client import OutboundClient
from runtime.outbound_policy import OutboundPolicy
from runtime.temporal.outbox import withdraw_starts
from runtime.temporal.workflow_kinds import WorkflowKind
from tests.support import actions
from tests.support.actions import act, make, states, step
from tests.support.endpoint import Serve, never, reply
from tests.support.engine import KEYS, Engine, graph, node
from tests.support.patience import ENOUGH
from tests.support.run_rows import attempts

LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)
AT_ONCE = {"maxAttempts": 3, "initialDelaySeconds": 0}


async def sweep(engine: Engine, grace: timedelta = timedelta()) -> dict[str, int]:
    """One sweep, now."""
    activities = Reconciler(engine.database, engine.client, [ActionRuns()], grace=grace)
    environment = ActivityEnvironment()
    environment.info = replace(environment.info, started_time=datetime.now(UTC))
    counts = await environment.run(activities.reconcile)
    return {name.removeprefix("action_runs_"): count for name, count in counts.items()}


async def accepted(engine: Engine, action_id: Id) -> ActionRunHeader:
    """An accepted run whose start was lost."""
    run_id = new_id()
    async with engine.database.transaction() as work:
        row = await runnable_action(work, engine.actor.workspace_id, action_id)
        await accept(work, engine.actor, row, ActionRequest(run_id))
        assert await withdraw_starts(work, [run_id])
        return await load_header(work, run_id)


# ---- the reconciler


async def test_a_run_that_never_started_is_started(engine: Engine) -> None:
    action_id = await make(engine, "transform", output={"a": 1})
    header = await accepted(engine, action_id)
    await sweep(engine, timedelta(hours=1))
    assert (await actions.get(engine, action_id, header.run_id)).status == "started"
    assert (await sweep(engine))["restarted"] >= 1
    assert (await actions.ended(engine, action_id, header.run_id)).result == {"a": 1}


async def terminate(handle: WorkflowHandle[Any, Any]) -> None:
    await handle.terminate(reason="an operator did")


async def cancel(handle: WorkflowHandle[Any, Any]) -> None:
    await handle.cancel()


@pytest.mark.parametrize(
    ("fate", "status", "error"),
    [
        (terminate, "failed", "Terminated in Temporal."),
        (cancel, "cancelled", "Cancelled in Temporal."),
    ],
)
async def test_a_run_whose_execution_ended_is_closed_with_the_reason(
    engine: Engine,
    serve: Serve,
    fate: Callable[[WorkflowHandle[Any, Any]], Awaitable[None]],
    status: str,
    error: str,
) -> None:
    endpoint = await serve(never)
    action_id = await make(engine, "http_request", url=endpoint.url)
    run_id = await actions.start(engine, action_id)
    await asyncio.wait_for(endpoint.reached.wait(), ENOUGH)
    await sweep(engine)
    assert (await actions.get(engine, action_id, run_id)).status == "started"
    await fate(engine.client.get_workflow_handle(WorkflowKind.ACTION_RUN.workflow_id(run_id)))
    async with asyncio.timeout(ENOUGH):
        while (run := await actions.get(engine, action_id, run_id)).status == "started":
            await sweep(engine)
            await asyncio.sleep(0.05)
    assert (run.status, run.error, states(run)) == (status, error, {"main": "cancelled"})


async def test_a_run_whose_node_has_ended_is_closed(engine: Engine) -> None:
    action_id = await make(engine, "transform", output={})
    automation = await engine.publish(
        graph({"id": "act", "kind": "action", "actionId": str(action_id)})
    )
    run = await engine.ended(automation.id, await engine.start(automation.id))
    (ran,) = await actions.of_action(engine, action_id)
    async with engine.database.transaction() as work:
        row = await work.first(select(action_run).where(action_run.c.id == ran.id))
        assert row is not None
        lost = {**row._mapping, "id": new_id(), "status": "started", "completed_at": None}
        await work.execute(insert(action_run).values({**lost, "result": None}))
    assert (await sweep(engine))["closed"] >= 1
    closed = await actions.get(engine, action_id, lost["id"])
    assert (closed.status, closed.error) == ("cancelled", "The calling node has ended.")
    assert run.status == "succeeded"


@pytest.mark.long
@pytest.mark.parametrize("attempts_", [1, 2])
async def test_a_node_whose_time_is_over_leaves_no_open_run(
    engine: Engine, serve: Serve, attempts_: int
) -> None:
    endpoint = await serve(never)
    action_id = await make(engine, "http_request", method="POST", url=endpoint.url)
    asking = {"id": "act", "kind": "action", "actionId": str(action_id), "timeoutSeconds": 3}
    retry = {"maxAttempts": attempts_, "initialDelaySeconds": 0}
    run = await engine.run(graph({**asking, "retry": retry}))
    assert run.status == "failed"
    assert len(endpoint.requests) == attempts_
    assert {one.headers["idempotency-key"] for one in endpoint.requests} == {f"{run.id}:act::main"}
    (ran,) = await actions.of_action(engine, action_id)
    assert (ran.status, ran.error) == ("cancelled", "The calling node has ended.")


# ---- a death between the effect and its end


class Death(BaseException):
    """What no code catches."""


async def test_a_step_whose_end_was_lost_is_repeated_with_the_same_key(
    engine: Engine, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint = await serve(reply(200, {"a": 1}))
    steps = [
        step(name, kind, url=endpoint.url, **fields)
        for name, kind, fields in (
            ("call", "http_request", {"method": "POST"}),
            ("hook", "send_webhook", {"type": "x"}),
        )
    ]
    action_id = await make(engine, "sequence", steps=steps)
    header = await accepted(engine, action_id)
    async with OutboundClient(OutboundPolicy.from_entries(["127.0.0.0/8"])) as outbound:
        store = ObjectStore("memory://")
        effects = effects_by_kind(engine.database, KEYS, outbound, None, store)
        doing = ActionSteps(engine.database, {}, effects)
        for one in header.steps:
            with monkeypatch.context() as patched:
                patched.setattr(action_steps, "inject_fault", _die)
                with pytest.raises(Death):
                    await doing.attempt(Attempt(header, one, 1, last=False))
            assert (await doing.attempt(Attempt(header, one, 2))).state == "succeeded"
            assert (await doing.attempt(Attempt(header, one, 3))).state == "succeeded"
    calls, hooks = endpoint.requests[:2], endpoint.requests[2:]
    assert [one.headers["idempotency-key"] for one in calls] == [f"{header.run_id}:call"] * 2
    assert len({(one.headers["webhook-id"], one.body) for one in hooks}) == 1
    assert len(hooks) == 2
    run = await actions.get(engine, action_id, header.run_id)
    assert [one.attempt for one in run.step_results.values()] == [2, 2]


def _die(*_: object) -> None:
    raise Death


@pytest.mark.long
async def test_a_node_whose_end_was_lost_sends_the_same_webhook(
    engine: Engine, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint, deaths = await serve(reply()), iter([True])

    def die_once(*_: object) -> None:
        if next(deaths, False):
            raise RuntimeError("The worker died here.")

    monkeypatch.setattr(outside_nodes, "inject_fault", die_once)
    run = await engine.run(
        graph(node("hook", "send_webhook", url=endpoint.url, type="x", retry=AT_ONCE))
    )
    assert run.status == "succeeded", run.error
    assert len({(one.headers["webhook-id"], one.body) for one in endpoint.requests}) == 1
    assert len(endpoint.requests) == 2
    assert await attempts(engine, run.id) == [("hook", 1, "interrupted")]


# ---- time


@pytest.mark.long
async def test_an_automation_is_not_waited_for_longer_than_a_day(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(action_steps, "LONGEST_WAIT", timedelta(seconds=2))
    automation = await engine.publish(graph(node("pause", "delay", seconds=600)))
    action_id = await make(engine, "run_automation", automationId=str(automation.id), wait=True)
    run_id = await actions.start(engine, action_id)
    await actions.until(engine, action_id, run_id, lambda run: states(run)["main"] == "running")
    run = await actions.ended(engine, action_id, run_id)
    assert run.error == "The called run did not end within a day."
    async with engine.database.transaction() as work:
        statement = select(automation_run.c.status).where(
            automation_run.c.automation_id == automation.id
        )
        assert await work.scalar(statement) in {"running", "waiting"}


async def test_old_runs_are_forgotten_with_their_steps(engine: Engine) -> None:
    run = await act(engine, "transform", output={})
    async with engine.database.transaction() as work:
        await work.execute(
            update(action_run).where(action_run.c.id == run.id).values(completed_at=LONG_AGO)
        )
    async with engine.database.transaction() as work:
        assert await purge_action_runs(work, LONG_AGO + timedelta(days=1)) == 2
    for table, column in ((action_run, action_run.c.id), (action_step, action_step.c.run_id)):
        async with engine.database.transaction() as work:
            statement = select(func.count()).select_from(table).where(column == run.id)
            assert await work.scalar(statement) == 0


# ---- secrets


async def test_a_step_sends_a_secret_and_shows_none(engine: Engine, serve: Serve) -> None:
    secret, name = uuid4().hex, f"K{uuid4().hex}"
    async with engine.database.transaction() as work:
        await put_secret(work, engine.actor, KEYS, name, PutSecret(value=secret))
    endpoint = await serve(reply(200, {"echo": secret}))
    auth = {"type": "bearer", "token": {"type": "secret", "value": name}}
    run = await act(engine, "http_request", url=endpoint.url, auth=auth)
    assert run.status == "succeeded", run.error
    assert endpoint.requests[0].headers["authorization"] == f"Bearer {secret}"
    assert secret not in run.model_dump_json()
