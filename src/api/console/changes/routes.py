"""Change sets: asked for in words, looked at operation by operation, applied or rejected."""

from dataclasses import replace

from starlette.responses import Response

from api.console.entered import BLANK, Entered, Fields, Form, given, read_as, redisplays
from api.console.forms import paged
from api.console.rendering import console_page, page, see_other, shell_of
from api.console.routing import page_router
from api.console.words import queried
from api.kernel.routing import Access, ApiRequest, Cursor
from api.routers.workspace import ai_runs as api
from api.routers.workspace.ai_runs import CHANGES, WRITE
from api.routers.workspace.ai_runs import READ as READ_RUN
from models.core.access.rules import Scope
from models.messages.jobs.store import own_job
from models.people.users import display_name
from models.workspace.changes import commands, queries, shapes
from models.workspace.changes.rules import WAITING, ChangeStatus, Stake
from models.workspace.starters import seeding
from runtime.errors import ConflictError, InProgressError, NotFoundError
from runtime.temporal.workflow_kinds import WorkflowKind

router = page_router()

PAGE = 50
_ALL = CHANGES.removeprefix("/v1")
_ONE = f"{_ALL}/{{changeId}}"
_READ = paged(Access(scopes=[Scope.WORKSPACE_CHANGES_READ]))
_APPLY = paged(Access(scopes=[Scope.WORKSPACE_CHANGES_APPLY], idempotent=True))
_CLOSED = (ConflictError, InProgressError)


class Instruction(Form):
    """The changes that are wished for, in words."""

    instruction: str


class Rejection(Form):
    """The reason for which changes are rejected."""

    reason: str | None = None


@router.get(_ALL, access=_READ)
async def get_change_sets(request: ApiRequest, cursor: Cursor = None) -> Response:
    """Look through the change sets."""
    return await _list(request, BLANK, cursor)


async def _list(request: ApiRequest, entered: Entered, cursor: str | None = None) -> Response:
    turned = request.page("console changes", PAGE, cursor)
    listed = await queries.list_changes(request.work, request.actor, turned)
    return await console_page(
        request,
        "changes.html",
        (api.list_changes, {"limit": PAGE}),
        api.propose_changes,
        api.create_ai_run,
        listed=listed,
        cursor=cursor,
        entered=entered,
    )


@router.post(_ALL, access=paged(WRITE), errors=[InProgressError])
@redisplays(_list)
async def plan_by_form(request: ApiRequest, body: Instruction) -> Response:
    """Have changes planned, and lead to where they will stand."""
    content = read_as(shapes.CreateAiRun, given({"instruction": body.instruction}))
    keys = request.services.keys
    await seeding.plan_run(request.work, request.actor, keys, request.new_id, content)
    return see_other(f"/workspaces/{request.workspace_id}/changes/{request.new_id}/plan")


@router.get(f"{_ONE}/plan", access=paged(READ_RUN), errors=[ConflictError])
async def get_plan(request: ApiRequest) -> Response:
    """Wait for the plan of changes."""
    work, actor, change_id = request.work, request.actor, request.ids["changeId"]
    try:
        planned: shapes.ChangeSetDetail | None = await queries.get_changes(work, actor, change_id)
    except NotFoundError:
        await own_job(work, actor, WorkflowKind.CHANGE_PLAN, change_id)
        planned = await seeding.plan_outcome(work, actor, change_id, last=False)
    if planned is not None:
        return see_other(f"/workspaces/{request.workspace_id}/changes/{change_id}")
    return await console_page(request, "planning.html")


@router.get(_ONE, access=_READ)
async def get_change_set(request: ApiRequest) -> Response:
    """Look at the operations of a change set, and at what became of each."""
    return await _shown(request, BLANK)


@router.post(f"{_ONE}/apply", access=_APPLY, errors=_CLOSED)
async def apply_by_form(request: ApiRequest, body: Fields) -> Response:
    """Apply what is ticked and what needs no one's approval; or try it, and keep nothing."""
    work, actor, change_id = request.work, request.actor, request.ids["changeId"]
    indexes = [int(name) for name in body.checked("operation") if name.isdecimal()]
    content = read_as(
        shapes.ApplyChanges,
        given({"approvedIndexes": sorted(indexes), "dryRun": "try" in body.texts}),
    )
    request.is_safe = content.dry_run
    if not content.dry_run and await api.apply_request(request, change_id, content):
        return see_other(f"/workspaces/{request.workspace_id}/changes/{change_id}")
    if content.dry_run:
        keys = request.services.keys
        tried = await commands.try_out(work, actor, keys, change_id, content)
        return await _shown(request, Entered(body.texts), tried)
    await commands.accept_application(work, actor, change_id, request.new_id, content)
    return see_other(f"/workspaces/{request.workspace_id}/changes/{change_id}")


@router.post(
    f"{_ONE}/reject",
    access=paged(replace(WRITE, scopes=[Scope.AI_WRITE, Scope.WORKSPACE_CHANGES_READ])),
    errors=_CLOSED,
)
async def reject_by_form(request: ApiRequest, body: Rejection) -> Response:
    """Reject what waits to be applied."""
    change_id = request.ids["changeId"]
    reason = read_as(shapes.RejectChanges, given({"reason": body.reason})).reason
    await commands.reject(request.work, request.actor, change_id, reason)
    return see_other(f"/workspaces/{request.workspace_id}/changes/{change_id}")


async def _shown(
    request: ApiRequest, entered: Entered, tried: shapes.ApplyResult | None = None
) -> Response:
    change_id = request.ids["changeId"]
    changes = await queries.get_changes(request.work, request.actor, change_id)
    shell = await shell_of(request)
    results = tried.results if tried is not None else changes.results
    return page(
        request,
        "change_set.html",
        shell,
        changes=changes,
        operations=list(zip(changes.operations, results, strict=True)),
        waits=changes.status in WAITING,
        applying=changes.status is ChangeStatus.APPLYING,
        asks=[one.index for one in changes.operations if one.stake is not Stake.NEVER_ASK],
        entered=entered,
        tried=tried,
        author=await display_name(request.work, changes.created_by_user_id),
        live=queried(shell.at("changes", change_id)),
        api=shell.calls(api.get_changes, (api.apply_changes, {"approvedIndexes": [0]})),
    )
