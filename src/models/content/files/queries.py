"""Stored files: their table, shapes, who sees them, and the bytes that a URL opens."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Protocol

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import BYTEA
from sqlmodel import Field, SQLModel

from models.content.files.rules import AssetClaim, answered_claim, download_url, read_asset_token
from models.content.items.joins import ITEM, item_placing, placing
from models.content.items.queries import PlacementOf, closed_items, placed_items
from models.core.access.rules import MANAGERS, Actor, Level, Placement, Scope, level_on
from models.core.base import Id, Moment, Shape
from models.core.pagination import Listed, PageRequest
from models.people.workspaces import live_workspace_of
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork
from runtime.errors import DeniedError, NotFoundError
from runtime.postgresql.schema import Timestamp, partial_index, table_of
from runtime.postgresql.statements import PreparedStatement


class File(SQLModel, table=True):
    """The facts known of one object of the store; its bytes never change, so copies share them.

    An item of kind `file` may place it. `deleted_at` puts a file in the trash by itself, for a
    placed one its item does. A `private` file that no item places is its maker's alone.
    """

    __tablename__ = "file"
    __table_args__ = (
        sa.UniqueConstraint("workspace_id", "id"),
        sa.ForeignKeyConstraint(["workspace_id"], ["workspace.id"]),
        sa.ForeignKeyConstraint(["created_by_user_id"], ["app_user.id"]),
        sa.CheckConstraint("byte_size >= 0", name="byte_size"),
        sa.CheckConstraint("octet_length(sha256) = 32", name="sha256"),
        partial_index(
            "ix_file_workspace_id_created_at_id",
            "workspace_id",
            "created_at",
            "id",
            where="deleted_at IS NULL",
        ),
        sa.Index("ix_file_object_key", "object_key"),
        partial_index("ix_file_deleted_at", "deleted_at", where="deleted_at IS NOT NULL"),
        partial_index("ix_file_private", "created_at", where="private"),
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id
    name: str
    mime_type: str
    byte_size: int = Field(sa_type=sa.BigInteger)
    sha256: bytes = Field(sa_type=BYTEA)
    object_key: str
    created_by_user_id: Id
    private: bool = Field(default=False, sa_column_kwargs={"server_default": sa.text("false")})
    created_at: datetime = Field(sa_type=Timestamp)
    deleted_at: datetime | None = Field(default=None, sa_type=Timestamp)


file = table_of(File)


class StoredFile(Shape):
    """A file with the path of its bytes, which works for anyone who has it."""

    file_id: Id
    name: str
    mime_type: str
    byte_size: int
    download_url: str
    created_at: Moment


class StoredFileList(Listed):
    files: list[StoredFile]


class FileRow(Protocol):
    """A file, with the key of its bytes in the object store."""

    id: Id
    workspace_id: Id
    name: str
    mime_type: str
    byte_size: int
    sha256: bytes
    object_key: str
    created_by_user_id: Id
    private: bool
    created_at: datetime


_WHERE = PreparedStatement(
    sa.select(
        file.c.workspace_id,
        file.c.created_by_user_id,
        file.c.private,
        ITEM.id.label("item_id"),
    )
    .outerjoin(*item_placing(file))
    .where(
        file.c.id == sa.bindparam("id", type_=sa.Uuid),
        file.c.workspace_id == sa.any_(sa.bindparam("workspace_ids", type_=sa.ARRAY(sa.Uuid))),
        file.c.deleted_at.is_(None),
    )
    .limit(1)
)

_placed = PlacementOf(
    placed_items().join(file, placing(file)).where(file.c.id == sa.bindparam("id", type_=sa.Uuid))
)


async def visible(
    work: UnitOfWork, workspace_ids: Sequence[Id], resource_id: Id, user_id: Id
) -> Placement | None:
    """The place of a file: the place of its item, or the root of its workspace when it has none.

    There it is also open to whoever stored it, until an item places it; to them alone when it is
    private.
    """
    row = await _WHERE.first(work, {"id": resource_id, "workspace_ids": list(workspace_ids)})
    if row is None:
        return None
    if row.item_id is None:
        own = row.created_by_user_id == user_id
        return Placement(
            row.workspace_id,
            restricted=row.private,
            granted=Level.EDIT if own else Level.NONE,
        )
    return await _placed(work, [row.workspace_id], resource_id, user_id)


async def readable_file(work: UnitOfWork, actor: Actor, file_id: Id) -> FileRow:
    """A file whose content the actor may read. Raises `DeniedError`, `NotFoundError`."""
    if Scope.FILES_READ not in actor.scopes:
        raise DeniedError("Reading a file needs the scope files:read.")
    placed = await visible(work, [actor.workspace_id], file_id, actor.user_id)
    found = None
    if placed is not None and level_on(placed, actor.role) >= Level.VIEW:
        found = await find_file(work, actor.workspace_id, file_id)
    if found is None:
        raise NotFoundError("file")
    return found


async def stored_file(work: UnitOfWork, workspace_id: Id, file_id: Id, keys: KeyRing) -> StoredFile:
    """A file, whether or not its item is in the trash. Raises `NotFoundError`."""
    found = await work.one(_files(workspace_id).where(file.c.id == file_id), "file", of=FileRow)
    return as_stored_file(found, keys, work.now)


async def readable_files(
    work: UnitOfWork, actor: Actor, file_ids: Sequence[Id], keys: KeyRing
) -> list[StoredFile]:
    """The files among these that the actor may read; of private ones, only their own."""
    if not file_ids or Scope.FILES_READ not in actor.scopes:
        return []
    own = sa.or_(file.c.private.is_(False), file.c.created_by_user_id == actor.user_id)
    rows = await work.rows(seen_files(actor, file_ids).where(own))
    among = file.c.id == sa.any_(sa.literal([row.id for row in rows], sa.ARRAY(sa.Uuid)))
    found = await work.rows(_files(actor.workspace_id).where(among), of=FileRow)
    return [as_stored_file(row, keys, work.now) for row in found]


def as_stored_file(row: FileRow, keys: KeyRing, now: datetime) -> StoredFile:
    """A row of the table as the interface shows it; its URL lasts a day from `now`."""
    return StoredFile(
        file_id=row.id,
        name=row.name,
        mime_type=row.mime_type,
        byte_size=row.byte_size,
        download_url=download_url(keys, row.workspace_id, row.id, answered_claim(now)),
        created_at=row.created_at,
    )


async def find_file(work: UnitOfWork, workspace_id: Id, file_id: Id) -> FileRow | None:
    """A file outside the trash."""
    return await work.first(_files(workspace_id).where(file.c.id == file_id), of=FileRow)


async def file_of_item(work: UnitOfWork, workspace_id: Id, item_id: Id) -> FileRow:
    """The file that an item places. Raises `NotFoundError`."""
    return await work.one(
        sa.select(file)
        .join(*item_placing(file))
        .where(
            file.c.workspace_id == workspace_id,
            file.c.deleted_at.is_(None),
            ITEM.id == item_id,
        ),
        "file",
        of=FileRow,
    )


def unhidden_files(actor: Actor, file_ids: Sequence[Id]) -> sa.Select[Any]:
    """The ids of the files among these that no item hides from the actor."""
    closed = sa.select(closed_items(actor).c.id)
    hidden = sa.select(ITEM.id).where(placing(file), ITEM.id.in_(closed))
    return _files_among(actor.workspace_id, file_ids).where(~hidden.exists())


def seen_files(actor: Actor, file_ids: Sequence[Id]) -> sa.Select[Any]:
    """The ids of the files among these that the actor sees where they are placed.

    A file without an item is at the root of its workspace.
    """
    places = sa.select(ITEM.id).where(placing(file))
    open_place = places.where(ITEM.id.not_in(sa.select(closed_items(actor).c.id))).exists()
    seen = sa.or_(open_place, ~places.exists()) if actor.level >= Level.VIEW else open_place
    return _files_among(actor.workspace_id, file_ids).where(seen)


def file_names(workspace_id: Id, file_ids: Sequence[Id]) -> sa.Select[Any]:
    """The `id` and `name` of these files, deleted ones too."""
    among = file.c.id == sa.any_(sa.literal(list(file_ids), sa.ARRAY(sa.Uuid)))
    return sa.select(file.c.id, file.c.name).where(file.c.workspace_id == workspace_id, among)


def _files_among(workspace_id: Id, file_ids: Sequence[Id]) -> sa.Select[Any]:
    return sa.select(file.c.id).where(
        file.c.workspace_id == workspace_id,
        file.c.id == sa.any_(sa.literal(list(file_ids), sa.ARRAY(sa.Uuid))),
        file.c.deleted_at.is_(None),
    )


async def list_files(work: UnitOfWork, actor: Actor, page: PageRequest) -> StoredFileList:
    """The files the actor sees, newest first."""
    places = sa.select(ITEM.id).where(placing(file))
    opened = places.where(ITEM.id.not_in(sa.select(closed_items(actor).c.id)))
    own = file.c.created_by_user_id == actor.user_id
    shared = sa.and_(sa.literal(actor.level >= Level.VIEW), file.c.private.is_(False))
    seen = sa.or_(sa.literal(actor.role in MANAGERS), shared, own)
    at_root = sa.and_(seen, ~places.exists())
    statement = _files(actor.workspace_id).where(sa.or_(opened.exists(), at_root))
    shown = await page.descending(work, statement, file.c.created_at, file.c.id, of=FileRow)
    return StoredFileList.of(shown, lambda row: as_stored_file(row, page.keys, work.now))


def _files(workspace_id: Id) -> sa.Select[Any]:
    return sa.select(file).where(file.c.workspace_id == workspace_id, file.c.deleted_at.is_(None))


def file_sizes(workspace_id: Id) -> sa.Select[Any]:
    """The sizes of the files of a workspace, deleted ones left out."""
    return _files(workspace_id).with_only_columns(file.c.byte_size)


class AssetRow(FileRow, Protocol):
    """A file with the item that places it, if there is one."""

    item_id: Id | None


_ASSET = PreparedStatement(
    sa.select(file, ITEM.id.label("item_id"))
    .join(*live_workspace_of(file))
    .outerjoin(*item_placing(file))
    .where(
        file.c.id == sa.bindparam("id", type_=sa.Uuid),
        file.c.deleted_at.is_(None),
    )
    .limit(1),
    AssetRow,
)


async def find_asset(
    work: UnitOfWork, keys: KeyRing, file_id: Id | None, token: str
) -> tuple[AssetRow, AssetClaim]:
    """The file that a token opens, and what the token says.

    Raises the same `NotFoundError` for a file that is unknown or in the trash and for a token
    that was not made for it or has expired.
    """
    row = None if file_id is None else await _ASSET.first(work, {"id": file_id})
    if row is None or file_id is None:
        raise NotFoundError("file")
    claim = read_asset_token(keys, row.workspace_id, file_id, token)
    if claim is None or claim.expires_at <= work.now:
        raise NotFoundError("file")
    if row.item_id is not None:
        shown = await _placed(work, [row.workspace_id], file_id, row.created_by_user_id)
        if shown is None:
            raise NotFoundError("file")
    return row, claim
