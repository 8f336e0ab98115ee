"""Limits of the calls that a workspace makes of others: set, list, change, remove."""

from api.kernel.routing import Access, ApiRequest, Cursor, Data, IfUnchanged, Limit, Router
from models.core.access.rules import Scope
from models.sources.outbound_limits import commands, queries
from models.sources.outbound_limits.shapes import (
    CreateOutboundLimit,
    DeletedOutboundLimit,
    OutboundLimitBody,
    OutboundLimitList,
    UpdateOutboundLimit,
)
from runtime.errors import ConflictError

router = Router(tags=["integrations"])

LIMITS = "/v1/workspaces/{workspaceId}/integrations/outbound-limits"
LIMIT = f"{LIMITS}/{{limitId}}"

READ = Access(scopes=[Scope.INTEGRATIONS_READ])
WRITE = Access(scopes=[Scope.INTEGRATIONS_WRITE, Scope.WORKSPACE_UPDATE], idempotent=True)


@router.get(LIMITS, access=READ)
async def list_outbound_limits(
    request: ApiRequest, limit: Limit = 30, cursor: Cursor = None
) -> Data[OutboundLimitList]:
    """List the limits of outbound calls, and how their places are called now.

    Limits of connections that the caller does not see are left out.
    """
    page = request.page("outbound limits", limit, cursor)
    return Data(await queries.list_limits(request.work, request.actor, page))


@router.post(LIMITS, access=WRITE, status_code=201, errors=[ConflictError])
async def create_outbound_limit(
    request: ApiRequest, body: CreateOutboundLimit
) -> Data[OutboundLimitBody]:
    """Limit the calls of a host or of a connection: so many a second, so many at once.

    It holds for all runs, refreshes and jobs of the workspace together. A call over the limit
    waits in line, loses no attempt, and is made when it has its turn.
    """
    return Data(await commands.create_limit(request.work, request.actor, body))


@router.get(LIMIT, access=READ)
async def get_outbound_limit(request: ApiRequest) -> Data[OutboundLimitBody]:
    """Get a limit, with the calls that wait for it and the moment the next one goes."""
    limit_id = request.ids["limitId"]
    return Data(await queries.get_limit(request.work, request.actor, limit_id))


@router.patch(LIMIT, access=WRITE, errors=[ConflictError])
async def update_outbound_limit(
    request: ApiRequest, body: UpdateOutboundLimit, if_match: IfUnchanged = None
) -> Data[OutboundLimitBody]:
    """Change a limit; calls that wait are given their turns anew.

    With the header `If-Match: <updatedAt>` a limit that was changed since is left as it is.
    """
    limit_id = request.ids["limitId"]
    return Data(await commands.update_limit(request.work, request.actor, limit_id, body, if_match))


@router.delete(LIMIT, access=WRITE)
async def delete_outbound_limit(request: ApiRequest) -> Data[DeletedOutboundLimit]:
    """Remove a limit; calls that wait go, unless an answer has asked for a pause."""
    limit_id = request.ids["limitId"]
    return Data(await commands.delete_limit(request.work, request.actor, limit_id))
