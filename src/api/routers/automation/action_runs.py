"""Runs of actions: start, list, read, cancel; and the buttons of records."""

from dataclasses import replace

from api.kernel.deferred import Poll
from api.kernel.routing import Access, ApiRequest, Cursor, Data, Limit, Router, WaitSeconds
from api.routers.automation.actions import ACTION
from api.run_links import temporal_link
from models.automation.action_runs import commands, queries
from models.automation.action_runs.shapes import ActionRunDetail, RunAction
from models.automation.buttons.commands import press_button
from models.core.access.rules import Level, Scope
from models.core.base import Id
from runtime.database import UnitOfWork
from runtime.errors import DeniedError

router = Router(tags=["actions"])

RUNS = f"{ACTION}/runs"
RUN = f"{RUNS}/{{runId}}"
WAIT_SECONDS = 10

READ = Access(scopes=[Scope.ACTIONS_READ], resource="action", level=Level.VIEW)
EXECUTE = Access(scopes=[Scope.ACTIONS_RUN], resource="action", level=Level.RUN, idempotent=True)


@router.post(f"{ACTION}/run", access=replace(EXECUTE, starts_run=True, prefers=True))
async def run_action(request: ApiRequest, body: RunAction) -> Data[ActionRunDetail]:
    """Run an action.

    Answered when the run has ended, and after ten seconds, or the seconds of `Prefer: wait`, as it
    is then. `trigger` bindings of the
    action read `input`, `node` bindings what earlier steps gave, by the id of the step.
    """
    action_id = request.ids["actionId"]
    await commands.run_action(request.work, request.actor, action_id, request.new_id, body)
    return _outcome(request, action_id, wait=body.wait)


@router.get(RUNS, access=READ)
async def list_action_runs(
    request: ApiRequest, limit: Limit = 30, cursor: Cursor = None
) -> Data[list[ActionRunDetail]]:
    """List the runs of an action, newest first."""
    action_id = request.ids["actionId"]
    page = request.page("action runs", limit, cursor, action_id)
    runs = await queries.list_runs(request.work, request.actor, action_id, page)
    for run in runs.items:
        _linked(request, run)
    return request.array(runs)


@router.get(RUN, access=replace(READ, snapshot=True))
async def get_action_run(request: ApiRequest, wait: WaitSeconds = 0) -> Data[ActionRunDetail]:
    """Get a run of an action.

    With `wait=30` the answer comes when the run has ended, and after 30 seconds as it is then;
    at most 60.
    """
    action_id, run_id = request.ids["actionId"], request.ids["runId"]
    run = _linked(request, await queries.get_run(request.work, request.actor, action_id, run_id))
    seconds = 0 if run.completed_at is not None else wait
    poll = _poll(request, action_id, run_id)
    return request.awaited(run_id, poll, seconds=seconds) or Data(run)


@router.post(f"{RUN}/cancel", access=EXECUTE)
async def cancel_action_run(request: ApiRequest) -> Data[ActionRunDetail]:
    """Cancel a run of an action; a finished one is returned unchanged."""
    action_id, run_id = request.ids["actionId"], request.ids["runId"]
    run = await commands.cancel_run(request.work, request.actor, action_id, run_id)
    return Data(_linked(request, run))


@router.post(
    "/v1/records/{recordId}/buttons/{fieldKey}/run",
    access=Access(
        scopes=[Scope.ACTIONS_RUN],
        resource="record",
        level=Level.VIEW,
        idempotent=True,
        starts_run=True,
        prefers=True,
    ),
    errors=[DeniedError],
)
async def run_button(request: ApiRequest, body: RunAction) -> Data[ActionRunDetail]:
    """Press a button of a record: run the action behind it.

    The action's input is what the button's bindings give, and over it `input`. It takes edit
    access to the action. Automations that listen to the button start as well.
    """
    record_id, key = request.ids["recordId"], request.path_params["fieldKey"]
    action_id = await press_button(
        request.work, request.actor, record_id, key, request.new_id, body
    )
    return _outcome(request, action_id, wait=body.wait)


def _linked(request: ApiRequest, run: ActionRunDetail) -> ActionRunDetail:
    """The run with a link to the execution that carries it out."""
    workflow_id = run.metadata["temporalWorkflowId"]
    run.metadata["temporal"] = temporal_link(request.services.settings, workflow_id)
    return run


def _outcome(request: ApiRequest, action_id: Id, *, wait: bool) -> Data[ActionRunDetail]:
    """The run when it has ended, or when the time to wait for it is over."""
    run_id = request.new_id
    poll = _poll(request, action_id, run_id)
    awaited = request.awaited(run_id, poll)
    return awaited or request.deferred(poll, within=WAIT_SECONDS if wait else 0)


def _poll(request: ApiRequest, action_id: Id, run_id: Id) -> Poll[ActionRunDetail]:
    async def poll(work: UnitOfWork, last: bool) -> ActionRunDetail | None:
        run = await queries.run_outcome(work, request.actor, action_id, run_id, last=last)
        return None if run is None else _linked(request, run)

    return poll
