"""Executions of yesterday replay against the code of today."""

import asyncio
import platform
from pathlib import Path

import pytest
from temporalio.client import WorkflowHistory
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Replayer

from cli.work_handlers.registry import WORKFLOWS
from runtime.temporal.executions import data_converter
from runtime.temporal.workflow_kinds import WorkflowKind
from tests.support.engine import Engine, graph, node
from tests.support.fingerprints import ROOT
from tests.support.patience import eventually
from workflows.runners import sandboxed_runner

HISTORIES = sorted((ROOT / "temporal" / "histories").glob("*.json"))
OF_THIS_SESSION = 30

ADVICE = """{name} no longer replays: {error}

An execution that is running now, and has come as far as this history, would fail the same way.
Keep the old way for it behind `workflow.patched("<constant id>")`; do not record this history
again unless no platform has ever run the workflow (python -m tests.support.record_histories)."""


def replayer() -> Replayer:
    """As production runs workflows: sandboxed, with the production data converter."""
    return Replayer(
        workflows=WORKFLOWS,
        workflow_runner=sandboxed_runner(),
        data_converter=data_converter,
    )


async def replay(name: str, history: WorkflowHistory) -> None:
    result = await replayer().replay_workflow(history, raise_on_replay_failure=False)
    error = result.replay_failure
    assert error is None, ADVICE.format(name=name, error=error)


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.stem)
async def test_a_recorded_history_replays(path: Path) -> None:
    text = await asyncio.to_thread(path.read_text)
    await replay(path.name, WorkflowHistory.from_json(path.stem, text))


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.stem)
def test_a_recorded_history_names_no_machine(path: Path) -> None:
    text = path.read_text()
    assert '"identity": "recorder"' in text
    for telltale in ("@", "stackTrace", str(ROOT), platform.node()):
        assert telltale not in text


@pytest.mark.long
async def test_runs_of_this_session_replay(engine: Engine, temporal: WorkflowEnvironment) -> None:
    run = await engine.run(graph(node("only", "transform", output={"ok": True})))
    # Without the condition on the status, open executions come first and may be all there are.
    ended = "WorkflowType = 'AutomationRun' AND ExecutionStatus != 'Running'"

    async def is_listed() -> bool:
        own = f"{ended} AND WorkflowId = '{WorkflowKind.AUTOMATION_RUN.workflow_id(run.id)}'"
        return (await temporal.client.count_workflows(own)).count == 1

    await eventually(is_listed, what="the end in visibility")
    async for listed in temporal.client.list_workflows(ended, limit=OF_THIS_SESSION):
        assert listed.id.startswith(f"{WorkflowKind.AUTOMATION_RUN}/")
        handle = temporal.client.get_workflow_handle(listed.id, run_id=listed.run_id)
        await replay(listed.id, await handle.fetch_history())
