"""The first page of a workspace."""

from starlette.responses import Response

from api.console.refusals import refuse
from api.console.rendering import page
from api.console.shell import shell_of
from api.kernel.routing import Access, ApiRequest, Router
from models.core.access.rules import Scope

router = Router(tags=["console"], refuse=refuse)


@router.get(
    "/workspaces/{workspaceId}",
    access=Access(credential="browser", page=True, scopes=[Scope.WORKSPACE_READ]),
    documented=False,
)
async def get_home(request: ApiRequest) -> Response:
    """Look at a workspace."""
    return page(request, "home.html", await shell_of(request))
