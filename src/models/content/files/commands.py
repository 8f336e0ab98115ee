"""Recording files whose bytes are in the object store, removing both, and files in a bundle."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert as upsert

from models.content.files.queries import FileRow, StoredFile, as_stored_file, file, stored_file
from models.content.files.rules import Content, file_name, media_type
from models.content.items.commands import create_item_for, trash_item
from models.content.items.joins import ITEM, item, item_placing, placing
from models.content.items.rules import ItemKind
from models.core.access.rules import Actor, Placement
from models.core.base import Id
from models.core.bundles import USER, BundleKind, ImportTarget, Row, Stage
from models.core.purging import Retention
from runtime.crypto import KeyRing
from runtime.database import Database, UnitOfWork
from runtime.errors import ConflictError
from runtime.ids import new_id
from runtime.object_store import ObjectStore

OBJECTS = "files"
"""The prefix of the keys of all objects that belong to files."""
UPLOAD_TIME = timedelta(days=1)
"""An object younger than this may still get its row."""
_PURGED = 200
"""Files that one call of `purge_files` takes away."""


def new_object_key(workspace_id: Id) -> str:
    """A key that no object had before."""
    return f"{OBJECTS}/{workspace_id}/{new_id()}"


async def record_upload(
    work: UnitOfWork, actor: Actor, keys: KeyRing, file_id: Id, upload: Content, name: str | None
) -> StoredFile:
    """Record what a client sent, under the name it chose last."""
    named = upload if name is None else replace(upload, name=file_name(name))
    return await register_file(
        work,
        keys,
        named,
        file_id=file_id,
        workspace_id=actor.workspace_id,
        user_id=actor.user_id,
    )


async def register_file(
    work: UnitOfWork,
    keys: KeyRing,
    content: Content,
    *,
    file_id: Id,
    workspace_id: Id,
    user_id: Id,
) -> StoredFile:
    """Record a file whose object is whole; `content.name` is one that `file_name` gave."""
    values = _values(work, content, file_id, workspace_id, user_id, private=False)
    (row,) = await work.rows(sa.insert(file).values(values).returning(*file.c), of=FileRow)
    return as_stored_file(row, keys, work.now)


async def save_file(
    work: UnitOfWork,
    actor: Actor,
    content: Content,
    *,
    file_id: Id,
    user_id: Id,
    parent_item_id: Id | None,
    placed: bool,
) -> bool:
    """Record a file, with an item if it is `placed`; False where there is one of this id.

    Raises what `create_item_for` raises.
    """
    values = _values(work, content, file_id, actor.workspace_id, user_id, private=False)
    new = upsert(file).values(values).on_conflict_do_nothing().returning(file.c.id)
    if await work.scalar(new) is None:
        return False
    if placed:
        await create_item_for(
            work,
            actor,
            ItemKind.FILE,
            file_id,
            content.name,
            parent_item_id=parent_item_id,
        )
    return True


async def register_private_file(
    work: UnitOfWork, content: Content, *, file_id: Id, workspace_id: Id, user_id: Id
) -> None:
    """Record a file that only this user and the managers of the workspace see."""
    await register_private_files(
        work, [(file_id, content)], workspace_id=workspace_id, user_id=user_id
    )


async def register_private_files(
    work: UnitOfWork, files: Sequence[tuple[Id, Content]], *, workspace_id: Id, user_id: Id
) -> None:
    """Record many files as `register_private_file` does one."""
    rows = [
        _values(work, content, id_, workspace_id, user_id, private=True) for id_, content in files
    ]
    if rows:
        await work.execute(sa.insert(file), rows)


def _values(
    work: UnitOfWork, content: Content, file_id: Id, workspace_id: Id, user_id: Id, *, private: bool
) -> dict[str, object]:
    return {
        "id": file_id,
        "workspace_id": workspace_id,
        "private": private,
        "name": content.name,
        "mime_type": content.mime_type,
        "byte_size": content.byte_size,
        "sha256": content.sha256,
        "object_key": content.object_key,
        "created_by_user_id": user_id,
        "created_at": work.now,
    }


async def copy_file(work: UnitOfWork, actor: Actor, file_id: Id) -> Id:
    """A second file of the same bytes. Raises `NotFoundError`."""
    row = await work.one(
        sa.select(file)
        .where(
            file.c.workspace_id == actor.workspace_id,
            file.c.id == file_id,
            file.c.deleted_at.is_(None),
        )
        .with_for_update(read=True),
        "file",
    )
    copy_id = new_id()
    own = {"id": copy_id, "created_by_user_id": actor.user_id, "created_at": work.now}
    await work.execute(sa.insert(file).values({**row._mapping, **own}))
    return copy_id


async def lock_unplaced(work: UnitOfWork, actor: Actor, file_id: Id) -> None:
    """Lock a file that is about to get an item. Raises `ConflictError` when it has one.

    Of two requests that place it at once the second waits, and finds the item of the first.
    """
    this = (file.c.workspace_id == actor.workspace_id, file.c.id == file_id)
    await work.execute(sa.select(file.c.id).where(*this).with_for_update())
    if await work.scalar(sa.select(ITEM.id).join(file, placing(file)).where(*this)) is not None:
        raise ConflictError("The file already has an item. Duplicate that item instead.")


async def delete_file(
    work: UnitOfWork, actor: Actor, keys: KeyRing, file_id: Id, place: Placement | None
) -> StoredFile:
    """Put a file in the trash for 30 days; its download URL stops at once.

    A placed one goes with its item, and comes back with it. Raises what `trash_item` raises.
    """
    detail = await stored_file(work, actor.workspace_id, file_id, keys)
    if place is not None and place.item_id is not None:
        await trash_item(work, actor, place.item_id)
    else:
        await work.execute(
            sa.update(file)
            .where(file.c.workspace_id == actor.workspace_id, file.c.id == file_id)
            .values(deleted_at=work.now)
        )
    return detail


async def discard_file(work: UnitOfWork, actor: Actor, file_id: Id) -> None:
    """Put a file that no item places any more into the trash."""
    this = (file.c.workspace_id == actor.workspace_id, file.c.id == file_id)
    await work.execute(sa.update(file).where(*this).values(deleted_at=work.now))


async def purge_files(
    database: Database, store: ObjectStore, before: datetime, limit: int = _PURGED
) -> int:
    """Remove files that were deleted before a moment, and objects that no file needs then.

    A private file that nothing ever placed lasts no longer than a deleted one. Returns the number
    of removed files, at most `limit`; call it until that is 0. A row goes before its object: an
    object without a row is an orphan, a row without an object would be a broken file.
    """
    async with database.transaction() as work:
        candidates = await work.rows(
            sa.select(file.c.id)
            .where(file.c.id.in_(_old(before)))
            .limit(limit)
            .with_for_update(skip_locked=True)
        )
        # Asked again under the lock: who places a file holds it, and may have done so meanwhile.
        removed_rows = await work.rows(
            sa.delete(file)
            .where(file.c.id.in_([row.id for row in candidates]), file.c.id.in_(_old(before)))
            .returning(file.c.object_key)
        )
        purged = [row.object_key for row in removed_rows]
        orphans = await _without_row(work, purged)
    for key in orphans:
        await store.delete(key)
    return len(purged)


def _old(before: datetime) -> sa.CompoundSelect[Any]:
    """The ids of files to purge, each part found by its own index."""
    old = file.alias("old")
    placed = sa.select(ITEM.id).where(placing(old))
    forgotten = (old.c.private, old.c.created_at < before, ~placed.exists())
    return sa.union_all(
        sa.select(old.c.id).where(old.c.deleted_at < before),
        sa.select(old.c.id).join(*item_placing(old)).where(ITEM.deleted_at < before),
        sa.select(old.c.id).where(*forgotten),
    )


async def _without_row(work: UnitOfWork, object_keys: Sequence[str]) -> set[str]:
    """The objects among these that no file has; copies of a file share one object."""
    return set(object_keys) - await keys_of_files(work, object_keys)


async def keys_of_files(work: UnitOfWork, object_keys: Collection[str]) -> set[str]:
    """The objects among these that a file has."""
    rows = await work.rows(
        sa.select(file.c.object_key).where(
            file.c.object_key
            == sa.any_(sa.bindparam("keys", [*object_keys], type_=sa.ARRAY(sa.Text)))
        )
    )
    return {row.object_key for row in rows}


_below = item.alias("below")

purge_trash = Retention(
    item,
    item.c.deleted_at,
    conditions=(
        ~sa.exists().where(
            _below.c.workspace_id == item.c.workspace_id, _below.c.parent_item_id == item.c.id
        ),
        ~sa.exists().where(
            item.c.kind == ItemKind.FILE.value,
            file.c.workspace_id == item.c.workspace_id,
            file.c.id == item.c.target_id,
        ),
    ),
    order=(item.c.deleted_at, item.c.id),
)
"""Items in the trash, with all that is theirs.

