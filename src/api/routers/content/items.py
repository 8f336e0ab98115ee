"""Items: the tree of a workspace, the search in it, and the bytes of its files."""

from dataclasses import replace
from typing import Annotated

from pydantic import Field
from starlette.responses import Response

from api.kernel.browsers import NoSubresourceError, refuse_subresource
from api.kernel.representations import RangeNotSatisfiableError, download
from api.kernel.routing import Access, ApiRequest, Cursor, Data, Deletes, Flag, Limit, Router
from models.content.files import commands as file_commands
from models.content.files import queries as file_queries
from models.content.files.rules import UNKNOWN_TYPE
from models.content.items import commands as tree
from models.content.items import queries
from models.content.items.rules import ItemKind
from models.content.items.shapes import ItemDetail, ItemList, MoveItem, ParentFilter
from models.core.access.rules import Level, Scope
from models.core.references.rules import SubjectKind
from models.data.database_copies.copying import WAIT_SECONDS
from models.workspace import search as search_queries
from models.workspace.share_links.content import open_asset
from models.workspace.targets import duplication
from models.workspace.targets import items as commands
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, InProgressError, UnsupportedError
from runtime.ids import parse_id

router = Router(tags=["items"])

ITEMS = "/v1/items"
ITEM = f"{ITEMS}/{{itemId}}"

READ = Access(scopes=[Scope.RESOURCES_READ], resource="item", level=Level.VIEW)
WRITE = Access(scopes=[Scope.RESOURCES_WRITE], resource="item", level=Level.EDIT, idempotent=True)


@router.get(ITEMS, access=Access(scopes=[Scope.RESOURCES_READ], level=Level.VIEW, cookie=True))
async def list_items(
    request: ApiRequest,
    kind: ItemKind | None = None,
    parent_id: ParentFilter | None = None,
    archived: Flag = False,
    limit: Limit = 30,
    cursor: Cursor = None,
) -> Data[ItemList]:
    """List items.

    With `parentId` the children of that item in their order (`root`: those without a parent),
    else all items of the workspace, newest first.
    """
    page = request.page("items", limit, cursor, kind, parent_id, archived)
    return Data(
        await queries.list_items(
            request.work, request.actor, page, kind=kind, parent_id=parent_id, archived=archived
        )
    )


@router.post(
    ITEMS,
    access=Access(scopes=[Scope.RESOURCES_WRITE], level=Level.EDIT, idempotent=True),
    status_code=201,
    errors=[ConflictError],
    calls=commands.create_item,
)
async def create_item() -> None:
    """Create an item and its target.

    Needs the write scope of the kind too: surfaces:write for pages, notes and dashboards,
    canvas:write, views:write for views and forms, databases:write, files:write,
    data_sources:write, actions:write, automations:write, integrations:write for external
    resources.
    """


@router.get(ITEM, access=replace(READ, cookie=True), calls=queries.get_item)
async def get_item() -> None:
    """Get an item."""


@router.patch(
    ITEM, access=replace(WRITE, cookie=True), errors=[ConflictError], calls=commands.update_item
)
async def update_item() -> None:
    """Update an item; a new title is the label of its target too.

    Needs the write scope of the kind too, and manage access for `accessMode`. With the header
    `If-Match: <updatedAt>` an item that was changed since is left as it is.
    """


@router.delete(
    ITEM,
    access=WRITE,
    calls=commands.delete_item,
    deletes=Deletes(SubjectKind.ITEM, forced=True),
)
async def delete_item() -> None:
    """Put an item and all below it into the trash, for 30 days.

    Needs the write scope of every kind among them.
    """


@router.post(f"{ITEM}/move", access=WRITE)
async def move_item(request: ApiRequest, body: MoveItem) -> Data[ItemDetail]:
    """Move an item, with all below it, to another parent or place among its siblings."""
    row = await tree.move_item(request.work, request.actor, request.ids["itemId"], body)
    return Data(queries.item_detail(row))


@router.post(f"{ITEM}/archive", access=WRITE)
async def archive_item(request: ApiRequest) -> Data[ItemDetail]:
    """Archive an item: it is hidden from the usual lists and otherwise unchanged."""
    row = await tree.archive_item(request.work, request.actor, request.ids["itemId"], archived=True)
    return Data(queries.item_detail(row))


@router.post(f"{ITEM}/restore", access=replace(WRITE, in_trash=True), errors=[ConflictError])
async def restore_item(request: ApiRequest) -> Data[ItemDetail]:
    """Restore an item from the trash with everything deleted along with it.

    One that is not in the trash is un-archived.
    """
    row = await tree.restore_item(request.work, request.actor, request.ids["itemId"])
    return Data(queries.item_detail(row))


