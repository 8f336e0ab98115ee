"""Writes of a sync: the place of a mount, its entries, and how the sync ended."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import sqlalchemy as sa

from models.content.items.commands import check_parent, create_items_for, rename_items
from models.content.items.joins import live_item_of
from models.content.items.rules import ItemKind
from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from models.core.repository import update_rows
from models.sources.external_resources.rules import resources as external_resources
from models.sources.mounts.commands import find_same, place_mount
from models.sources.mounts.queries import MAX_ENTRIES, CreateMount, MountRow, mount
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, DeniedError, NotFoundError, ValidationError
from runtime.ids import new_id
from runtime.postgresql.statements import lock_name


@dataclass(slots=True)
class ListedFolder:
    """The content of one folder as a provider showed it; not `done` while a cursor is left.

    `missing` says that it is no longer shown, `problem` why it could not be listed.
    """

    folder: MountRow
    resources: list[external_resources.ProviderResource] = field(default_factory=list)
    cursor: str | None = None
    done: bool = False
    missing: bool = False
    problem: str | None = None


async def place_root(
    work: UnitOfWork,
    actor: Actor,
    job_id: Id,
    place: JsonObject,
    resource: external_resources.ProviderResource,
) -> tuple[Id, bool]:
    """The mount of a described resource, and whether it is new.

    Raises what `check_parent` raises.
    """
    parent = None if place["parentItemId"] is None else Id(place["parentItemId"])
    connection_id = Id(place["connectionId"])
    # Of two requests that mount the same at once, the second finds the mount of the first.
    same = (connection_id, parent, resource.external_id)
    await lock_name(work, "/".join(map(str, ("mount", actor.workspace_id, *same))))
    if (known := await find_same(work, actor, *same)) is not None:
        return known, False
    body = CreateMount.model_construct(
        resource=resource, connection_id=connection_id, recursive=place["recursive"]
    )
    made = await place_mount(work, actor, job_id, place["title"] or resource.name, parent, body)
    await work.execute(sa.update(mount).where(mount.c.id == made).values(sync_job_id=job_id))
    return made, True


async def root_of(work: UnitOfWork, workspace_id: Id, mount_id: Id, job_id: Id) -> MountRow | None:
    """The mount that a job syncs; None when it is gone, or no longer this job's to sync."""
    return await work.first(
        sa.select(mount)
        .join(*live_item_of(mount))
        .where(
            mount.c.workspace_id == workspace_id,
            mount.c.id == mount_id,
            mount.c.sync_job_id == job_id,
        ),
        of=MountRow,
    )


async def begin_listing(work: UnitOfWork, root: MountRow) -> None:
    """Forget what an earlier sync had still to list."""
    await work.execute(
        sa.update(mount)
        .where(mount.c.root_mount_id == root.id, mount.c.pending)
        .values(pending=False)
    )


async def pending_folders(work: UnitOfWork, root: MountRow, limit: int) -> Sequence[MountRow]:
    """Entries whose content is still to be listed."""
    statement = sa.select(mount).where(mount.c.root_mount_id == root.id, mount.c.pending)
    return await work.rows(statement.order_by(mount.c.id).limit(limit), of=MountRow)


async def record_listing(
    work: UnitOfWork, actor: Actor, root: MountRow, job_id: Id, listings: Sequence[ListedFolder]
) -> int:
    """Write what was listed; returns the number of entries that the mount then has.

    An entry keeps its item, wherever people have moved it. What they deleted stays away. A folder
    whose own item went, or stands too deep for another level, gets nothing below it.
    """
    entries = root.entries
    for listing in listings:
        if listing.resources:
            entries += await _record(work, actor, root, job_id, listing, MAX_ENTRIES - entries)
        if listing.folder.id != root.id:
            await _settle(work, listing)
    return entries


async def _settle(work: UnitOfWork, listing: ListedFolder) -> None:
    values: JsonObject = {"pending": not listing.done}
    if listing.missing:
        values |= {
            "status": external_resources.MountStatus.STALE.value,
            "vanished_at": work.now,
        }
    if listing.problem is not None:
        values |= {
            "status": external_resources.MountStatus.ERROR.value,
            "error": listing.problem,
        }
    await work.execute(sa.update(mount).where(mount.c.id == listing.folder.id).values(values))


async def _record(
    work: UnitOfWork, actor: Actor, root: MountRow, job_id: Id, listing: ListedFolder, room: int
) -> int:
    by_id = {resource.external_id: resource for resource in listing.resources}
    by_id.pop(root.external_id, None)
    rows = await work.rows(
        sa.select(mount).where(
            mount.c.root_mount_id == root.id, mount.c.external_id.in_(list(by_id))
        ),
        of=MountRow,
    )
    await _update(work, job_id, [(row, by_id.pop(row.external_id)) for row in rows])
    fresh = list(by_id.values())[: max(room, 0)]
    try:
        await check_parent(work, actor, listing.folder.item_id)
    except (NotFoundError, DeniedError, ValidationError):
        return 0
    await _insert(work, root, job_id, listing.folder.item_id, fresh)
    return len(fresh)


