"""Mounting resources, asking for syncs, and taking mounts away."""

import sqlalchemy as sa

from models.content.items.commands import check_parent, create_item_for, trash_item
from models.content.items.joins import ITEM, live_item_of
from models.content.items.rules import ItemKind
from models.core.access.rules import Actor, Level
from models.core.base import Id, JsonObject
from models.core.lifecycle.commands import cancel_executions
from models.core.schedules.commands import follow
from models.messages.jobs.store import accept_job
from models.sources.connections.providers import ProviderName
from models.sources.external_resources.rules import resources as external_resources
from models.sources.mounts import queries
from models.sources.mounts.schedules import MOUNT_SCHEDULES
from models.sources.mounts.tables import mount
from models.sources.provider_calls import usable_connection
from runtime.database import UnitOfWork
from runtime.errors import ConflictError
from runtime.ids import new_id
from runtime.temporal.families import Family


async def accept_mount(
    work: UnitOfWork, actor: Actor, job_id: Id, body: queries.MountResource
) -> queries.MountedResource | None:
    """The mount of the same resource below the same parent, else None: a worker makes it.

    Raises what `usable_connection` and `check_parent` raise.
    """
    connection = await usable_connection(
        work, actor, body.connection_id, external_resources.Capability.MOUNT
    )
    await check_parent(work, actor, body.parent_item_id)
    known = await find_same(
        work, actor, body.connection_id, body.parent_item_id, body.resource.external_id
    )
    if known is not None:
        return await queries.mounted_resource(work, actor.workspace_id, known)
    await _start(work, actor, job_id, job_id, connection.provider, _placing(body))
    return None


def _placing(body: queries.MountResource) -> JsonObject:
    parent = body.parent_item_id
    return {
        "connectionId": str(body.connection_id),
        "resource": body.resource.to_json(),
        "recursive": body.recursive,
        "parentItemId": None if parent is None else str(parent),
        "title": body.title,
    }


async def find_same(
    work: UnitOfWork,
    actor: Actor,
    connection_id: Id,
    parent_item_id: Id | None,
    external_id: str,
) -> Id | None:
    """The mount of a resource right below a parent that the actor sees."""
    rows = await work.rows(
        sa.select(mount.c.id)
        .join(*live_item_of(mount))
        .where(
            mount.c.workspace_id == actor.workspace_id,
            mount.c.connection_id == connection_id,
            mount.c.external_id == external_id,
            mount.c.root_mount_id.is_(None),
            ITEM.parent_item_id.is_not_distinct_from(parent_item_id),
        )
        .order_by(mount.c.id)
    )
    for row in rows:
        if await queries.visible.level(work, actor, row.id) >= Level.VIEW:
            return Id(str(row.id))
    return None


async def create_mount(
    work: UnitOfWork, actor: Actor, title: str, parent_item_id: Id | None, body: queries.CreateMount
) -> queries.MountDetail:
    """A mount with its item: a link, or with a connection what its first sync will make of it.

    Raises what `usable_connection` and `check_parent` raise.
    """
    provider = None
    if body.connection_id is not None:
        found = await usable_connection(
            work, actor, body.connection_id, external_resources.Capability.MOUNT
        )
        provider = found.provider
    made = await place_mount(work, actor, new_id(), title, parent_item_id, body)
    if provider is not None:
        job_id = new_id()
        await _start(work, actor, job_id, made, provider, None)
        await work.execute(sa.update(mount).where(*_this(actor, made)).values(sync_job_id=job_id))
    return await queries.get_mount(work, actor.workspace_id, made)


