"""The page of a surface: its blocks, for readers and for the script that edits them."""

from collections.abc import Mapping, Sequence
from contextlib import suppress

from starlette.responses import JSONResponse, Response

from api.console.forms import paged
from api.console.rendering import Shell, page, shell_of
from api.console.routing import page_router
from api.console.views.routes import page_facts
from api.kernel.routing import Access, ApiRequest, Router
from api.routers.content import surfaces as api
from api.routers.content.surfaces import READ, SURFACE
from api.routers.data.databases import DATABASE
from models.content.files.queries import readable_files
from models.content.items.queries import get_item
from models.content.items.shapes import ItemDetail
from models.content.surfaces.queries import find_surface, get_surface
from models.content.surfaces.rules.contents import SurfaceKind, references, scope_on
from models.content.surfaces.shapes import BlockTree, SurfaceDetail
from models.core.access.rules import Level, Scope, level_on
from models.core.base import JsonObject
from models.data.databases.store import get_database
from models.data.fields.queries import load_schema
from models.data.views.queries import view_definition
from runtime.errors import NotFoundError
from runtime.ids import parse_id

router = page_router()
live_router = Router(tags=["console"])
"""Routes that the scripts of a surface read beside the operations of the API."""

_SURFACE = SURFACE.removeprefix("/v1")
_WRITTEN = frozenset({SurfaceKind.PAGE, SurfaceKind.NOTE, SurfaceKind.FORM, SurfaceKind.RECORD})
"""Kinds of surfaces that are documents."""
_EXAMPLE = {"blocks": [{"kind": "paragraph", "content": {"text": "Hello"}}]}


@router.get(_SURFACE, access=paged(READ))
async def get_surface_page(request: ApiRequest) -> Response:
    """Read a page, and write on it."""
    surface = await get_surface(request.work, request.actor, request.ids["surfaceId"])
    shell = await shell_of(request)
    item = await _item(request, surface)
    urls = await _file_urls(request, surface.blocks)
    return page(
        request,
        "dashboard.html" if surface.kind is SurfaceKind.DASHBOARD else "surface.html",
        shell,
        surface=surface,
        item=item,
        blocks=[_with_urls(tree, urls) for tree in surface.blocks],
        is_document=surface.kind in _WRITTEN,
        facts=await _facts(request, shell, surface, item, urls),
        calls=shell.calls(api.get_surface, (api.add_blocks, _EXAMPLE), api.update_block),
    )


@live_router.get(f"{_SURFACE}/version", access=READ, documented=False)
async def get_version(request: ApiRequest) -> Response:
    """Get the version of a surface: another one says that someone changed it."""
    surface_id = request.ids["surfaceId"]
    row = await find_surface(request.work, request.actor, surface_id, Scope.SURFACES_READ)
    return JSONResponse({"data": row.version}, headers={"Cache-Control": "no-store"})


@live_router.get(
    f"{DATABASE.removeprefix('/v1')}/facts",
    access=Access(
        scopes=[Scope.DATABASES_READ], resource="database", level=Level.VIEW, cookie=True
    ),
    documented=False,
)
async def get_facts(request: ApiRequest) -> Response:
    """Get the fields and views of a database that a page or a dashboard shows."""
    database = await get_database(request.work, request.actor, request.ids["databaseId"])
    schema = await load_schema(request.work, database.workspace_id, database.id)
    facts = await page_facts(request, database, database.views, None, schema.fields)
    shown = {name: facts[name] for name in ("database", "fields", "views", "chartTypes")}
    return JSONResponse({"data": shown}, headers={"Cache-Control": "no-store"})


async def _item(request: ApiRequest, surface: SurfaceDetail) -> ItemDetail | None:
    """The item of a surface; None for the content of a record."""
    if surface.item_id is None:
        return None
    return await get_item(request.work, request.actor.workspace_id, surface.item_id)


async def _file_urls(request: ApiRequest, blocks: Sequence[BlockTree]) -> Mapping[str, str]:
    """The addresses of the files that blocks show, as far as the reader may read them."""
    named = references([tree.model_dump(mode="json", by_alias=True) for tree in blocks])
    ids = [reference.id for reference in named if reference.resource == "file"]
    work, actor, keys = request.work, request.actor, request.services.keys
    files = await readable_files(work, actor, ids, keys)
    return {str(file.file_id): file.download_url for file in files}


def _with_urls(tree: BlockTree, urls: Mapping[str, str]) -> BlockTree:
    """A block whose files have their addresses, as the template for visitors shows them."""
    url = urls.get(str(tree.content.get("fileId")))
    children = [_with_urls(child, urls) for child in tree.children]
    content = tree.content if url is None else {**tree.content, "downloadUrl": url}
    return tree.model_copy(update={"content": content, "children": children})


async def _databases_of_views(
    request: ApiRequest, blocks: Sequence[BlockTree]
) -> Mapping[str, str]:
    """The databases of the views that a dashboard shows, by the ids of the views."""
    databases: dict[str, str] = {}
    for tree in blocks:
        view_id = parse_id(str(tree.content.get("viewId", "")))
        if tree.kind != "view" or view_id is None:
            continue
        with suppress(NotFoundError):
            view = await view_definition(request.work, request.actor.workspace_id, view_id)
            databases[str(view_id)] = str(view.database_id)
    return databases


async def _facts(
    request: ApiRequest,
    shell: Shell,
    surface: SurfaceDetail,
    item: ItemDetail | None,
    urls: Mapping[str, str],
) -> JsonObject:
    """Everything that the page gives to its scripts, as JSON."""
    assert request.placement is not None, "the page is about a surface"
    is_editor = level_on(request.placement, request.actor.role) >= Level.EDIT
    return {
        "surface": surface.model_dump(mode="json", by_alias=True),
        "item": None if item is None else {"id": str(item.id), "title": item.title},
        "database": {"workspaceId": str(surface.workspace_id)},
        "fields": [],
        "files": dict(urls),
        "databases": await _databases_of_views(request, surface.blocks),
        "canWrite": is_editor and shell.may(scope_on(surface.kind, Scope.BLOCKS_WRITE)),
        "canUpload": is_editor and shell.may(Scope.FILES_WRITE),
        "canRename": is_editor
        and item is not None
        and shell.may(Scope.RESOURCES_WRITE)
        and shell.may(scope_on(surface.kind, Scope.SURFACES_WRITE)),
    }
