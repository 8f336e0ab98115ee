"""Saved filters of lists of runs: save, list, rename, delete."""

from api.kernel.routing import Access, ApiRequest, Cursor, Data, Limit, Router
from models.automation.saved_run_filters import commands, queries
from models.automation.saved_run_filters.shapes import (
    CreateRunFilter,
    DeletedRunFilter,
    RunFilterList,
    RunFilterShape,
    UpdateRunFilter,
)
from models.core.access.rules import Scope
from runtime.errors import ConflictError, DeniedError

router = Router(tags=["automation runs"])

FILTERS = "/v1/workspaces/{workspaceId}/run-filters"
FILTER = f"{FILTERS}/{{filterId}}"

READ = Access(scopes=[Scope.AUTOMATIONS_READ])
CHANGE = Access(scopes=[Scope.AUTOMATIONS_READ], idempotent=True)


@router.get(FILTERS, access=READ)
async def list_run_filters(
    request: ApiRequest, limit: Limit = 30, cursor: Cursor = None
) -> Data[RunFilterList]:
    """List the saved filters of runs by name: the shared ones, and the caller's own."""
    page = request.page("run_filters", limit, cursor)
    return Data(await queries.list_filters(request.work, request.actor, page))


@router.post(FILTERS, access=CHANGE, status_code=201, errors=[ConflictError, DeniedError])
async def create_run_filter(request: ApiRequest, body: CreateRunFilter) -> Data[RunFilterShape]:
    """Save a filter of runs, for oneself or shared; that needs automations:write."""
    return Data(await commands.create_filter(request.work, request.actor, request.new_id, body))


@router.patch(FILTER, access=READ, errors=[DeniedError])
async def update_run_filter(request: ApiRequest, body: UpdateRunFilter) -> Data[RunFilterShape]:
    """Rename a saved filter, or give it other parameters."""
    filter_id = request.ids["filterId"]
    return Data(await commands.update_filter(request.work, request.actor, filter_id, body))


@router.delete(FILTER, access=READ, errors=[DeniedError])
async def delete_run_filter(request: ApiRequest) -> Data[DeletedRunFilter]:
    """Delete a saved filter; runs stay as they are."""
    filter_id = request.ids["filterId"]
    return Data(await commands.delete_filter(request.work, request.actor, filter_id))
