"""Runs under a pause, before real workers: none begins, and a resume starts each once."""

from datetime import timedelta
from functools import partial

import pytest
from temporalio.service import RPCError
from temporalio.testing import ActivityEnvironment

from activities.maintenance.reconciler import Reconciler
from cli.work_handlers.runs import AutomationRuns
from models.core.base import Id
from models.core.pauses.rules import PauseSubject
from runtime.temporal.workflow_kinds import WorkflowKind
from tests.support.engine import Engine, graph, node
from tests.support.patience import found_when
from tests.support.pauses import pause_work, resume_work
from tests.support.run_rows import runs_of
from tests.support.schedules import QUICK, handle_of, scheduled
from tests.support.waits import held

pytestmark = pytest.mark.takes(seconds=15)

AUTOMATION = PauseSubject.AUTOMATION


async def is_started(engine: Engine, run_id: Id) -> bool:
    """True when Temporal knows of a run."""
    handle = engine.client.get_workflow_handle(WorkflowKind.AUTOMATION_RUN.workflow_id(run_id))
    try:
        await handle.describe()
    except RPCError:
        return False
    return True


async def sweep(engine: Engine) -> dict[str, int]:
    """A sweep of the reconciler over runs, however young."""
    reconciler = Reconciler(engine.database, engine.client, [AutomationRuns()], grace=timedelta(0))
    swept: dict[str, int] = await ActivityEnvironment().run(reconciler.reconcile)
    return swept


@pytest.mark.long
async def test_resting_runs_have_no_execution_and_succeed_after_a_resume(engine: Engine) -> None:
    made, beside = [await engine.publish(QUICK) for _ in range(2)]
    await pause_work(engine, AUTOMATION, made.id)
    runs = [await engine.start(made.id) for _ in range(4)]
    await engine.ended(beside.id, await engine.start(beside.id))
    assert not any([await is_started(engine, run_id) for run_id in runs])
    swept = await sweep(engine)
    assert swept["automation_runs_restarted"] == 0, "a sweep leaves what rests"
    assert [row.status for row in await runs_of(engine, made.id)] == ["queued"] * 4
    await resume_work(engine, AUTOMATION, made.id)
    ends = [await engine.ended(made.id, run_id) for run_id in runs]
    assert [one.status for one in ends] == ["succeeded"] * 4
    starts = [one.started_at for one in ends]
    assert all(starts)


async def test_a_called_automation_under_a_pause_holds_up_its_caller(engine: Engine) -> None:
    called = await engine.publish(QUICK)
    caller = await engine.publish(
        graph(held("call", "call_automation", {"automationId": str(called.id)}))
    )
    await pause_work(engine, AUTOMATION, called.id)
    run_id = await engine.start(caller.id)
    await engine.until(caller.id, run_id, lambda run: run.status == "waiting")
    (row,) = await found_when(partial(runs_of, engine, called.id), bool, "the called run")
    shown = await engine.get(called.id, row.id)
    assert (shown.status, shown.metadata["waitingFor"]["kind"]) == ("queued", "paused")
    await sweep(engine)
    assert (await engine.get(called.id, row.id)).status == "queued"
    await resume_work(engine, AUTOMATION, called.id)
    assert (await engine.ended(caller.id, run_id)).status == "succeeded"
    assert (await engine.get(called.id, row.id)).status == "succeeded"


async def test_a_cancel_ends_a_called_run_that_rests(engine: Engine) -> None:
    called = await engine.publish(QUICK)
    caller = await engine.publish(
        graph(held("call", "call_automation", {"automationId": str(called.id)}))
    )
    await pause_work(engine, AUTOMATION, called.id)
    run_id = await engine.start(caller.id)
    (row,) = await found_when(partial(runs_of, engine, called.id), bool, "the called run")
    await engine.cancel(caller.id, run_id)
    assert (await engine.get(called.id, row.id)).status == "cancelled"
    await resume_work(engine, AUTOMATION, called.id)
    assert (await engine.get(called.id, row.id)).status == "cancelled"


async def test_a_due_time_under_a_pause_has_a_run_that_rests(engine: Engine) -> None:
    made = await scheduled(engine)
    await pause_work(engine, AUTOMATION, made.id)
    await handle_of(engine.client, made.id).trigger()
    (row,) = await found_when(partial(runs_of, engine, made.id), bool, "the run of the due time")
    assert (await engine.get(made.id, row.id)).metadata["waitingFor"]["kind"] == "paused"
    await resume_work(engine, AUTOMATION, made.id)
    assert (await engine.ended(made.id, row.id)).status == "succeeded"


async def test_runs_of_one_key_rest_behind_each_other(engine: Engine) -> None:
    limited = {"kind": "manual", "concurrency": {"limit": 1, "policy": "queue"}}
    content = graph(node("a", "transform", output={"ok": True}))
    made = await engine.publish(content, triggerConfig=limited)
    await pause_work(engine, AUTOMATION, made.id)
    runs = [await engine.start(made.id) for _ in range(3)]
    await resume_work(engine, AUTOMATION, made.id)
    ends = [await engine.ended(made.id, run_id) for run_id in runs]
    moments = [moment for one in ends for moment in (one.started_at, one.completed_at)]
    assert None not in moments
    assert moments == sorted(moments), "one after the other, in the order of their acceptance"
