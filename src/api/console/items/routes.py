"""The tree of a workspace, level by level, and the share links of an item."""

from dataclasses import replace
from datetime import timedelta
from typing import Literal

from starlette.responses import Response

from api.console.entered import BLANK, Entered, Fields, attempt, read_as
from api.console.forms import paged
from api.console.rendering import page, see_other
from api.console.routing import page_router
from api.console.shell import Shell, shell_of
from api.console.words import curl, plain, queried
from api.kernel.routing import Access, ApiRequest, Cursor, QueryId
from api.routers.content.items import READ
from api.routers.workspace.share_links import CREATE, LINKS, REVOKE
from api.routers.workspace.share_links import READ as READ_LINKS
from models.content.items.queries import get_item, list_items, placement
from models.content.items.rules import ItemKind
from models.content.items.shapes import ItemDetail
from models.core.access.rules import Level, Scope
from models.core.base import Id
from models.core.pagination import DEFAULT_LIMIT
from models.workspace.share_links import links as commands
from models.workspace.share_links.links import list_share_links
from models.workspace.share_links.shapes import CreateShareLink, IssuedShareLink
from models.workspace.share_links.visitors import SHAREABLE
from runtime.clock import wire_timestamp
from runtime.errors import NotFoundError, PlatformError, UnsupportedError, ValidationError

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
        kinds=[("", "All kinds"), *((one.value, plain(one)) for one in ItemKind)],
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


_LINKS = LINKS.removeprefix("/v1")
LIFETIMES = (
    ("1", "1 day"),
    ("7", "7 days"),
    ("30", "30 days"),
    ("365", "1 year"),
    ("never", "No expiry"),
)
_USUAL = "30"


@router.get(_LINKS, access=paged(READ_LINKS))
async def get_share_links(request: ApiRequest, cursor: Cursor = None) -> Response:
    """Look through the share links of an item."""
    return await _links(request, BLANK, cursor)


@router.post(_LINKS, access=paged(replace(CREATE, joins=True)), errors=[UnsupportedError])
async def create_share_link_by_form(request: ApiRequest, body: Fields) -> Response:
    """Create a share link, and show its address this once."""
    work, actor, keys = request.work, request.actor, request.services.keys

    async def create() -> IssuedShareLink:
        link = read_as(CreateShareLink, _values(request, body))
        item_id, link_id = request.ids["itemId"], request.new_id
        return await commands.create_share_link(work, actor, keys, link_id, item_id, link)

    outcome = await attempt(request, create)
    if isinstance(outcome, PlatformError):
        return await _links(request, Entered(body.texts, outcome), None)
    shell = await shell_of(request)
    item = await get_item(work, actor.workspace_id, request.ids["itemId"])
    address = shell.base + outcome.share_url
    call = curl(shell.base, "GET", f"/v1{request.url.path}")
    return page(
        request, "share_link.html", shell, item=item, link=outcome, address=address, call=call
    )


@router.post(f"{_LINKS}/{{shareLinkId}}/revoke", access=paged(REVOKE))
async def revoke_share_link_by_form(request: ApiRequest) -> Response:
    """Revoke a share link; it stops at once."""
    item_id, link_id = request.ids["itemId"], request.ids["shareLinkId"]
    await commands.revoke_share_link(request.work, request.actor, item_id, link_id)
    return see_other(f"/workspaces/{request.workspace_id}/items/{item_id}/share-links")


def _values(request: ApiRequest, body: Fields) -> dict[str, object]:
    """The body of the operation that the form stands for. Raises ValidationError."""
    lifetime = body.texts.get("lifetime", _USUAL)
    if lifetime not in dict(LIFETIMES):
        raise ValidationError.at("lifetime", "Choose one of the options.")
    values: dict[str, object] = {"allowDownload": "allowDownload" in body.texts}
    if lifetime != "never":
        ends = request.work.now + timedelta(days=int(lifetime))
        values["expiresAt"] = wire_timestamp(ends)
    if uses := body.texts.get("maxUses"):
        values["maxUses"] = int(uses) if uses.isdecimal() else uses
    return values


async def _links(request: ApiRequest, entered: Entered, cursor: str | None) -> Response:
    work, actor, item_id = request.work, request.actor, request.ids["itemId"]
    item = await get_item(work, actor.workspace_id, item_id)
    listed = await list_share_links(
        work, actor, item_id, request.page("pages of share links", DEFAULT_LIMIT, cursor, item_id)
    )
    shell = await shell_of(request)
    manages = await placement.level(work, actor, item_id) >= Level.MANAGE
    path = f"/workspaces/{request.workspace_id}/items/{item_id}/share-links"
    body = '{"maxUses": 10, "allowDownload": true}'
    return page(
        request,
        "share_links.html",
        shell,
        item=item,
        listed=listed,
        entered=entered,
        may_share=manages and shell.may("resources:write") and item.kind in SHAREABLE,
        may_revoke=manages and shell.may("resources:write"),
        lifetimes=LIFETIMES,
        usual=_USUAL,
        now=work.now,
        first=path if cursor else None,
        following=queried(path, cursor=listed.cursor) if listed.cursor else None,
        path=path,
        calls={
            "List share links": curl(shell.base, "GET", f"/v1{path}"),
            "Create share link": curl(shell.base, "POST", f"/v1{path}", body),
        },
    )
