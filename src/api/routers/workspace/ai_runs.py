"""AI runs: what is to be changed, planned from an instruction, then approved and applied."""

from uuid import UUID

from api.kernel.routing import Access, ApiRequest, Cursor, Data, Limit, Router
from models.core.access.rules import Scope
from models.workspace.changes import queries
from models.workspace.changes.commands import application, proposals
from models.workspace.changes.shapes import (
    AiRunList,
    ApplyChanges,
    ApplyResult,
    ChangeSetDetail,
    CreateAiRun,
    RejectChanges,
)
from models.workspace.starters import planning
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, InProgressError

router = Router(tags=["ai"])

RUNS = "/v1/workspaces/{workspaceId}/ai/runs"
RUN = f"{RUNS}/{{runId}}"

WAIT_SECONDS = 55

READ = Access(scopes=[Scope.AI_READ])
WRITE = Access(scopes=[Scope.AI_WRITE], idempotent=True)


@router.post(RUNS, access=WRITE, status_code=201, errors=[InProgressError])
async def create_ai_run(request: ApiRequest, body: CreateAiRun) -> Data[ChangeSetDetail]:
    """Plan changes from an instruction, or from operations written by hand; nothing is done.

    The workspace's model plans where one is set, else rules do, and when the model gives no plan.
    """
    actor, keys, run_id = request.actor, request.services.keys, request.new_id
    planned = await planning.plan_run(request.work, actor, keys, run_id, body)
    if planned is not None:
        return Data(planned)

    async def poll(work: UnitOfWork, last: bool) -> ChangeSetDetail | None:
        return await planning.plan_outcome(work, actor, run_id, last=last)

    return request.deferred(poll, within=WAIT_SECONDS)


@router.get(RUNS, access=READ)
async def list_ai_runs(
    request: ApiRequest, limit: Limit = 30, cursor: Cursor = None
) -> Data[AiRunList]:
    """List AI runs, newest first: one's own, and for owners and administrators all."""
    page = request.page("ai_runs", limit, cursor)
    return Data(await queries.list_runs(request.work, request.actor, page))


@router.get(RUN, access=READ)
async def get_ai_run(request: ApiRequest) -> Data[ChangeSetDetail]:
    """Get an AI run with its operations, and what became of each."""
    return Data(await queries.get_changes(request.work, request.actor, request.ids["runId"]))


@router.post(f"{RUN}/reject", access=WRITE, errors=[ConflictError, InProgressError])
async def reject_ai_run(request: ApiRequest, body: RejectChanges) -> Data[ChangeSetDetail]:
    """Reject what waits to be applied; what was applied stays."""
    run_id = request.ids["runId"]
    return Data(await proposals.reject(request.work, request.actor, run_id, body.reason))


@router.post(
    f"{RUN}/apply",
    access=Access(scopes=[Scope.AI_WRITE, Scope.WORKSPACE_CHANGES_APPLY], idempotent=True),
    errors=[ConflictError, InProgressError],
)
async def apply_ai_run(request: ApiRequest, body: ApplyChanges) -> Data[ApplyResult]:
    """Apply a run, as far as its operations are approved.

    Each operation is a transaction of its own, with the caller's own rights. What is not approved
    is skipped, and may be applied later. With `dryRun` everything is tried and nothing is kept:
    what would be applied is `pending`. What takes longer than a minute is answered as it stands.
    """
    return await applied(request, request.ids["runId"], body)


async def applied(request: ApiRequest, change_id: UUID, body: ApplyChanges) -> Data[ApplyResult]:
    """The answer of apply, for a run and for a change set."""
    actor, keys = request.actor, request.services.keys
    if body.dry_run:
        return Data(await application.try_out(request.work, actor, keys, change_id, body))
    await application.accept_application(request.work, actor, change_id, request.new_id, body)

    async def poll(work: UnitOfWork, last: bool) -> ApplyResult | None:
        return await queries.apply_outcome(work, actor, change_id, last=last)

    return request.deferred(poll, within=WAIT_SECONDS)
