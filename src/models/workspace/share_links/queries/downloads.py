"""The files that download URLs and share links open."""

from models.content.files.queries import AssetRow, find_asset
from models.content.files.rows import FileRow
from models.content.files.rules import Content
from models.content.items.rules import ItemKind
from models.core.base import Id
from models.workspace.share_links.queries.content import file_of
from models.workspace.share_links.queries.visitors import Visitor, live_link
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork
from runtime.errors import DeniedError, NotFoundError, UnsupportedError


async def open_asset(work: UnitOfWork, keys: KeyRing, file_id: Id | None, token: str) -> Content:
    """The file a download URL opens.

    A URL given by a share link also ends with the link and its `allowDownload`.
    Raises the same `NotFoundError` whatever is wrong.
    """
    file, claim = await find_asset(work, keys, file_id, token)
    if claim.share_link_id is not None:
        try:
            link = await live_link(work, claim.share_link_id)
        except NotFoundError:
            raise NotFoundError("file") from None
        if not link.allow_download or link.workspace_id != file.workspace_id:
            raise NotFoundError("file")
    return _content(file)


async def open_shared_file(work: UnitOfWork, visitor: Visitor) -> Content:
    """The file that a link shares.

    Raises `UnsupportedError` for an item that is no file, and `DeniedError` when the link does not
    allow downloads.
    """
    link = visitor.link
    if link.kind != ItemKind.FILE:
        raise UnsupportedError(f"A shared {link.kind} has nothing to download.")
    if not link.allow_download:
        raise DeniedError("This link does not allow downloads.")
    return _content(await file_of(work, link))


def _content(row: FileRow | AssetRow) -> Content:
    return Content(
        name=row.name,
        mime_type=row.mime_type,
        byte_size=row.byte_size,
        sha256=row.sha256,
        object_key=row.object_key,
    )