@router.post(
    f"{ITEM}/duplicate",
    access=replace(WRITE, level=Level.VIEW, joins=True),
    status_code=201,
    errors=[ConflictError, InProgressError, UnsupportedError],
)
async def duplicate_item(request: ApiRequest) -> Data[ItemDetail]:
    """Copy an item, with its target and the items below it, beside the original.

    Needs the write scope of every kind that is copied. Actions, data sources and automations are
    copied disabled, forms closed to the public; access is copied too. A database is copied with its
    records, as Duplicate database does it and with the scopes that needs: the call waits for the
    copy, up to ten minutes. At most 500 items, and no database below another item: each is
    duplicated by itself.
    """
    actor, copy_id = request.actor, request.new_id
    place = (request.services.keys, request.ids["itemId"])
    made = await duplication.duplicate_item(request.work, actor, *place, copy_id)
    if made is not None:
        return Data(made)

    async def poll(work: UnitOfWork, last: bool) -> ItemDetail | None:
        return await duplication.copied_item(work, actor, copy_id, last=last)

    return request.deferred(poll, within=WAIT_SECONDS)


search_router = Router(tags=["search"])


@search_router.get(
    "/v1/workspaces/{workspaceId}/search",
    access=Access(scopes=[Scope.RESOURCES_READ], level=Level.VIEW, cookie=True),
)
async def search(
    request: ApiRequest,
    q: search_queries.SearchText,
    kind: search_queries.HitKind | None = None,
    limit: Limit = 30,
    cursor: Cursor = None,
) -> Data[search_queries.SearchResults]:
    """Search the titles of items and records, or of one kind of them, newest first.

    Records are found with records:read only; what is archived is not found.
    """
    page = request.page("search", limit, cursor, q, kind)
    return Data(await search_queries.search_titles(request.work, request.actor, q, page, kind))


files_router = Router(tags=["files"])

_FILES = "/v1/workspaces/{workspaceId}/files"
_ASSET = "/v1/assets/{fileId}/{assetToken}"


@files_router.post(
    _FILES,
    access=Access(
        scopes=[Scope.FILES_WRITE], level=Level.EDIT, idempotent=True, upload=True, cookie=True
    ),
    status_code=201,
)
async def upload_file(
    request: ApiRequest, name: Annotated[str | None, Field(max_length=1000)] = None
) -> Data[file_queries.StoredFile]:
    """Store a file.

    Send its bytes as they are, with its name in `name` or `X-File-Name`, or as the only part, named
    `file`, of a form. A guest needs edit access to some item.
    """
    return Data(
        await file_commands.record_upload(
            request.work, request.actor, request.services.keys, request.new_id, request.upload, name
        )
    )


@files_router.get(_FILES, access=Access(scopes=[Scope.FILES_READ]), calls=file_queries.list_files)
async def list_files() -> None:
    """List files, newest first."""


@files_router.get(
    f"{_FILES}/{{fileId}}",
    access=Access(scopes=[Scope.FILES_READ], resource="file", level=Level.VIEW, cookie=True),
    calls=file_queries.stored_file,
)
async def get_file() -> None:
    """Get the metadata of a file."""


@files_router.delete(
    f"{_FILES}/{{fileId}}",
    access=Access(scopes=[Scope.FILES_WRITE], resource="file", level=Level.EDIT, idempotent=True),
    deletes=Deletes(SubjectKind.FILE),
)
async def delete_file(request: ApiRequest) -> Data[file_queries.StoredFile]:
    """Put a file in the trash for 30 days, with the item that places it; its URL stops at once."""
    file_id, keys = request.ids["fileId"], request.services.keys
    return Data(
        await file_commands.delete_file(
            request.work, request.actor, keys, file_id, request.placement
        )
    )


@files_router.get(
    _ASSET,
    access=Access(credential="none"),
    errors=[NoSubresourceError, RangeNotSatisfiableError],
    media_type=UNKNOWN_TYPE,
    statuses=[206, 304],
)
async def get_asset(request: ApiRequest) -> Response:
    """Download a file; one range may be asked for."""
    refuse_subresource(request.headers)
    file_id, token = parse_id(request.path_params["fileId"]), request.path_params["assetToken"]
    return download(request, await open_asset(request.work, request.services.keys, file_id, token))


@files_router.head(
    _ASSET,
    access=Access(credential="none"),
    errors=[NoSubresourceError],
    media_type=UNKNOWN_TYPE,
    statuses=[304],
)
async def head_asset(request: ApiRequest) -> Response:
    """Get the headers of a download."""
    return await get_asset(request)
