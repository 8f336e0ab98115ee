"""The first page of a workspace: what waits for the reader, what failed, runs, and comes next."""

from starlette.responses import Response

from api.console.forms import paged
from api.console.home.overview import overview_of
from api.console.rendering import page
from api.console.routing import page_router
from api.console.shell import shell_of
from api.kernel.routing import Access, ApiRequest
from models.core.access.rules import Scope

router = page_router()


@router.get("/workspaces/{workspaceId}", access=paged(Access(scopes=[Scope.WORKSPACE_READ])))
async def get_home(request: ApiRequest) -> Response:
    """Look at a workspace."""
    shell = await shell_of(request)
    return page(request, "home.html", shell, overview=await overview_of(request))
