"""Rows and executions that drifted apart are brought together again."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import delete, insert, select, update
from structlog.testing import capture_logs
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowHandle
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError
from temporalio.testing import ActivityEnvironment

from activities.maintenance import reconciler as maintenance
from activities.maintenance import work_handlers
from activities.maintenance.reconciler import Reconciler
from activities.maintenance.work_handlers import (
    MOST_RESTARTS,
    Execution,
    RowT,
    Verdict,
    WorkHandler,
    WorkRow,
    describe_execution,
)
from cli.work_handlers.runs import AutomationRuns
from models.automation.automation_runs.execution import failure_run_id
from models.automation.automation_runs.slots import append_starts
from models.automation.automation_runs.tables import automation_run, node_run
from models.automation.waits.store import run_wait
from runtime.ids import new_id
from runtime.temporal.outbox import outbox
from runtime.temporal.workflow_kinds import WorkflowKind
from tests.support.engine import Engine, graph, node
from tests.support.patience import eventually
from tests.support.waits import held

pytestmark = pytest.mark.crash

LONG_AGO = {"created_at": datetime(2026, 1, 1, tzinfo=UTC)}


def waiting() -> Any:
    """A graph whose run stays open for as long as a test needs it to."""
    return graph(node("pause", "delay", seconds=600))


def short() -> Any:
    return graph(node("only", "transform", output={"ok": True}))


def execution(engine: Engine, run_id: UUID) -> WorkflowHandle[Any, Any]:
    return engine.client.get_workflow_handle(WorkflowKind.AUTOMATION_RUN.workflow_id(run_id))


async def sweep(engine: Engine, grace: timedelta = timedelta(), batch: int = 500) -> dict[str, int]:
    """One sweep, now."""
    activities = Reconciler(
        engine.database, engine.client, [AutomationRuns()], grace=grace, batch=batch
    )
    environment = ActivityEnvironment()
    environment.info = replace(environment.info, started_time=datetime.now(UTC))
    counts = await environment.run(activities.reconcile)
    return {name.removeprefix("automation_runs_"): count for name, count in counts.items()}


async def parked(engine: Engine, *nodes: Any) -> tuple[UUID, UUID]:
    """Automation and run, the run waiting in Temporal."""
    automation = await engine.publish(graph(*nodes) if nodes else waiting())
    run_id = await engine.start(automation.id)
    await engine.until(automation.id, run_id, lambda run: run.status == "waiting")
    await engine.delivered(WorkflowKind.AUTOMATION_RUN)
    return automation.id, run_id


async def terminate(handle: WorkflowHandle[Any, Any]) -> None:
    await handle.terminate(reason="an operator did")


async def cancel_in_temporal(handle: WorkflowHandle[Any, Any]) -> None:
    await handle.cancel()


@pytest.mark.long
@pytest.mark.parametrize(
    ("fate", "status", "error"),
    [
        (terminate, "failed", "Terminated in Temporal."),
        (cancel_in_temporal, "cancelled", "Cancelled in Temporal."),
    ],
)
async def test_a_run_whose_execution_ended_is_closed_with_the_reason(
    engine: Engine,
    fate: Callable[[WorkflowHandle[Any, Any]], Awaitable[None]],
    status: str,
    error: str,
) -> None:
    automation_id, run_id = await parked(engine)
    await fate(execution(engine, run_id))
    await sweep(engine)
    run = await engine.ended(automation_id, run_id)
    assert (run.status, run.error) == (status, error)
    assert [one.status for one in run.node_runs] == ["cancelled"]
    await sweep(engine)
    assert await engine.get(automation_id, run_id) == run


async def test_a_running_execution_is_left_alone(engine: Engine) -> None:
    automation_id, run_id = await parked(engine)
    before = await engine.get(automation_id, run_id)
    await sweep(engine)
    assert await engine.get(automation_id, run_id) == before
    assert (await execution(engine, run_id).describe()).status is WorkflowExecutionStatus.RUNNING


async def test_a_young_run_is_left_alone(engine: Engine) -> None:
    automation_id, run_id = await parked(engine)
    await terminate(execution(engine, run_id))
    await sweep(engine, grace=timedelta(minutes=5))
    assert (await engine.get(automation_id, run_id)).status == "waiting"
    await sweep(engine)
    assert (await engine.get(automation_id, run_id)).status == "failed"


async def lost_run(engine: Engine, automation_id: UUID, **changes: Any) -> UUID:
    """A queued run that the outbox does not know of; nor does Temporal, unless `id` says so."""
    async with engine.database.transaction() as work:
        like = await work.first(
            select(automation_run)
            .where(automation_run.c.automation_id == automation_id)
            .order_by(automation_run.c.created_at.desc())
            .limit(1)
        )
        assert like is not None
        empty = dict.fromkeys(("output", "error", "started_at", "completed_at"))
        fresh = {"id": new_id(), "status": "queued"}
        values = {**like._mapping, **empty, **LONG_AGO, **fresh, **changes}
        await work.execute(delete(node_run).where(node_run.c.run_id == values["id"]))
        await work.execute(delete(automation_run).where(automation_run.c.id == values["id"]))
        await work.execute(insert(automation_run).values(values))
        await work.execute(delete(outbox).where(outbox.c.subject_id == values["id"]))
    return UUID(str(values["id"]))


async def test_a_run_without_an_execution_continues(engine: Engine) -> None:
    automation = await engine.publish(short())
    await engine.ended(automation.id, await engine.start(automation.id))
    run_id = await lost_run(engine, automation.id, status="running")
    assert (await sweep(engine))["restarted"] == 1
    assert (await engine.ended(automation.id, run_id)).status == "succeeded"


ENDED = {
    "succeeded": WorkflowExecutionStatus.COMPLETED,
    "failed": WorkflowExecutionStatus.FAILED,
    "cancelled": WorkflowExecutionStatus.CANCELED,
}
"""How executions end whose rows ended so."""


@pytest.mark.parametrize(("status", "end"), [("queued", "succeeded"), ("running", "failed")])
async def test_a_row_that_was_put_back_continues_in_another_execution(
    engine: Engine, status: str, end: str
) -> None:
    automation = await engine.publish(graph(node("halt", "stop", result=end)))
    run_id = await engine.start(automation.id)
    await engine.ended(automation.id, run_id)
    await _has_status(engine, run_id, ENDED[end])
    await lost_run(engine, automation.id, id=run_id, status=status)
    assert (await sweep(engine))["restarted"] == 1
    assert (await engine.ended(automation.id, run_id)).status == end
    await _has_status(engine, run_id, ENDED[end])


async def test_a_run_whose_rows_were_put_back_behind_its_execution_begins_from_them(
    engine: Engine,
) -> None:
    automation_id, run_id = await parked(engine, held("hear", "wait_event", {"eventKey": "later"}))
    async with engine.database.transaction() as work:
        for table in (run_wait, node_run):
            await work.execute(delete(table).where(table.c.run_id == run_id))
    await execution(engine, run_id).signal("resolve_node", args=["hear", ""])
    await _has_status(engine, run_id, WorkflowExecutionStatus.COMPLETED)
    assert (await engine.get(automation_id, run_id)).status == "waiting"
    assert (await sweep(engine))["restarted"] == 1
    await engine.until(
        automation_id, run_id, lambda run: [one.status for one in run.node_runs] == ["waiting"]
    )
    await engine.cancel(automation_id, run_id)


@pytest.mark.parametrize("end", ["succeeded", "failed"])
async def test_an_execution_that_repeats_its_last_transaction_ends_as_its_row(
    engine: Engine, end: str
) -> None:
    automation = await engine.publish(graph(node("halt", "stop", result=end)))
    run_id = await engine.start(automation.id)
    await engine.ended(automation.id, run_id)
    await _has_status(engine, run_id, ENDED[end])
    # One that is reset finds its row as one does whose reply was lost.
    handle = execution(engine, run_id)
    request = ResetWorkflowExecutionRequest(
        namespace=engine.client.namespace,
        workflow_execution=WorkflowExecution(workflow_id=handle.id),
        reason="Its reply was lost.",
        workflow_task_finish_event_id=4,
        request_id=str(new_id()),
    )
    first = (await handle.describe()).run_id
    await engine.client.workflow_service.reset_workflow_execution(request)
    await _has_status(engine, run_id, ENDED[end])
    assert (await handle.describe()).run_id != first


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (None, Verdict.RESTART),
        (Execution(WorkflowExecutionStatus.RUNNING, 0), Verdict.LEAVE),
        (Execution(WorkflowExecutionStatus.COMPLETED, 0), Verdict.RESTART),
        (Execution(WorkflowExecutionStatus.COMPLETED, 0, MOST_RESTARTS), Verdict.CLOSE),
        (Execution(WorkflowExecutionStatus.FAILED, 0, failure="failed"), Verdict.RESTART),
        (Execution(WorkflowExecutionStatus.FAILED, 0, failure="KeyError"), Verdict.CLOSE),
        (Execution(WorkflowExecutionStatus.TERMINATED, 0), Verdict.CLOSE),
        (Execution(WorkflowExecutionStatus.CANCELED, 0), Verdict.CLOSE),
        (Execution(WorkflowExecutionStatus.TIMED_OUT, 0), Verdict.CLOSE),
    ],
)
def test_the_verdict_on_an_open_row_follows_from_its_execution(
    found: Execution | None, verdict: Verdict
) -> None:
    row: Any = None
    assert WorkHandler[WorkRow]().judge(row, found) is verdict


async def test_a_run_that_was_never_started_is_started(engine: Engine) -> None:
    automation = await engine.publish(short())
    await engine.ended(automation.id, await engine.start(automation.id))
    run_id = await lost_run(engine, automation.id)
    assert (await sweep(engine))["restarted"] == 1
    assert (await engine.ended(automation.id, run_id)).status == "succeeded"


async def test_the_reconciler_runs_by_a_schedule(engine: Engine) -> None:
    automation = await engine.publish(short())
    await engine.ended(automation.id, await engine.start(automation.id))
    run_id = await lost_run(engine, automation.id)
    schedule = engine.client.get_schedule_handle(WorkflowKind.MAINTENANCE.workflow_id("reconcile"))
    (every,) = (await schedule.describe()).schedule.spec.intervals
    assert every.every == timedelta(seconds=30)
    await schedule.trigger()
    assert (await engine.ended(automation.id, run_id)).status == "succeeded"


async def test_every_page_of_open_runs_is_swept(engine: Engine) -> None:
    automation = await engine.publish(short())
    await engine.ended(automation.id, await engine.start(automation.id))
    lost = [await lost_run(engine, automation.id) for _ in range(5)]
    assert (await sweep(engine, batch=2))["restarted"] == 5
    for run_id in lost:
        assert (await engine.ended(automation.id, run_id)).status == "succeeded"


async def test_a_run_whose_graph_is_gone_fails_and_hinders_no_other(engine: Engine) -> None:
    automation = await engine.publish(short())
    await engine.ended(automation.id, await engine.start(automation.id))
    broken = await lost_run(engine, automation.id, graph_checksum="gone")
    other = await lost_run(engine, automation.id)
    await sweep(engine)
    assert (await engine.ended(automation.id, other)).status == "succeeded"
    await _has_status(engine, broken, WorkflowExecutionStatus.FAILED)
    await engine.delivered(WorkflowKind.AUTOMATION_RUN)
    await sweep(engine)
    run = await engine.get(automation.id, broken)
    assert (run.status, run.error) == ("failed", "The execution failed.")


async def _has_status(engine: Engine, run_id: UUID, status: WorkflowExecutionStatus) -> None:
    """Wait until the execution of a run is there, and has this status."""

    async def has_it() -> bool:
        try:
            return (await execution(engine, run_id).describe()).status is status
        except RPCError:
            return False

    await eventually(has_it, what=f"{status.name} of {run_id}")


async def test_an_execution_without_a_run_is_terminated(engine: Engine) -> None:
    automation_id, run_id = await parked(engine)
    orphan = new_id()
    handle = await engine.client.start_workflow(
        "AutomationRun",
        str(orphan),
        id=WorkflowKind.AUTOMATION_RUN.workflow_id(orphan),
        # This queue has no worker: it stays open, as a workflow of a restored Temporal would.
        task_queue="nobody",
    )
    await _listed(engine, handle.id)
    assert (await sweep(engine))["terminated"] == 1
    assert (await handle.describe()).status is WorkflowExecutionStatus.TERMINATED
    assert (await engine.get(automation_id, run_id)).status == "waiting"


@pytest.mark.parametrize("status", ENDED)
async def test_an_open_execution_of_a_closed_run_ends_as_its_row(
    engine: Engine, status: str
) -> None:
    automation_id, run_id = await parked(engine)
    async with engine.database.transaction() as work:
        await work.execute(
            update(automation_run)
            .where(automation_run.c.id == run_id)
            .values(status=status, completed_at=work.now)
        )
    await _listed(engine, execution(engine, run_id).id)
    await sweep(engine, grace=timedelta(minutes=5))
    assert (await execution(engine, run_id).describe()).status is WorkflowExecutionStatus.RUNNING
    await sweep(engine)
    await _has_status(engine, run_id, ENDED[status])
    assert (await engine.get(automation_id, run_id)).status == status


async def _listed(engine: Engine, workflow_id: str) -> None:
    """Wait until visibility has heard of an open execution."""
    query = f"WorkflowId = '{workflow_id}' AND ExecutionStatus = 'Running'"

    async def is_listed() -> bool:
        return any([True async for _ in engine.client.list_workflows(query)])

    await eventually(is_listed, what=f"the listing of {workflow_id}")


async def test_one_run_that_cannot_be_judged_does_not_stop_the_sweep(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    automation = await engine.publish(short())
    await engine.ended(automation.id, await engine.start(automation.id))
    poison, other = [await lost_run(engine, automation.id) for _ in range(2)]
    whole = Reconciler.repair

    async def repair(self: Reconciler, handler: WorkHandler[RowT], row: RowT) -> str | None:
        if row.id == poison:
            raise ApplicationError("nobody knows why")
        return await whole(self, handler, row)

    monkeypatch.setattr(Reconciler, "repair", repair)
    await sweep(engine)
    assert (await engine.ended(automation.id, other)).status == "succeeded"
    monkeypatch.undo()
    await sweep(engine)
    assert (await engine.ended(automation.id, poison)).status == "succeeded"


async def test_a_restarted_run_keeps_what_operators_see(engine: Engine) -> None:
    automation = await engine.publish(waiting())
    await engine.start(automation.id)
    run_id = await lost_run(engine, automation.id, source="schedule")
    async with engine.database.transaction() as work:
        await append_starts(work, [run_id])
        request = await work.scalar(select(outbox.c.request).where(outbox.c.subject_id == run_id))
    assert request == {
        "summary": "Test · v1 · schedule",
        "resourceId": str(automation.id),
        "source": "schedule",
        "weight": 1,
        "signal": "admitted",
    }
    await engine.until(automation.id, run_id, lambda run: run.status == "waiting")
    described = await execution(engine, run_id).describe()
    assert await described.static_summary() == request["summary"]


async def test_a_restart_wakes_an_execution_that_is_asleep(engine: Engine) -> None:
    """It began while its start rested, or before its slot, and a start alone does not wake it."""
    automation = await engine.publish(waiting())
    await engine.start(automation.id)
    run_id = await lost_run(engine, automation.id, admitted_at=None)
    async with engine.database.transaction() as work:
        await append_starts(work, [run_id])
    await engine.delivered(WorkflowKind.AUTOMATION_RUN)
    await eventually(lambda: _sleeps(engine, run_id))
    async with engine.database.transaction() as work:
        admitted = update(automation_run).where(automation_run.c.id == run_id)
        await work.execute(admitted.values(admitted_at=datetime.now(UTC)))
    assert (await sweep(engine))["restarted"] == 1
    await engine.until(automation.id, run_id, lambda run: run.status == "waiting")
    await engine.cancel(automation.id, run_id)


async def _sleeps(engine: Engine, run_id: UUID) -> bool:
    workflow_id = WorkflowKind.AUTOMATION_RUN.workflow_id(run_id)
    found = await describe_execution(engine.client, workflow_id)
    return found is not None and found.sleeps


async def limited(engine: Engine) -> UUID:
    """An automation of which one run goes at a time."""
    config = {"kind": "manual", "concurrency": {"limit": 1}}
    return (await engine.publish(waiting(), triggerConfig=config)).id


async def test_a_run_in_line_is_left_alone(engine: Engine) -> None:
    automation_id = await limited(engine)
    first, second = [await engine.start(automation_id) for _ in range(2)]
    # The sweep has no patience here: it would start a run anew that is being started.
    await engine.until(automation_id, first, lambda run: run.status == "waiting")
    counts = await sweep(engine)
    assert (counts["restarted"], counts["closed"], counts["admitted"]) == (0, 0, 0)
    assert (await engine.get(automation_id, second)).metadata.get("admittedAt") is None
    for run_id in (second, first):
        await engine.cancel(automation_id, run_id)


async def test_a_run_in_line_for_a_free_slot_gets_it(engine: Engine) -> None:
    automation_id = await limited(engine)
    first, second = [await engine.start(automation_id) for _ in range(2)]
    async with engine.database.transaction() as work:
        # As if by hand: nothing follows from this.
        await work.execute(
            update(automation_run)
            .where(automation_run.c.id == first)
            .values(status="cancelled", completed_at=work.now)
        )
    assert (await sweep(engine))["admitted"] == 1
    await engine.until(automation_id, second, lambda run: run.status == "waiting")
    await engine.cancel(automation_id, second)


async def test_a_run_the_reconciler_closes_lets_the_next_in(engine: Engine) -> None:
    automation_id = await limited(engine)
    first, second = [await engine.start(automation_id) for _ in range(2)]
    await engine.until(automation_id, first, lambda run: run.status == "waiting")
    await terminate(execution(engine, first))
    await sweep(engine)
    assert (await engine.get(automation_id, first)).status == "failed"
    await engine.until(automation_id, second, lambda run: run.status == "waiting")
    await engine.cancel(automation_id, second)


async def test_a_run_whose_execution_died_is_handled_once(engine: Engine) -> None:
    handler = await engine.publish(short())
    shape = {**waiting(), "failureAutomationId": str(handler.id)}
    automation = await engine.publish(shape)
    run_id = await engine.start(automation.id)
    await engine.until(automation.id, run_id, lambda run: run.status == "waiting")
    await terminate(execution(engine, run_id))
    await asyncio.gather(*(sweep(engine) for _ in range(4)))
    run = await engine.get(automation.id, run_id)
    assert run.error == "Terminated in Temporal."
    answer = await engine.ended(handler.id, failure_run_id(run_id))
    assert (answer.status, answer.source) == ("succeeded", "failure")
    async with engine.database.transaction() as work:
        handled = await work.rows(
            select(automation_run.c.id).where(automation_run.c.automation_id == handler.id)
        )
    assert len(handled) == 1


async def child_of(engine: Engine, automation_id: UUID, parent_id: UUID, **changes: Any) -> UUID:
    """A queued run that another one waits for, and has not started yet."""
    return await lost_run(engine, automation_id, parent_run_id=parent_id, **changes)


async def test_a_called_run_is_its_callers_to_start(engine: Engine) -> None:
    automation_id, run_id = await parked(engine)
    child = await child_of(engine, automation_id, run_id)
    await sweep(engine)
    assert (await engine.get(automation_id, child)).status == "queued"
    async with engine.database.transaction() as work:
        await work.execute(
            update(automation_run)
            .where(automation_run.c.id == run_id)
            .values(status="cancelled", completed_at=work.now)
        )
    await sweep(engine)
    assert (await engine.get(automation_id, child)).status == "cancelled"


async def test_parts_of_loops_are_judged_by_their_run(engine: Engine) -> None:
    automation_id, open_run = await parked(engine)
    closed_run = await engine.start(automation_id)
    await engine.cancel(automation_id, closed_run)
    handles = {
        run_id: await engine.client.start_workflow(
            "LoopChunk",
            id=f"{WorkflowKind.AUTOMATION_RUN.workflow_id(run_id)}/loop/each/root/0",
            task_queue="nobody",
        )
        for run_id in (open_run, closed_run, new_id())
    }
    for handle in handles.values():
        await _listed(engine, handle.id)
    await sweep(engine)
    _, closed, absent = handles.values()
    requests = [
        (await handle.describe()).raw_description.workflow_extended_info.cancel_requested
        for handle in (handles[open_run], closed)
    ]
    assert requests == [False, True]
    assert (await absent.describe()).status is WorkflowExecutionStatus.TERMINATED
    for handle in (handles[open_run], closed):
        await handle.terminate()


@pytest.mark.long
async def test_a_run_whose_task_keeps_failing_is_reported(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    automation_id, run_id = await parked(engine)
    whole = describe_execution

    async def describe(client: Client, workflow_id: str) -> Execution | None:
        found = await whole(client, workflow_id)
        if found is None or not workflow_id.endswith(str(run_id)):
            return found
        return replace(found, attempt=maintenance.POISONED)

    monkeypatch.setattr(work_handlers, "describe_execution", describe)
    with capture_logs() as logs:
        assert (await sweep(engine))["poisoned"] == 1
    assert {"id": str(run_id), "attempt": maintenance.POISONED}.items() <= next(
        line for line in logs if line["log_level"] == "error"
    ).items()
    assert (await engine.get(automation_id, run_id)).status == "waiting"
