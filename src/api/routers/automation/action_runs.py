"""Runs of actions: start, list, read, cancel; and the buttons of records."""

from dataclasses import replace

from api.kernel.routing import Access, Call, Data, Limit, Router
from api.kernel.temporal_links import temporal_link
from api.routers.automation.actions import ACTION
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


@router.post(f"{ACTION}/run", access=EXECUTE)
async def run_action(call: Call, body: RunAction) -> Data[ActionRunDetail]:
    """Run an action.

    Answered when the run has ended, and after ten seconds as it stands. `trigger` bindings of the
    action read `input`, `node` bindings what earlier steps gave, by the id of the step.
    """
    action_id = call.ids["actionId"]
    await commands.run_action(call.work, call.actor, action_id, call.new_id, body)
    return _outcome(call, action_id, wait=body.wait)


@router.get(RUNS, access=READ)
async def list_action_runs(call: Call, limit: Limit = 30) -> Data[list[ActionRunDetail]]:
    """List the runs of an action, newest first."""
    runs = await queries.list_runs(call.work, call.actor, call.ids["actionId"], limit)
    return Data([_linked(call, run) for run in runs])


@router.get(RUN, access=replace(READ, snapshot=True))
async def get_action_run(call: Call) -> Data[ActionRunDetail]:
    """Get a run of an action."""
    action_id, run_id = call.ids["actionId"], call.ids["runId"]
    return Data(_linked(call, await queries.get_run(call.work, call.actor, action_id, run_id)))


@router.post(f"{RUN}/cancel", access=EXECUTE)
async def cancel_action_run(call: Call) -> Data[ActionRunDetail]:
    """Cancel a run of an action; a finished one is returned unchanged."""
    action_id, run_id = call.ids["actionId"], call.ids["runId"]
    run = await commands.cancel_run(call.work, call.actor, action_id, run_id)
    return Data(_linked(call, run))


@router.post(
    "/v1/records/{recordId}/buttons/{fieldKey}/run",
    access=Access(scopes=[Scope.ACTIONS_RUN], resource="record", level=Level.VIEW, idempotent=True),
    errors=[DeniedError],
)
async def run_button(call: Call, body: RunAction) -> Data[ActionRunDetail]:
    """Press a button of a record: run the action behind it.

    The action's input is what the button's bindings give, and over it `input`. It takes edit
    access to the action. Automations that listen to the button start as well.
    """
    record_id, key = call.ids["recordId"], call.path_params["fieldKey"]
    action_id = await press_button(call.work, call.actor, record_id, key, call.new_id, body)
    return _outcome(call, action_id, wait=body.wait)


def _linked(call: Call, run: ActionRunDetail) -> ActionRunDetail:
    """The run with a link to the execution that carries it out."""
    workflow_id = run.metadata["temporalWorkflowId"]
    run.metadata["temporal"] = temporal_link(call.kernel.settings, workflow_id)
    return run


def _outcome(call: Call, action_id: Id, *, wait: bool) -> Data[ActionRunDetail]:
    """The run when it has ended, or when the time to wait for it is over."""
    actor, run_id = call.actor, call.new_id

    async def look(work: UnitOfWork, last: bool) -> ActionRunDetail | None:
        run = await queries.run_outcome(work, actor, action_id, run_id, last=last)
        return None if run is None else _linked(call, run)

    later: Data[ActionRunDetail] = call.later(look, within=WAIT_SECONDS if wait else 0)
    return later
