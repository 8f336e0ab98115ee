"""Runs of automations: start, list, read, cancel."""

from typing import TypeVar

from api.kernel.routing import Call, Cursor, Data, Limit, Router
from api.routers.automations import AUTOMATION, READ, WRITE
from models.automation_runs import commands, queries
from models.automation_runs.rules import RunSource, RunStatus
from models.automation_runs.shapes import (
    AutomationRunDetail,
    AutomationRunList,
    AutomationRunShape,
    RunFromNode,
    RunNow,
    TestRun,
)
from runtime.errors import RunError
from runtime.families import temporal_ui_url

router = Router(tags=["automation runs"])

RUN = f"{AUTOMATION}/runs/{{runId}}"

_Run = TypeVar("_Run", bound=AutomationRunShape)


def _linked(call: Call, run: _Run) -> _Run:
    """The run with the names under which Temporal knows it."""
    settings = call.kernel.settings
    workflow_id = run.metadata["temporalWorkflowId"]
    link = {"workflowId": workflow_id, "runId": None, "uiUrl": None}
    if settings.temporal_ui_url is not None:
        link["uiUrl"] = temporal_ui_url(
            settings.temporal_ui_url, settings.temporal_namespace, workflow_id
        )
    run.metadata["temporal"] = link
    return run


@router.post(f"{AUTOMATION}/run", access=WRITE, errors=[RunError])
async def run_automation(call: Call, body: RunNow) -> Data[AutomationRunDetail]:
    """Run an automation now.

    The published version is run, and the automation must be enabled; the answer is the queued run.
    """
    run = await commands.run_now(call.work, call.actor, call.ids["automationId"], body)
    return Data(_linked(call, run))


@router.post(f"{AUTOMATION}/test-run", access=WRITE, errors=[RunError])
async def test_run_automation(call: Call, body: TestRun) -> Data[AutomationRunDetail]:
    """Test-run an automation.

    The draft is run if there is one, else the published version, whether enabled or not.
    """
    run = await commands.test_run(call.work, call.actor, call.ids["automationId"], body)
    return Data(_linked(call, run))


@router.post(f"{AUTOMATION}/run-from-node", access=WRITE, errors=[RunError])
async def run_automation_from_node(call: Call, body: RunFromNode) -> Data[AutomationRunDetail]:
    """Run an automation from one node."""
    run = await commands.run_from_node(call.work, call.actor, call.ids["automationId"], body)
    return Data(_linked(call, run))


@router.get(f"{AUTOMATION}/runs", access=READ)
async def list_automation_runs(
    call: Call,
    limit: Limit = 30,
    cursor: Cursor = None,
    status: RunStatus | None = None,
    source: RunSource | None = None,
) -> Data[AutomationRunList]:
    """List the runs of an automation, newest first, without node runs."""
    automation_id = call.ids["automationId"]
    page = call.page("automation_runs", limit, cursor, automation_id, status, source)
    runs = await queries.list_runs(call.work, call.actor, automation_id, page, status, source)
    runs.runs = [_linked(call, run) for run in runs.runs]
    return Data(runs)


@router.get(RUN, access=READ)
async def get_automation_run(call: Call) -> Data[AutomationRunDetail]:
    """Get a run with its node runs."""
    run = await queries.detail(call.work, call.actor, call.ids["automationId"], call.ids["runId"])
    return Data(_linked(call, run))


@router.post(f"{RUN}/cancel", access=WRITE)
async def cancel_automation_run(call: Call) -> Data[AutomationRunDetail]:
    """Cancel a run; a finished one is returned unchanged."""
    run = await commands.cancel(call.work, call.actor, call.ids["automationId"], call.ids["runId"])
    return Data(_linked(call, run))
