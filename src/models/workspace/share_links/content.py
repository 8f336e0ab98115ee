"""The content that a share link shows: that of its item, and nothing around it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pydantic import JsonValue
from sqlalchemy import tuple_

from models.content.files.queries import AssetRow, FileRow, file_of_item, find_asset, unhidden_files
from models.content.files.rules import AssetClaim, Content, download_url
from models.content.items.joins import ITEM, live_items
from models.content.items.queries import find_item, target_of
from models.content.items.rules import AccessMode, ItemKind
from models.content.items.shapes import ItemRow
from models.content.surfaces.queries import blocks_of, nested
from models.content.surfaces.rules.contents import RESOURCES, references
from models.content.surfaces.shapes import BlockTree
from models.core.access.rules import Role
from models.core.base import Id, JsonObject
from models.core.pagination import page_request
from models.workspace.share_links.records import figures_of, shared_records
from models.workspace.share_links.shapes import (
    SharedBlock,
    SharedContent,
    SharedFigures,
    SharedFile,
    SharedFolder,
    SharedForm,
    SharedItem,
    SharedSurface,
    Visit,
)
from models.workspace.share_links.tables import ShareLink
from models.workspace.share_links.visitors import Visitor, live_link
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork
from runtime.errors import DeniedError, NotFoundError, UnsupportedError


async def visit(
    work: UnitOfWork, keys: KeyRing, visitor: Visitor, limit: int, cursor: str | None
) -> Visit:
    """The shared item with its content, a page of it where it is long.

    Raises the same `NotFoundError` for all that is missing, and `ValidationError` for a cursor of
    another list.
    """
    link = visitor.link
    try:
        shown = await find_item(work, link.workspace_id, link.workspace_item_id)
        content = await _content(work, keys, visitor, shown, limit, cursor)
    except NotFoundError:
        raise NotFoundError("share link") from None
    return Visit(
        item=SharedItem.model_validate(shown),
        content=content,
        allow_download=link.allow_download,
        session=visitor.session,
        session_expires_at=visitor.expires_at,
    )


async def _content(
    work: UnitOfWork,
    keys: KeyRing,
    visitor: Visitor,
    shown: ItemRow,
    limit: int,
    cursor: str | None,
) -> SharedContent:
    match ItemKind(shown.kind):
        case ItemKind.FOLDER:
            return await _folder(work, keys, visitor, limit, cursor)
        case ItemKind.DATABASE | ItemKind.VIEW:
            return await shared_records(work, keys, shown, limit, cursor)
        case ItemKind.FILE:
            return await _file(work, keys, visitor)
        case ItemKind.FORM:
            return SharedForm(form_url=f"/v1/forms/{shown.id}")
        case _:
            return await _surface(work, keys, visitor, target_of(shown))


async def _folder(
    work: UnitOfWork, keys: KeyRing, visitor: Visitor, limit: int, cursor: str | None
) -> SharedFolder:
    link = visitor.link
    page = page_request(keys, limit, cursor, "share link children", link.id)
    statement = (
        live_items(link.workspace_id)
        .where(
            ITEM.parent_item_id == link.workspace_item_id,
            ITEM.access_mode == AccessMode.OPEN.value,
            ITEM.archived.is_(False),
        )
        .order_by(ITEM.position, ITEM.id)
        .limit(page.fetch)
    )
    if page.after is not None:
        statement = statement.where(tuple_(ITEM.position, ITEM.id) > tuple_(*page.after))
    found = page.of(await work.rows(statement), lambda row: (row.position, row.id))
    return SharedFolder(
        children=[SharedItem.model_validate(row) for row in found.items], cursor=found.cursor
    )


async def _file(work: UnitOfWork, keys: KeyRing, visitor: Visitor) -> SharedFile:
    row = await file_of(work, visitor.link)
    url = download_url(keys, row.workspace_id, row.id, _claim(visitor))
    return SharedFile(
        name=row.name,
        mime_type=row.mime_type,
        byte_size=row.byte_size,
        download_url=url if visitor.link.allow_download else None,
        created_at=row.created_at,
    )


async def file_of(work: UnitOfWork, link: ShareLink) -> FileRow:
    """The file that a link's item places. Raises `NotFoundError`."""
    return await file_of_item(work, link.workspace_id, link.workspace_item_id)


