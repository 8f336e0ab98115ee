"""The tree of a workspace, level by level, and the share links of an item."""

from dataclasses import replace
from datetime import timedelta
from typing import Literal

from starlette.responses import Response

from api.console.controls import Offers
from api.console.entered import BLANK, Entered, Fields, read_as, redisplays
from api.console.forms import paged
from api.console.rendering import Shell, console_page, page, see_other, shell_of
from api.console.resource_pages import Resource, Stored, act
from api.console.routing import page_router
from api.console.words import named, queried
from api.kernel.routing import Access, ApiRequest, Cursor, QueryId
from api.routers.content import items as api
from api.routers.content.items import READ
from api.routers.workspace import share_links as share_links_api
from api.routers.workspace.share_links import CREATE, LINKS
from api.routers.workspace.share_links import READ as READ_LINKS
from models.content.items.queries import get_item, list_items, placement
from models.content.items.rules import ItemKind
from models.content.items.shapes import ItemDetail
from models.core.access.rules import Level, Scope
from models.core.base import Id
from models.core.pagination import DEFAULT_LIMIT, MAX_LIMIT
from models.workspace.share_links import links as commands
from models.workspace.share_links.links import CreateShareLink, list_share_links
from models.workspace.share_links.visitors import SHAREABLE
from models.workspace.targets.shapes import PlacedTarget
from runtime.clock import wire_timestamp
from runtime.errors import NotFoundError, UnsupportedError, ValidationError

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
    query = {"parentId": above, "kind": kind, "limit": PAGE}
    return await console_page(
        request,
        "items.html",
        (api.list_items, query),
        api.create_item,
        listed=listed,
        trail=await _trail(request, parent),
        parent=parent,
        kind=kind,
        kinds=[("", "All kinds"), *((one.value, named(one)) for one in ItemKind)],
        cursor=cursor,
        page_of=page_of,
        shareable=SHAREABLE,
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
    if item.target_id is not None and item.kind in WRITTEN:
        return f"/surfaces/{item.target_id}"
    return queried(shell.at("items"), parent=item.id)


WRITTEN = frozenset({ItemKind.PAGE, ItemKind.NOTE, ItemKind.DASHBOARD, ItemKind.CANVAS})
"""Kinds whose content is on a surface."""

_MADE = (ItemKind.PAGE, ItemKind.NOTE, ItemKind.DASHBOARD, ItemKind.CANVAS, ItemKind.FOLDER)
"""Kinds that a title is enough for."""


async def _places(request: ApiRequest) -> Offers:
    """The kinds to make, and the items that others can be below."""
    first = request.page("console items", MAX_LIMIT, None)
    listed = await list_items(request.work, request.actor, first)
    return {
        "kind": [(one.value, named(one)) for one in _MADE],
        "parentItemId": [
            (str(one.id), one.title or "Untitled")
            for one in listed.items
            if str(one.id) != request.path_params.get("itemId")
        ],
    }


def _placed(shell: Shell, made: Stored) -> str:
    """The page of an item that was made or changed."""
    item: ItemDetail = made.item if isinstance(made, PlacedTarget) else made
    return page_of(shell, item)


async def get_new_item_form(
    request: ApiRequest, kind: ItemKind = ItemKind.PAGE, parent: QueryId | None = None
) -> Response:
    """Name a new item of a kind, below another one."""
    texts = {"kind": kind.value, "parentItemId": "" if parent is None else str(parent)}
    return await ITEMS.show(request, Entered(texts))


ITEMS = Resource(
    noun="item",
    heading="Content",
    at="/workspaces/{workspaceId}/items",
    parameter="itemId",
    label="title",
    columns=(),
    sentence="",
    empty="",
    deletion="It moves to the trash with everything below it. You can restore it for 30 days.",
    listing=api.list_items,
    reading=api.get_item,
    creating=api.create_item,
    updating=api.update_item,
    deleting=api.delete_item,
    moving={"parentItemId": api.move_item},
    fixed=("kind",),
    without=("order", "accessMode", "metadata", "workspaceId", "content", "config"),
    words={
        "color": ("Color", "A name such as blue, or a code such as #3366ff (optional)."),
        "icon": ("Icon", "An emoji (optional)."),
        "parentItemId": ("Location", "Default: at the top."),
    },
    offers=_places,
    starts=get_new_item_form,
    page_of=_placed,
)
ITEMS.declare(router, lists=False)

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


async def _links(request: ApiRequest, entered: Entered, cursor: str | None = None) -> Response:
    work, actor, item_id = request.work, request.actor, request.ids["itemId"]
    item = await get_item(work, actor.workspace_id, item_id)
    listed = await list_share_links(
        work, actor, item_id, request.page("pages of share links", DEFAULT_LIMIT, cursor, item_id)
    )
    shell = await shell_of(request)
    manages = await placement.level(work, actor, item_id) >= Level.MANAGE
    path = f"/workspaces/{request.workspace_id}/items/{item_id}/share-links"
    body = {"maxUses": 10, "allowDownload": True}
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
        cursor=cursor,
        path=path,
        api=shell.calls(
            share_links_api.list_share_links, (share_links_api.create_share_link, body)
        ),
    )


@router.post(_LINKS, access=paged(replace(CREATE, joins=True)), errors=[UnsupportedError])
@redisplays(_links)
async def create_share_link_by_form(request: ApiRequest, body: Fields) -> Response:
    """Create a share link, and show its address this once."""
    work, actor, keys = request.work, request.actor, request.services.keys

    link = read_as(CreateShareLink, _values(request, body))
    item_id, link_id = request.ids["itemId"], request.new_id
    outcome = await commands.create_share_link(work, actor, keys, link_id, item_id, link)
    shell = await shell_of(request)
    item = await get_item(work, actor.workspace_id, request.ids["itemId"])
    address = shell.base + outcome.share_url
    calendar = f"{shell.base}{outcome.url}/calendar.ics?token={outcome.token}"
    calls = shell.calls(share_links_api.list_share_links)
    return page(
        request,
        "share_link.html",
        shell,
        item=item,
        link=outcome,
        address=address,
        calendar=calendar,
        api=calls,
    )


act(router, f"{_LINKS}/{{shareLinkId}}/revoke", share_links_api.revoke_share_link, then=_LINKS)


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
