"""Runs of automations: schedules, start, run again, list, read, cancel, and the page of a run."""

from dataclasses import replace
from typing import Annotated, TypeVar

from pydantic import Field
from starlette.responses import Response

from api.kernel.awaited_work import EndOf
from api.kernel.routing import Access, ApiRequest, Cursor, Data, Limit, Router, WaitSeconds
from api.pages.assets import asset
from api.realtime.feeds import EventStream, with_keepalive
from api.routers.automation import automations
from api.run_events import AutomationRunWatch, add_links, run_events
from models.automation import run_overviews
from models.automation.automation_runs import commands, node_queries, queries, retries, shapes
from models.automation.automation_runs.filters import RunQuery, WorkspaceRunQuery
from models.automation.automation_runs.rules import OPEN_RUN, NodeStatus
from models.automation.automations import schedules
from models.automation.automations import shapes as automation_shapes
from models.automation.run_operations import commands as bulk_cancel
from models.automation.run_undos.commands import get_undo
from models.automation.run_undos.queries import RunUndoDetail, UndoRun, list_undos
from models.automation.waits.links import show_resume_urls
from models.automation.waits.queries import show_waits
from models.core.access.rules import Level, Scope, level_on
from models.core.base import Id
from models.core.values import InputMoment
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError, RunError

schedules_router = Router(tags=["automations"])

SCHEDULE_PREVIEW = f"{automations.AUTOMATION}/schedule-preview"

Count = Annotated[int, Field(ge=1, le=100)]
After = InputMoment | None


@schedules_router.get(
    SCHEDULE_PREVIEW, access=automations.READ_BY_PAGE, calls=schedules.preview_stored
)
async def get_schedule_preview(count: Count = 10, after: After = None) -> None:
    """Get the next times at which the schedule of an automation fires.

    It is the schedule of the open draft, else of the published version; `after` is the moment to
    start from, by default now. `notes` explain what clock changes do to these times: a fixed time
    that the clock skips runs when it is set, one that comes twice runs the first time, and a
    schedule around the clock keeps its interval. `passedOver` counts the due times without a run.
    """


@schedules_router.post(SCHEDULE_PREVIEW, access=replace(automations.READ_BY_PAGE, safe=True))
async def preview_schedule(
    request: ApiRequest,
    body: automation_shapes.PreviewSchedule,
    count: Count = 10,
    after: After = None,
) -> Data[automation_shapes.SchedulePreview]:
    """Get the next times at which a schedule would fire that is not saved."""
    return Data(schedules.preview_given(body.trigger_config, count, after or request.work.now))


START = replace(automations.WRITE, starts_run=True)


@schedules_router.post(
    f"{automations.AUTOMATION}/backfill", access=START, errors=[RunError], calls=commands.backfill
)
async def backfill_automation() -> None:
    """Run an automation once for every due time of a past period that has no run yet.

    The runs have the source `backfill` and the payload of the schedule. At most 1,000 due times.
    """


router = Router(tags=["automation runs"])

RUN = f"{automations.AUTOMATION}/runs/{{runId}}"

AWAITED = replace(START, prefers=True)
_AWAITED_BY_PAGE = replace(AWAITED, cookie=True)
WORKSPACE_RUNS = "/v1/workspaces/{workspaceId}/automation-runs"

_Run = TypeVar("_Run", bound=shapes.AutomationRunShape)


def linked(request: ApiRequest, run: _Run) -> _Run:
    """The run with the names under which Temporal and people know it."""
    add_links(request.services.settings, run)
    return run


@router.post(f"{automations.AUTOMATION}/run", access=AWAITED, errors=[RunError])
async def run_automation(
    request: ApiRequest, body: shapes.RunNow
) -> Data[shapes.AutomationRunDetail]:
    """Run an automation now.

    The published version is run, and the automation must be enabled; the answer is the queued run.
    """
    automation_id, run_id = request.ids["automationId"], request.new_id
    run = await commands.run_now(request.work, request.actor, automation_id, body, run_id)
    return _started(request, run)


@router.post(f"{automations.AUTOMATION}/runs/batch", access=START, errors=[RunError], batch=True)
async def run_automation_batch(
    request: ApiRequest, body: shapes.RunBatch
) -> Data[shapes.RunsBatched]:
    """Run an automation for each of up to 1,000 payloads.

    The published version is run, and the automation must be enabled. A payload that is refused,
    by the input schema or for want of a slot, has an error as its result; the others are queued
    together. Each run counts for the rate limit of run starts: further starts wait until the limit
    has caught up. `GET …/runs/batches/{id}` shows them together.
    """
    automation_id, batch_id = request.ids["automationId"], request.new_id
    answer = await commands.run_batch(request.work, request.actor, automation_id, batch_id, body)
    request.count_run_starts(max(0, answer.accepted - 1))
    return Data(answer)


