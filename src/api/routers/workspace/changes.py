"""Change sets written by hand: propose, list, apply."""

from api.kernel.routing import Access, ApiRequest, Cursor, Data, Limit, Router
from api.routers.workspace.ai_runs import applied
from models.core.access.rules import Scope
from models.workspace.changes import queries
from models.workspace.changes.commands import proposals
from models.workspace.changes.shapes import (
    ApplyChanges,
    ApplyResult,
    ChangeSetDetail,
    ChangeSetList,
    ProposeChanges,
)
from runtime.errors import ConflictError, InProgressError

router = Router(tags=["changes"])

CHANGES = "/v1/workspaces/{workspaceId}/changes"


@router.get(CHANGES, access=Access(scopes=[Scope.WORKSPACE_CHANGES_READ]))
async def list_changes(
    request: ApiRequest, limit: Limit = 30, cursor: Cursor = None
) -> Data[ChangeSetList]:
    """List change sets, newest first: one's own, and for owners and administrators all."""
    page = request.page("changes", limit, cursor)
    return Data(await queries.list_changes(request.work, request.actor, page))


@router.post(
    CHANGES,
    access=Access(scopes=[Scope.WORKSPACE_CHANGES_PROPOSE], idempotent=True),
    status_code=201,
)
async def propose_changes(request: ApiRequest, body: ProposeChanges) -> Data[ChangeSetDetail]:
    """Propose changes; nothing of them is done until they are applied, within seven days."""
    return Data(
        await proposals.propose(
            request.work,
            request.actor,
            request.services.keys,
            request.new_id,
            body.operations,
            title=body.title,
        )
    )


@router.get(f"{CHANGES}/{{changeId}}", access=Access(scopes=[Scope.WORKSPACE_CHANGES_READ]))
async def get_changes(request: ApiRequest) -> Data[ChangeSetDetail]:
    """Get a change set with its operations, and what became of each."""
    return Data(await queries.get_changes(request.work, request.actor, request.ids["changeId"]))


@router.post(
    f"{CHANGES}/{{changeId}}/apply",
    access=Access(scopes=[Scope.WORKSPACE_CHANGES_APPLY], idempotent=True),
    errors=[ConflictError, InProgressError],
)
async def apply_changes(request: ApiRequest, body: ApplyChanges) -> Data[ApplyResult]:
    """Apply a change set, as far as its operations are approved; see apply of an AI run."""
    return await applied(request, request.ids["changeId"], body)