async def _insert(
    work: UnitOfWork,
    root: MountRow,
    job_id: Id,
    parent: Id,
    fresh: Sequence[external_resources.ProviderResource],
) -> None:
    ids = [new_id() for _ in fresh]
    titles: list[tuple[Id | None, str]] = [
        (mount_id, resource.name) for mount_id, resource in zip(ids, fresh, strict=True)
    ]
    kind = ItemKind.EXTERNAL_RESOURCE
    items = await create_items_for(work, root.workspace_id, parent, kind, titles)
    rows = [
        {
            "id": mount_id,
            "workspace_id": root.workspace_id,
            "item_id": item_id,
            "connection_id": root.connection_id,
            "root_mount_id": root.id,
            "recursive": False,
            "created_by_user_id": root.created_by_user_id,
            "created_at": work.now,
            **_seen(work, job_id, resource),
        }
        for mount_id, item_id, resource in zip(ids, items, fresh, strict=True)
    ]
    if rows:
        await work.execute(sa.insert(mount), rows)


async def _update(
    work: UnitOfWork,
    job_id: Id,
    found: Sequence[tuple[MountRow, external_resources.ProviderResource]],
) -> None:
    """Follow what the provider says now; a folder is listed once in each sync."""
    first = [(row, resource) for row, resource in found if row.seen_by != job_id]
    if not first:
        return
    changes = [(row.id, _seen(work, job_id, resource)) for row, resource in first]
    await update_rows(work, mount, changes)
    renamed = [
        (row.item_id, row.resource["name"], resource.name)
        for row, resource in first
        if row.resource["name"] != resource.name
    ]
    await rename_items(work, renamed)


def _seen(
    work: UnitOfWork, job_id: Id, resource: external_resources.ProviderResource
) -> JsonObject:
    return {
        "external_id": resource.external_id,
        "resource": resource.to_json(),
        "status": external_resources.MountStatus.ACTIVE.value,
        "error": None,
        "vanished_at": None,
        "seen_by": job_id,
        "pending": external_resources.Capability.BROWSE in resource.capabilities,
        "last_synced_at": work.now,
        "updated_at": work.now,
    }


async def advance_root(work: UnitOfWork, root: MountRow, job_id: Id, entries: int) -> None:
    """Show how far a sync has come. Raises ConflictError for one that was cancelled meanwhile."""
    values = {"entries": entries, "truncated": entries >= MAX_ENTRIES}
    await _change_root(work, root, job_id, values)


async def finish_sync(
    work: UnitOfWork,
    root: MountRow,
    job_id: Id,
    resource: external_resources.ProviderResource,
    mark: str | None,
) -> None:
    """The provider has shown all there is; entries that it did not show are stale.

    Raises ConflictError for a sync that was cancelled meanwhile.
    """
    if root.recursive and not root.truncated:
        await work.execute(
            sa.update(mount)
            .where(
                mount.c.root_mount_id == root.id,
                mount.c.seen_by.is_distinct_from(job_id),
                mount.c.status != external_resources.MountStatus.STALE.value,
            )
            .values(
                status=external_resources.MountStatus.STALE.value,
                vanished_at=sa.func.coalesce(mount.c.vanished_at, work.now),
                updated_at=work.now,
            )
        )
    if mark is not None and await _has_problems(work, root):
        # Folders that could not be listed are listed again, although nothing changed.
        mark = None
    await note_unchanged(work, root, job_id, resource, mark)


async def _has_problems(work: UnitOfWork, root: MountRow) -> bool:
    these = (
        mount.c.root_mount_id == root.id,
        mount.c.status == external_resources.MountStatus.ERROR.value,
    )
    return await work.first(sa.select(mount.c.id).where(*these).limit(1)) is not None


async def note_unchanged(
    work: UnitOfWork,
    root: MountRow,
    job_id: Id,
    resource: external_resources.ProviderResource,
    mark: str | None,
) -> None:
    """The mount is what the provider shows. Raises what `finish_sync` raises."""
    values: JsonObject = {
        "status": external_resources.MountStatus.ACTIVE.value,
        "error": None,
        "vanished_at": None,
        "last_synced_at": work.now,
        "synced_revision": mark,
        "sync_job_id": None,
        "resource": resource.to_json(),
    }
    await _change_root(work, root, job_id, values)


async def note_vanished(work: UnitOfWork, root: MountRow, job_id: Id) -> None:
    """The provider does not show the resource any more; everything stays where it is."""
    values = {
        "status": external_resources.MountStatus.STALE.value,
        "error": None,
        "vanished_at": sa.func.coalesce(mount.c.vanished_at, work.now),
        "synced_revision": None,
        "sync_job_id": None,
    }
    await _change_root(work, root, job_id, values)


async def note_failure(work: UnitOfWork, mount_id: Id, job_id: Id, message: str) -> None:
    """Record why a sync could not end; unless it is no longer this job's."""
    await work.execute(
        sa.update(mount)
        .where(mount.c.id == mount_id, mount.c.sync_job_id == job_id)
        .values(
            status=external_resources.MountStatus.ERROR.value,
            error=message,
            sync_job_id=None,
            synced_revision=None,
            updated_at=work.now,
        )
    )


async def _change_root(work: UnitOfWork, root: MountRow, job_id: Id, values: JsonObject) -> None:
    changed = await work.execute(
        sa.update(mount)
        .where(mount.c.id == root.id, mount.c.sync_job_id == job_id)
        .values(**values, updated_at=work.now)
    )
    if changed.rowcount == 0:
        raise ConflictError("The sync was cancelled.")
