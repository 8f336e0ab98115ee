"""The caller's first page of a workspace."""

from api.kernel.routing import Access, ApiRequest, Data, Router
from models.core.access.rules import Scope
from models.people.home_layouts import commands, queries
from models.people.home_layouts.shapes import HomeLayoutAnswer, ReplaceHomeLayout

router = Router(tags=["preferences"])

HOME_LAYOUT = "/v1/workspaces/{workspaceId}/preferences/home-layout"

OWN = Access(scopes=[Scope.WORKSPACE_READ])


@router.get(HOME_LAYOUT, access=OWN)
async def get_home_layout(request: ApiRequest) -> Data[HomeLayoutAnswer]:
    """Get the caller's home layout of a workspace."""
    return Data(await queries.get_home_layout(request.work, request.actor))


@router.put(HOME_LAYOUT, access=OWN)
async def replace_home_layout(
    request: ApiRequest, body: ReplaceHomeLayout
) -> Data[HomeLayoutAnswer]:
    """Replace the caller's home layout of a workspace.

    The same layout sent again changes nothing.
    """
    return Data(await commands.replace_home_layout(request.work, request.actor, body))
