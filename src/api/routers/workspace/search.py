"""Search."""

from api.kernel.routing import Access, ApiRequest, Cursor, Data, Limit, Router
from models.core.access.rules import Level, Scope
from models.workspace.search import queries
from models.workspace.search.shapes import SearchResults, SearchText

router = Router(tags=["search"])


@router.get(
    "/v1/workspaces/{workspaceId}/search",
    access=Access(scopes=[Scope.RESOURCES_READ], level=Level.VIEW),
)
async def search(
    request: ApiRequest, q: SearchText, limit: Limit = 30, cursor: Cursor = None
) -> Data[SearchResults]:
    """Search the titles of items and records, newest first.

    Records are found with records:read only; what is archived is not found.
    """
    page = request.page("search", limit, cursor, q)
    return Data(await queries.search(request.work, request.actor, q, page))
