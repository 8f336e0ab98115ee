"""The tree of a workspace, level by level."""

from typing import Literal

from starlette.responses import Response

from api.console.forms import paged
from api.console.rendering import page, see_other
from api.console.routing import page_router
from api.console.shell import Shell, shell_of
from api.console.words import curl, queried
from api.kernel.routing import Access, ApiRequest, Cursor, QueryId
from api.routers.content.items import READ
from models.content.items.listing import list_items
from models.content.items.queries import get_item, placement
from models.content.items.rules import ItemKind
from models.content.items.shapes import ItemDetail
from models.core.access.rules import Level, Scope
from models.core.base import Id
from models.workspace.share_links.rules import SHAREABLE
from runtime.errors import NotFoundError

router = page_router()

PAGE = 100
_DEEPEST = 50


@router.get(
    "/workspaces/{workspaceId}/items",
    access=paged(Access(scopes=[Scope.RESOURCES_READ], level=Level.VIEW)),
)
async def get_items(
    request: ApiRequest,
    parent: QueryId | None = None,
    kind: ItemKind | None = None,
    cursor: Cursor = None,
) -> Response:
    """Look through the items of a workspace: the children of one, or all of a kind."""
    above: Id | Literal["root"] | None = None if kind is not None else parent or "root"
    shown = request.page("console items", PAGE, cursor, parent, kind)
    listed = await list_items(request.work, request.actor, shown, kind=kind, parent_id=above)
    shell = await shell_of(request)
    path = queried(
        "/v1/items", workspaceId=request.workspace_id, parentId=above, kind=kind, limit=PAGE
    )
    return page(
        request,
        "items.html",
        shell,
        listed=listed,
        trail=await _trail(request, parent),
        parent=parent,
        kind=kind,
        kinds=[("", "Any kind"), *((one.value, one.value.replace("_", " ")) for one in ItemKind)],
        cursor=cursor,
        page_of=page_of,
        shareable=SHAREABLE,
        call=curl(shell.base, "GET", path),
    )


@router.get("/items/{itemId}", access=paged(READ))
async def get_item_page(request: ApiRequest) -> Response:
    """Lead to the page that shows an item."""
    item = await get_item(request.work, request.actor.workspace_id, request.ids["itemId"])
    return see_other(page_of(await shell_of(request), item))


async def _trail(request: ApiRequest, item_id: Id | None) -> list[ItemDetail]:
    """The items above and including one, from the root, as far as the caller sees them."""
    trail: list[ItemDetail] = []
    while item_id is not None and len(trail) < _DEEPEST:
        try:
            if await placement.level(request.work, request.actor, item_id) < Level.VIEW:
                break
            trail.append(await get_item(request.work, request.actor.workspace_id, item_id))
        except NotFoundError:
            break
        item_id = trail[-1].parent_item_id
    return trail[::-1]


def page_of(shell: Shell, item: ItemDetail) -> str:
    """The page that shows an item: what stands behind it, else the items below it."""
    if item.target_id is not None and item.kind is ItemKind.DATABASE:
        return shell.at("databases", item.target_id)
    if item.target_id is not None and item.kind is ItemKind.AUTOMATION:
        return shell.at("automations", item.target_id)
    if item.target_id is not None and item.kind is ItemKind.DATA_SOURCE:
        return shell.at("data-sources", item.target_id)
    if item.target_id is not None and item.kind is ItemKind.FORM:
        return shell.at("forms", item.target_id)
    return queried(shell.at("items"), parent=item.id)
