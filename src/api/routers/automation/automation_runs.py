"""Runs of automations: start, run again, list, read, cancel."""

from dataclasses import replace
from typing import TypeVar

from api.kernel.deferred import EndOf
from api.kernel.routing import Access, ApiRequest, Cursor, Data, Limit, Router, WaitSeconds
from api.routers.automation.automations import AUTOMATION, READ, WRITE
from api.run_links import add_links
from models.automation.automation_runs import (
    commands,
    node_queries,
    queries,
    retries,
    run_batches,
)
from models.automation.automation_runs.rules import OPEN_RUN, NodeStatus
from models.automation.automation_runs.run_queries import RunQuery, WorkspaceRunQuery
from models.automation.automation_runs.shapes import (
    AutomationRunDetail,
    AutomationRunList,
    AutomationRunShape,
    NodeRunList,
    RetryRun,
    RunBatch,
    RunBatchDetail,
    RunFromNode,
    RunNow,
    RunsBatched,
    TestRun,
)
from models.automation.run_operations import bulk_cancel
from models.automation.run_operations.shapes import CancelledRuns, CancelRuns
from models.automation.waits.queries import show_waits
from models.automation.waits.resume_urls import show_resume_urls
from models.core.access.placement import level_on
from models.core.access.rules import Level, Scope
from models.core.base import Id
from runtime.database import UnitOfWork
from runtime.errors import RunError

router = Router(tags=["automation runs"])

RUN = f"{AUTOMATION}/runs/{{runId}}"
START = replace(WRITE, starts_run=True)
AWAITED = replace(START, prefers=True)
WORKSPACE_RUNS = "/v1/workspaces/{workspaceId}/automation-runs"

_Run = TypeVar("_Run", bound=AutomationRunShape)


def linked(request: ApiRequest, run: _Run) -> _Run:
    """The run with the names under which Temporal and people know it."""
    add_links(request.services.settings, run)
    return run


@router.post(f"{AUTOMATION}/run", access=AWAITED, errors=[RunError])
async def run_automation(request: ApiRequest, body: RunNow) -> Data[AutomationRunDetail]:
    """Run an automation now.

    The published version is run, and the automation must be enabled; the answer is the queued run.
    """
    automation_id, run_id = request.ids["automationId"], request.new_id
    run = await commands.run_now(request.work, request.actor, automation_id, body, run_id)
    return _started(request, run)


@router.post(f"{AUTOMATION}/runs/batch", access=START, errors=[RunError], batch=True)
async def run_automation_batch(request: ApiRequest, body: RunBatch) -> Data[RunsBatched]:
    """Run an automation for each of up to 1,000 payloads.

    The published version is run, and the automation must be enabled. A payload that is refused,
    by the input schema or for want of a slot, has an error as its result; the others are queued
    together. Each run counts for the rate limit of run starts: further starts wait until the limit
    has caught up. `GET …/runs/batches/{id}` shows them together.
    """
    automation_id, batch_id = request.ids["automationId"], request.new_id
    answer = await run_batches.run_batch(request.work, request.actor, automation_id, batch_id, body)
    request.count_run_starts(max(0, answer.accepted - 1))
    return Data(answer)


@router.get(f"{AUTOMATION}/runs/batches/{{batchId}}", access=READ)
async def get_automation_run_batch(
    request: ApiRequest, wait: WaitSeconds = 0
) -> Data[RunBatchDetail]:
    """Get the runs of a batch.

    With `wait=30` the answer comes when all of them have ended, and after 30 seconds as they are
    then; at most 60.
    """
    batch = await _batch(request, request.work)

    async def poll(work: UnitOfWork, last: bool) -> RunBatchDetail | EndOf:
        batch = await _batch(request, work)
        return EndOf(next(batch.open_ids())) if batch.open and not last else batch

    return request.awaited(batch.id, poll, seconds=wait if batch.open else 0) or Data(batch)


async def _batch(request: ApiRequest, work: UnitOfWork) -> RunBatchDetail:
    automation_id, batch_id = request.ids["automationId"], request.ids["batchId"]
    return await run_batches.get_batch(work, request.actor, automation_id, batch_id)