@router.get(f"{automations.AUTOMATION}/runs/batches/{{batchId}}", access=automations.READ)
async def get_automation_run_batch(
    request: ApiRequest, wait: WaitSeconds = 0
) -> Data[shapes.RunBatchDetail]:
    """Get the runs of a batch.

    With `wait=30` the answer comes when all of them have ended, and after 30 seconds as they are
    then; at most 60.
    """
    batch = await _batch(request, request.work)

    async def poll(work: UnitOfWork, last: bool) -> shapes.RunBatchDetail | EndOf:
        batch = await _batch(request, work)
        return EndOf(next(batch.open_ids())) if batch.open and not last else batch

    return request.awaited(batch.id, poll, seconds=wait if batch.open else 0) or Data(batch)


async def _batch(request: ApiRequest, work: UnitOfWork) -> shapes.RunBatchDetail:
    automation_id, batch_id = request.ids["automationId"], request.ids["batchId"]
    return await commands.get_batch(work, request.actor, automation_id, batch_id)


@router.post(f"{automations.AUTOMATION}/test-run", access=_AWAITED_BY_PAGE, errors=[RunError])
async def test_run_automation(
    request: ApiRequest, body: shapes.TestRun
) -> Data[shapes.AutomationRunDetail]:
    """Test-run an automation.

    The draft is run if there is one, else the published version, whether enabled or not. A failed
    test starts no failure automation, unless `triggerFailureAutomation` is set.
    """
    automation_id, run_id = request.ids["automationId"], request.new_id
    run = await commands.test_run(request.work, request.actor, automation_id, body, run_id)
    return _started(request, run)


@router.post(f"{automations.AUTOMATION}/run-from-node", access=_AWAITED_BY_PAGE, errors=[RunError])
async def run_automation_from_node(
    request: ApiRequest, body: shapes.RunFromNode
) -> Data[shapes.AutomationRunDetail]:
    """Run an automation from one node."""
    automation_id, run_id = request.ids["automationId"], request.new_id
    run = await commands.run_from_node(request.work, request.actor, automation_id, body, run_id)
    return _started(request, run)


def _listed(request: ApiRequest, runs: shapes.AutomationRunList) -> Data[shapes.AutomationRunList]:
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


@router.get(
    f"{automations.AUTOMATION}/runs", access=replace(automations.READ_BY_PAGE, snapshot=True)
)
async def list_automation_runs(
    request: ApiRequest, query: RunListQuery
) -> Data[shapes.AutomationRunList]:
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
    access=Access(scopes=[Scope.AUTOMATIONS_READ], level=Level.VIEW, snapshot=True, cookie=True),
)
async def list_workspace_automation_runs(
    request: ApiRequest, query: WorkspaceRunListQuery
) -> Data[shapes.AutomationRunList]:
    """List the runs of all automations that the caller sees, newest first, without node runs.

    `since` and `until` bound when the runs were created; the second is not included. `text` is
    searched for literally in payloads and errors. A page ends early where its runs are large, or
    after a filter has searched ten thousand.
    """
    page = request.page("workspace_automation_runs", query.limit, query.cursor, query.wire)
    place = query.automation_id, page, query.filter(request.work.now)
    return _listed(request, await queries.list_workspace_runs(request.work, request.actor, *place))


@router.post(
    f"{automations.AUTOMATION}/runs/cancel",
    access=automations.WRITE,
    calls=bulk_cancel.cancel_several,
)
async def cancel_automation_runs() -> None:
    """Cancel the open runs of an automation that fit a filter, the oldest first.

    One call cancels at most 500; `remaining` is the number of the others. It is an operation over
    runs that is done immediately: the list of those shows it.
    """


@router.post(
    f"{WORKSPACE_RUNS}/cancel",
    access=Access(scopes=[Scope.AUTOMATIONS_WRITE], level=Level.EDIT, idempotent=True),
    calls=bulk_cancel.cancel_in_workspace,
)
async def cancel_workspace_automation_runs() -> None:
    """Cancel the open runs of a workspace that fit a filter, the oldest first.

    They are runs of the automations the caller may edit; for owners and administrators also those
    of automations in the trash. One call cancels at most 500; `remaining` is the number of the
    others. It is an operation over runs that is done immediately: the list of those shows it.
    """


@router.get(RUN, access=replace(automations.READ_BY_PAGE, snapshot=True))
async def get_automation_run(
    request: ApiRequest, wait: WaitSeconds = 0
) -> Data[shapes.AutomationRunDetail]:
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
) -> shapes.AutomationRunDetail:
    run = await queries.detail(work, request.actor, automation_id, run_id)
    await show_waits(work, request.actor, run.node_runs)
    if _may_resume(request):
        show_resume_urls(request.services.keys, run.node_runs)
    return linked(request, run)


def _started(
    request: ApiRequest, run: shapes.AutomationRunDetail
) -> Data[shapes.AutomationRunDetail]:
    """The run as it was accepted, or when it has ended if the caller waits for that."""
    return _awaited(request, linked(request, run), None)


def _awaited(
    request: ApiRequest, run: shapes.AutomationRunDetail, seconds: int | None
) -> Data[shapes.AutomationRunDetail]:
    async def poll(work: UnitOfWork, last: bool) -> shapes.AutomationRunDetail | None:
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