What is below an item goes before it, and a file's item after its file: else the file would count as
one that nothing places, and be seen again.
"""


def _bundled_rows(workspace_id: Id) -> sa.Select[Any]:
    """Files outside the trash; a private one that no item places is its maker's alone."""
    place = sa.select(item.c.id).where(placing(file))
    open_place = place.where(item.c.deleted_at.is_(None)).exists()
    loose = sa.and_(~place.exists(), file.c.private.is_(False))
    return sa.select(file).where(
        file.c.workspace_id == workspace_id, file.c.deleted_at.is_(None), sa.or_(open_place, loose)
    )


def imported_object_key(workspace_id: object, file_id: object) -> str:
    """The key of an imported file's bytes; a repeated import writes them there again."""
    return f"files/{workspace_id}/{file_id}"


async def _prepare(_work: UnitOfWork, target: ImportTarget, rows: Sequence[Row]) -> Sequence[Row]:
    return [
        {
            **row,
            "name": file_name(row["name"]),
            "mime_type": media_type(row["mime_type"]),
            "object_key": imported_object_key(target.workspace_id, row["id"]),
        }
        for row in rows
    ]


FILES = BundleKind(
    name="file",
    stage=Stage.FILES,
    file="files.ndjson",
    table=file,
    rows=_bundled_rows,
    references={"created_by_user_id": USER},
    left_out={
        "object_key": "names a place in the store of the source",
        "deleted_at": "what is in the trash stays behind",
    },
    blobs=True,
    hides=True,
    prepare=_prepare,
)