async def place_mount(
    work: UnitOfWork,
    actor: Actor,
    mount_id: Id,
    title: str,
    parent_item_id: Id | None,
    body: queries.CreateMount,
) -> Id:
    """The rows of a mount; gives its id. Raises what `check_parent` raises."""
    item_id = await create_item_for(
        work,
        actor,
        ItemKind.EXTERNAL_RESOURCE,
        mount_id,
        title,
        parent_item_id=parent_item_id,
    )
    await work.execute(
        sa.insert(mount).values(
            id=mount_id,
            workspace_id=actor.workspace_id,
            item_id=item_id,
            connection_id=body.connection_id,
            external_id=body.resource.external_id,
            resource=body.resource.to_json(),
            recursive=body.recursive,
            status=external_resources.MountStatus.ACTIVE.value,
            created_by_user_id=actor.user_id,
            created_at=work.now,
            updated_at=work.now,
        )
    )
    if body.connection_id is not None:
        await follow(work, MOUNT_SCHEDULES, mount_id)
    return mount_id


async def copy_mount(
    work: UnitOfWork, actor: Actor, mount_id: Id, title: str, parent_item_id: Id | None
) -> queries.MountDetail:
    """A second mount of the same resource. Raises `NotFoundError`."""
    row = await work.one(
        sa.select(mount).where(*_this(actor, mount_id)), "mount", of=queries.MountRow
    )
    body = queries.CreateMount.model_construct(
        resource=external_resources.ProviderResource.model_validate(row.resource),
        connection_id=row.connection_id,
        recursive=row.recursive,
    )
    return await create_mount(work, actor, title, parent_item_id, body)


async def request_sync(
    work: UnitOfWork, actor: Actor, mount_id: Id, job_id: Id
) -> queries.MountDetail:
    """Have a mount synced now; one that is being synced is left to it.

    Raises NotFoundError, ConflictError for a link or an entry, and what `usable_connection` does.
    """
    mount_row = await queries.find_mount(work, actor.workspace_id, mount_id)
    if mount_row.root_mount_id is not None:
        raise ConflictError("An entry is synced with its mount. Sync its rootMountId.")
    if mount_row.connection_id is None:
        raise ConflictError("A link has no connection to sync with.")
    connection = await usable_connection(
        work, actor, mount_row.connection_id, external_resources.Capability.MOUNT
    )
    await work.execute(sa.select(mount.c.id).where(*_this(actor, mount_id)).with_for_update())
    if (await queries.find_mount(work, actor.workspace_id, mount_id)).sync_job_id is None:
        await _start(work, actor, job_id, mount_id, connection.provider, None)
        await work.execute(
            sa.update(mount).where(*_this(actor, mount_id)).values(sync_job_id=job_id)
        )
    return await queries.get_mount(work, actor.workspace_id, mount_id)


async def cancel_sync(work: UnitOfWork, actor: Actor, mount_id: Id) -> queries.MountDetail:
    """Stop the sync of a mount, which writes nothing any more; what it wrote stays.

    Raises NotFoundError.
    """
    mount_row = await queries.find_mount(work, actor.workspace_id, mount_id)
    if mount_row.sync_job_id is not None:
        values = {
            "sync_job_id": None,
            "status": external_resources.MountStatus.ERROR.value,
            "error": queries.CANCELLED,
        }
        await work.execute(sa.update(mount).where(*_this(actor, mount_id)).values(values))
        job_ids = [mount_row.sync_job_id]
        await cancel_executions(work, Family.MOUNT_SYNC, actor.workspace_id, job_ids)
    return await queries.get_mount(work, actor.workspace_id, mount_id)


async def delete_mount(work: UnitOfWork, actor: Actor, mount_id: Id) -> queries.MountDetail:
    """Put a mount into the trash with its item and its entries; the provider keeps everything.

    Raises what `trash_item` raises.
    """
    shown = await cancel_sync(work, actor, mount_id)
    await trash_item(work, actor, shown.item_id)
    return shown


async def _start(
    work: UnitOfWork,
    actor: Actor,
    job_id: Id,
    mount_id: Id,
    provider: ProviderName,
    place: JsonObject | None,
) -> None:
    await accept_job(
        work,
        actor,
        Family.MOUNT_SYNC,
        job_id,
        mount_id,
        summary=f"Sync · {provider.value}",
        input={"mountId": str(mount_id), "place": place},
    )


def _this(actor: Actor, mount_id: Id) -> tuple[sa.ColumnElement[bool], ...]:
    return (mount.c.workspace_id == actor.workspace_id, mount.c.id == mount_id)