@router.get(f"{RUN}/node-runs", access=automations.READ_BY_PAGE)
async def list_automation_node_runs(
    request: ApiRequest,
    limit: Limit = 30,
    cursor: Cursor = None,
    node_id: str | None = None,
    scope_key: str | None = None,
    status: NodeStatus | None = None,
) -> Data[shapes.NodeRunList]:
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


@router.post(f"{RUN}/retry", access=_AWAITED_BY_PAGE, errors=[RunError])
async def retry_automation_run(
    request: ApiRequest, body: shapes.RetryRun
) -> Data[shapes.AutomationRunDetail]:
    """Run an ended run again, from its start or from where it failed.

    What ended well is then reused, not repeated; a loop that failed runs whole again. The version
    is the one of then, or the published one or the open draft of now.
    """
    automation_id, run_id = request.ids["automationId"], request.ids["runId"]
    run = await retries.retry(
        request.work, request.actor, automation_id, run_id, body, request.new_id
    )
    return _started(request, run)


@router.post(f"{RUN}/cancel", access=automations.WRITE_BY_PAGE)
async def cancel_automation_run(request: ApiRequest) -> Data[shapes.AutomationRunDetail]:
    """Cancel a run; a finished one is returned unchanged."""
    run = await commands.cancel(
        request.work, request.actor, request.ids["automationId"], request.ids["runId"]
    )
    await show_waits(request.work, request.actor, run.node_runs)
    return Data(linked(request, run))


UNDO = replace(automations.WRITE_BY_PAGE, scopes=[Scope.AUTOMATIONS_WRITE, Scope.RECORDS_WRITE])
UNDOS = f"{RUN}/undos"


@router.post(f"{RUN}/undo", access=UNDO, errors=[RunError])
async def undo_automation_run(request: ApiRequest, body: UndoRun) -> Data[RunUndoDetail]:
    """Undo an ended run: revert what its nodes wrote to records, unless it was changed since.

    Created records move to the trash, deleted ones are restored, fields get their earlier values.
    The rest is listed in `conflicts`, and what stays outside in `outside`. Runs that it called are
    undone with it. With `preview` nothing is written. The undo can be undone: name it in
    `undoId`. More than 500 records are reverted by an operation over runs.
    """
    ids = request.ids["automationId"], request.ids["runId"]
    request.is_safe = body.preview
    undo = await bulk_cancel.undo_run(request.work, request.actor, *ids, body, request.new_id)
    return Data(undo)


@router.get(UNDOS, access=automations.READ, calls=list_undos)
async def list_automation_run_undos() -> None:
    """List the undos of a run, newest first."""


@router.get(f"{UNDOS}/{{undoId}}", access=automations.READ)
async def get_automation_run_undo(request: ApiRequest) -> Data[RunUndoDetail]:
    """Get an undo of a run, with the reverted records and the conflicts."""
    ids = request.ids["automationId"], request.ids["runId"], request.ids["undoId"]
    return Data(await get_undo(request.work, request.actor, *ids))


pages_router = Router(tags=["run pages"])

RUN_PAGE = "/v1/runs/{runId}"

READ_PAGE = Access(
    scopes=[Scope.AUTOMATIONS_READ], resource="run", level=Level.VIEW, snapshot=True, cookie=True
)

_OPEN = Access(credential="none", transaction=False)


@pages_router.get(RUN_PAGE, access=READ_PAGE)
async def get_run(request: ApiRequest) -> Data[run_overviews.RunOverview]:
    """Get a run by its id alone, with the graph it executes and how far each node has come."""
    found = await run_overviews.overview(request.work, request.actor, request.ids["runId"])
    add_links(request.services.settings, found.run)
    return Data(found)


@pages_router.get(f"{RUN_PAGE}/events", access=READ_PAGE, media_type="text/event-stream")
async def watch_run(request: ApiRequest) -> Response:
    """Watch a run: server-sent events until it ends.

    `state` holds the run and the nodes that changed, at first all; `end` says that the run has
    ended. A stream that stops without `end` is to be opened again.
    """
    watch = AutomationRunWatch(request.actor.workspace_id, request.ids["runId"])
    events = run_events(request.services, watch)
    return EventStream(request.services.streams, request.share, with_keepalive(events))


@pages_router.get("/pages/{pageFile}", access=_OPEN, documented=False)
async def get_page_asset(request: ApiRequest) -> Response:
    """Read a file of the pages."""
    return _asset(request, request.path_params["pageFile"])


@pages_router.get("/pages/{pageFolder}/{pageFile}", access=_OPEN, documented=False)
async def get_page_module(request: ApiRequest) -> Response:
    """Read a file of a page that has a folder of its own."""
    return _asset(request, f"{request.path_params['pageFolder']}/{request.path_params['pageFile']}")


def _asset(request: ApiRequest, name: str) -> Response:
    found = asset(name)
    if found is None:
        raise NotFoundError("path")
    return found.answer(request)