async def _surface(
    work: UnitOfWork, keys: KeyRing, visitor: Visitor, surface_id: Id
) -> SharedSurface:
    workspace_id = visitor.link.workspace_id
    rows = await blocks_of(work, workspace_id, surface_id)
    urls: dict[str, str] = {}
    if visitor.link.allow_download:
        named = references([row.content for row in rows])
        wanted = [reference.id for reference in named if reference.resource == "file"]
        for file_id in await _open_files(work, visitor, wanted):
            urls[str(file_id)] = download_url(keys, workspace_id, file_id, _claim(visitor))
    figures = await figures_of(work, keys, visitor.link, rows)
    return SharedSurface(blocks=[_shown_block(tree, urls, figures) for tree in nested(rows, None)])


async def _open_files(work: UnitOfWork, visitor: Visitor, file_ids: Sequence[Id]) -> list[Id]:
    """The files among these that every viewer of the workspace sees."""
    if not file_ids:
        return []
    any_viewer = replace(visitor.actor, role=Role.VIEWER)
    rows = await work.rows(unhidden_files(any_viewer, file_ids))
    return [row.id for row in rows]


def _claim(visitor: Visitor) -> AssetClaim:
    return AssetClaim(visitor.expires_at, visitor.link.id)


def _shown_block(
    tree: BlockTree, urls: dict[str, str], figures: Mapping[Id, SharedFigures]
) -> SharedBlock:
    return SharedBlock(
        id=tree.id,
        kind=tree.kind,
        content=_without_references(tree.content, urls),
        order=tree.order,
        x=tree.x,
        y=tree.y,
        w=tree.w,
        h=tree.h,
        figures=figures.get(tree.id),
        children=[_shown_block(child, urls, figures) for child in tree.children],
    )


def _without_references(value: JsonValue, urls: dict[str, str]) -> JsonValue:
    """Content without references: a visitor does not learn of people, items and records."""
    if isinstance(value, list):
        return [_without_references(entry, urls) for entry in value]
    if not isinstance(value, dict):
        return value
    content: JsonObject = {
        key: _without_references(entry, urls)
        for key, entry in value.items()
        if key not in RESOURCES
    }
    url = urls.get(str(value.get("fileId")))
    return content if url is None else {**content, "downloadUrl": url}


async def open_asset(work: UnitOfWork, keys: KeyRing, file_id: Id | None, token: str) -> Content:
    """The file a download URL opens.

    A URL given by a share link also ends with the link and its `allowDownload`.
    Raises the same `NotFoundError` for every fault.
    """
    file, claim = await find_asset(work, keys, file_id, token)
    if claim.share_link_id is not None:
        try:
            link = await live_link(work, claim.share_link_id)
        except NotFoundError:
            raise NotFoundError("file") from None
        if not link.allow_download or link.workspace_id != file.workspace_id:
            raise NotFoundError("file")
    return _file_content(file)


async def open_shared_file(work: UnitOfWork, visitor: Visitor) -> Content:
    """The file that a link shares.

    Raises `UnsupportedError` for an item that is no file, and `DeniedError` when the link does not
    allow downloads.
    """
    link = visitor.link
    if link.kind != ItemKind.FILE:
        raise UnsupportedError(f"A shared {link.kind} has no file to download.")
    if not link.allow_download:
        raise DeniedError("This link does not allow downloads.")
    return _file_content(await file_of(work, link))


def _file_content(row: FileRow | AssetRow) -> Content:
    return Content(
        name=row.name,
        mime_type=row.mime_type,
        byte_size=row.byte_size,
        sha256=row.sha256,
        object_key=row.object_key,
    )