@router.post(f"{AUTOMATION}/test-run", access=AWAITED, errors=[RunError])
async def test_run_automation(request: ApiRequest, body: TestRun) -> Data[AutomationRunDetail]:
    """Test-run an automation.

    The draft is run if there is one, else the published version, whether enabled or not. A failed
    test concerns nobody else, unless `triggerFailureAutomation` is set.
    """
    automation_id, run_id = request.ids["automationId"], request.new_id
    run = await commands.test_run(request.work, request.actor, automation_id, body, run_id)
    return _started(request, run)


@router.post(f"{AUTOMATION}/run-from-node", access=AWAITED, errors=[RunError])
async def run_automation_from_node(
    request: ApiRequest, body: RunFromNode
) -> Data[AutomationRunDetail]:
    """Run an automation from one node."""
    automation_id, run_id = request.ids["automationId"], request.new_id
    run = await commands.run_from_node(request.work, request.actor, automation_id, body, run_id)
    return _started(request, run)


def _listed(request: ApiRequest, runs: AutomationRunList) -> Data[AutomationRunList]:
    runs.runs = [linked(request, run) for run in runs.runs]
    return Data(runs)


class RunListQuery(RunQuery):
    """The query of a list of the runs of an automation."""

    limit: Limit = 30
    cursor: Cursor = None


class WorkspaceRunListQuery(WorkspaceRunQuery):
    """The query of a list of the runs of a workspace."""

    limit: Limit = 30
    cursor: Cursor = None


@router.get(f"{AUTOMATION}/runs", access=replace(READ, snapshot=True))
async def list_automation_runs(request: ApiRequest, query: RunListQuery) -> Data[AutomationRunList]:
    """List the runs of an automation, newest first, without node runs.

    A page ends early where its runs are large, or after ten thousand that a filter looked through.
    """
    automation_id = request.ids["automationId"]
    page = request.page("automation_runs", query.limit, query.cursor, automation_id, query.wire)
    wanted = query.filter(request.work.now)
    runs = await queries.list_runs(request.work, request.actor, automation_id, page, wanted)
    return _listed(request, runs)


@router.get(
    WORKSPACE_RUNS,
    access=Access(scopes=[Scope.AUTOMATIONS_READ], level=Level.VIEW, snapshot=True),
)
async def list_workspace_automation_runs(
    request: ApiRequest, query: WorkspaceRunListQuery
) -> Data[AutomationRunList]:
    """List the runs of all automations that the caller sees, newest first, without node runs.

    `since` and `until` bound when the runs were asked for; the second is not included. `text` is
    looked for in payloads and errors as it is written. A page ends early where its runs are large,
    or after ten thousand that a filter looked through.
    """
    page = request.page("workspace_automation_runs", query.limit, query.cursor, query.wire)
    place = query.automation_id, page, query.filter(request.work.now)
    return _listed(request, await queries.list_workspace_runs(request.work, request.actor, *place))


@router.post(f"{AUTOMATION}/runs/cancel", access=WRITE)
async def cancel_automation_runs(request: ApiRequest, body: CancelRuns) -> Data[CancelledRuns]:
    """Cancel the open runs of an automation that fit a filter, the oldest first.

    At most 500 are cancelled by one call; `remaining` says how many more there are. It is an
    operation over runs that is done at once: the list of those shows it.
    """
    automation_id = request.ids["automationId"]
    return Data(
        await bulk_cancel.cancel_several(
            request.work, request.actor, request.new_id, automation_id, body
        )
    )


@router.post(
    f"{WORKSPACE_RUNS}/cancel",
    access=Access(scopes=[Scope.AUTOMATIONS_WRITE], level=Level.EDIT, idempotent=True),
)
async def cancel_workspace_automation_runs(
    request: ApiRequest, body: CancelRuns
) -> Data[CancelledRuns]:
    """Cancel the open runs of a workspace that fit a filter, the oldest first.

    They are runs of the automations the caller may edit; owners and administrators reach also the
    runs of automations in the trash. At most 500 are cancelled by one call; `remaining` says how
    many more there are. It is an operation over runs that is done at once: the list of those shows
    it.
    """
    work, actor, operation_id = request.work, request.actor, request.new_id
    return Data(await bulk_cancel.cancel_in_workspace(work, actor, operation_id, body))


