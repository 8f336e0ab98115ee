"""Views of a database: make, list, read, change, delete."""

from api.kernel.routing import Access, ApiRequest, Cursor, Data, IfUnchanged, Limit, Router
from models.core.access.rules import Level, Scope
from models.data.views import queries
from models.data.views.commands import views as commands
from models.data.views.shapes import CreateView, DeletedView, UpdateView, ViewList, ViewShape
from runtime.errors import ConflictError

router = Router(tags=["views"])

VIEWS = "/v1/databases/{databaseId}/views"
VIEW = f"{VIEWS}/{{viewId}}"

READ = Access(scopes=[Scope.VIEWS_READ], resource="database", level=Level.VIEW)
WRITE = Access(scopes=[Scope.VIEWS_WRITE], resource="database", level=Level.EDIT, idempotent=True)


@router.post(VIEWS, access=WRITE, status_code=201, errors=[ConflictError])
async def create_view(request: ApiRequest, body: CreateView) -> Data[ViewShape]:
    """Create a view.

    A personal one is seen by its owner only. `manifest` is checked against the fields of the
    database and what the kind needs; keys it does not know are kept.
    """
    database_id = request.ids["databaseId"]
    return Data(await commands.create_view(request.work, request.actor, database_id, body))


@router.get(VIEWS, access=READ)
async def list_views(
    request: ApiRequest, limit: Limit = 30, cursor: Cursor = None
) -> Data[ViewList]:
    """List views in their order: the shared ones and the caller's own."""
    database_id = request.ids["databaseId"]
    page = request.page("views", limit, cursor, database_id)
    return Data(await queries.list_views(request.work, request.actor, database_id, page))


@router.get(VIEW, access=READ)
async def get_view(request: ApiRequest) -> Data[ViewShape]:
    """Get a view."""
    database_id, view_id = request.ids["databaseId"], request.ids["viewId"]
    return Data(await queries.get_view(request.work, request.actor, database_id, view_id))


@router.patch(VIEW, access=WRITE, errors=[ConflictError])
async def update_view(
    request: ApiRequest, body: UpdateView, if_match: IfUnchanged = None
) -> Data[ViewShape]:
    """Update a view.

    A manifest replaces the one before. With the header `If-Match: <updatedAt>` a view that was
    changed since is left as it is.
    """
    database_id, view_id = request.ids["databaseId"], request.ids["viewId"]
    return Data(
        await commands.update_view(
            request.work, request.actor, database_id, view_id, body, if_match
        )
    )


@router.delete(VIEW, access=WRITE, errors=[ConflictError])
async def delete_view(request: ApiRequest) -> Data[DeletedView]:
    """Delete a view; a database keeps at least one shared view."""
    database_id, view_id = request.ids["databaseId"], request.ids["viewId"]
    return Data(await commands.delete_view(request.work, request.actor, database_id, view_id))
