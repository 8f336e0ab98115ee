"""Actions and their runs: create, change, start, read, cancel; and the buttons of records."""

from dataclasses import replace

from api.kernel.awaited_work import Poll
from api.kernel.routing import Access, ApiRequest, Cursor, Data, Deletes, Limit, Router, WaitSeconds
from api.run_events import temporal_link
from models.automation.action_runs import store as action_runs
from models.automation.action_runs.store import ActionRunDetail, RunAction
from models.automation.actions import store
from models.automation.actions.rules import ActionDetail, CreateAction
from models.automation.buttons import press_button
from models.core.access.rules import Level, Scope
from models.core.base import Id
from models.core.references.rules import SubjectKind
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, DeniedError

router = Router(tags=["actions"])

ACTIONS = "/v1/workspaces/{workspaceId}/actions"
ACTION = f"{ACTIONS}/{{actionId}}"

READ = Access(scopes=[Scope.ACTIONS_READ], resource="action", level=Level.VIEW)
WRITE = Access(scopes=[Scope.ACTIONS_WRITE], resource="action", level=Level.EDIT, idempotent=True)


@router.post(
    ACTIONS,
    access=Access(scopes=[Scope.ACTIONS_WRITE], level=Level.EDIT, idempotent=True),
    status_code=201,
    errors=[ConflictError],
)
async def create_action(request: ApiRequest, body: CreateAction) -> Data[ActionDetail]:
    """Create an action.

    `config` is that of its kind; any value in it may be a binding, as in the nodes of automations.
    """
    return Data(await store.create_action(request.work, request.actor, body))


@router.get(
    ACTIONS,
    access=Access(scopes=[Scope.ACTIONS_READ], level=Level.VIEW, cookie=True),
    calls=store.list_actions,
)
async def list_actions() -> None:
    """List actions, newest first."""


@router.get(ACTION, access=READ, calls=store.get_action)
async def get_action() -> None:
    """Get an action."""


@router.patch(ACTION, access=WRITE, errors=[ConflictError], calls=store.update_action)
async def update_action() -> None:
    """Update an action; its kind cannot change, and `config` is replaced as a whole.

    With the header `If-Match: <updatedAt>` an action that was changed since is left as it is.
    """


@router.delete(ACTION, access=WRITE, calls=store.delete_action, deletes=Deletes(SubjectKind.ACTION))
async def delete_action() -> None:
    """Put an action into the trash with its item, for 30 days."""


RUNS = f"{ACTION}/runs"
RUN = f"{RUNS}/{{runId}}"
WAIT_SECONDS = 10


EXECUTE = Access(scopes=[Scope.ACTIONS_RUN], resource="action", level=Level.RUN, idempotent=True)


@router.post(f"{ACTION}/run", access=replace(EXECUTE, starts_run=True, prefers=True))
async def run_action(request: ApiRequest, body: RunAction) -> Data[ActionRunDetail]:
    """Run an action.

    Answered when the run has ended, and after ten seconds, or the seconds of `Prefer: wait`, as it
    is then. `trigger` bindings of the
    action read `input`, `node` bindings what earlier steps gave, by the id of the step.
    """
    action_id = request.ids["actionId"]
    await action_runs.run_action(request.work, request.actor, action_id, request.new_id, body)
    return _outcome(request, action_id, wait=body.wait)


@router.get(RUNS, access=READ)
async def list_action_runs(
    request: ApiRequest, limit: Limit = 30, cursor: Cursor = None
) -> Data[list[ActionRunDetail]]:
    """List the runs of an action, newest first."""
    action_id = request.ids["actionId"]
    page = request.page("action runs", limit, cursor, action_id)
    runs = await action_runs.list_runs(request.work, request.actor, action_id, page)
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
    run = _linked(
        request, await action_runs.get_run(request.work, request.actor, action_id, run_id)
    )
    seconds = 0 if run.completed_at is not None else wait
    poll = _poll(request, action_id, run_id)
    return request.awaited(run_id, poll, seconds=seconds) or Data(run)


@router.post(f"{RUN}/cancel", access=EXECUTE)
async def cancel_action_run(request: ApiRequest) -> Data[ActionRunDetail]:
    """Cancel a run of an action; a finished one is returned unchanged."""
    action_id, run_id = request.ids["actionId"], request.ids["runId"]
    run = await action_runs.cancel_run(request.work, request.actor, action_id, run_id)
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
        run = await action_runs.run_outcome(work, request.actor, action_id, run_id, last=last)
        return None if run is None else _linked(request, run)

    return poll