@router.get(RUN, access=replace(READ, snapshot=True))
async def get_automation_run(
    request: ApiRequest, wait: WaitSeconds = 0
) -> Data[AutomationRunDetail]:
    """Get a run with its node runs.

    A run with very many or very large node runs is answered with the open and failed ones and the
    ones outside loops first; `metadata.trimmed` then is true, and the list of node runs has them
    all. With `wait=30` the answer comes when the run has ended, and after 30 seconds as it is then;
    at most 60.
    """
    run = await _shown(request, request.work, request.ids["automationId"], request.ids["runId"])
    return _awaited(request, run, wait if run.status in OPEN_RUN else 0)


async def _shown(
    request: ApiRequest, work: UnitOfWork, automation_id: Id, run_id: Id
) -> AutomationRunDetail:
    run = await queries.detail(work, request.actor, automation_id, run_id)
    await show_waits(work, request.actor, run.node_runs)
    if _may_resume(request):
        show_resume_urls(request.services.keys, run.node_runs)
    return linked(request, run)


def _started(request: ApiRequest, run: AutomationRunDetail) -> Data[AutomationRunDetail]:
    """The run as it was accepted, or when it has ended if the caller waits for that."""
    return _awaited(request, linked(request, run), None)


def _awaited(
    request: ApiRequest, run: AutomationRunDetail, seconds: int | None
) -> Data[AutomationRunDetail]:
    async def poll(work: UnitOfWork, last: bool) -> AutomationRunDetail | None:
        if not last and await queries.is_open(work, request.actor, run.id):
            return None
        return await _shown(request, work, run.automation_id, run.id)

    return request.awaited(run.id, poll, seconds=seconds) or Data(run)


def _may_resume(request: ApiRequest) -> bool:
    """True when the caller may act on the automation: a resume URL is a credential to do so."""
    return (
        Scope.AUTOMATIONS_WRITE in request.actor.scopes
        and request.placement is not None
        and level_on(request.placement, request.actor.role) >= Level.EDIT
    )


@router.get(f"{RUN}/node-runs", access=replace(READ, cookie=True))
async def list_automation_node_runs(  # the filters of a list
    request: ApiRequest,
    limit: Limit = 30,
    cursor: Cursor = None,
    node_id: str | None = None,
    scope_key: str | None = None,
    status: NodeStatus | None = None,
) -> Data[NodeRunList]:
    """List the node runs of a run in the order they began, with the attempts that failed.

    A page ends early where its node runs are large.
    """
    automation_id, run_id = request.ids["automationId"], request.ids["runId"]
    page = request.page("node_runs", limit, cursor, run_id, node_id, scope_key, status)
    run = await queries.load_run(request.work, request.actor, automation_id, run_id)
    wanted = (node_id, scope_key, status)
    listed = await node_queries.list_node_runs(request.work, request.actor, run, page, *wanted)
    await show_waits(request.work, request.actor, listed.node_runs)
    return Data(listed)


@router.post(f"{RUN}/retry", access=AWAITED, errors=[RunError])
async def retry_automation_run(request: ApiRequest, body: RetryRun) -> Data[AutomationRunDetail]:
    """Run an ended run again, from its start or from where it failed.

    What ended well is then reused, not repeated; a loop that failed runs whole again. The version
    is the one of then, or the published one or the open draft of now.
    """
    automation_id, run_id = request.ids["automationId"], request.ids["runId"]
    run = await retries.retry(
        request.work, request.actor, automation_id, run_id, body, request.new_id
    )
    return _started(request, run)


@router.post(f"{RUN}/cancel", access=WRITE)
async def cancel_automation_run(request: ApiRequest) -> Data[AutomationRunDetail]:
    """Cancel a run; a finished one is returned unchanged."""
    run = await commands.cancel(
        request.work, request.actor, request.ids["automationId"], request.ids["runId"]
    )
    await show_waits(request.work, request.actor, run.node_runs)
    return Data(linked(request, run))
