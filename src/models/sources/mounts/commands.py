"""Mounting resources, their schedules, asking for syncs, and taking mounts away."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

import sqlalchemy as sa

from models.content.items.commands import check_parent, create_item_for, trash_item
from models.content.items.joins import ITEM, live_item_of
from models.content.items.rules import ItemKind
from models.core.access.rules import Actor, Level
from models.core.base import Id, JsonObject
from models.core.lifecycle.commands import cancel_executions, stand_in_line
from models.core.schedules.commands import ScheduleTable, announce, follow, scheduled, set_next_run
from models.core.schedules.timetables import DesiredSchedule, PassedOverCounts, due_run_id, title_of
from models.messages.jobs.rules import OPEN_JOB
from models.messages.jobs.store import accept_job, find_job, record_job, start_request
from models.people.workspaces import live_workspace_of
from models.sources.connections.providers import ProviderName
from models.sources.external_resources.rules import resources as external_resources
from models.sources.mounts import queries
from models.sources.mounts.queries import SYNC_TIMING, MountRow, mount
from models.sources.provider_calls import usable_connection
from runtime.database import UnitOfWork
from runtime.errors import ConflictError
from runtime.ids import new_id
from runtime.temporal.outbox import StartRequest
from runtime.temporal.workflow_kinds import WorkflowKind

ARCHIVED = "The item of the mount is archived."

_SYNCED = mount.c.root_mount_id.is_(None) & mount.c.connection_id.is_not(None)
"""Links are never synced; entries are with their root."""

_SCHEDULED = (
    sa.select(
        mount.c.id,
        mount.c.workspace_id,
        mount.c.next_run_at,
        mount.c.skipped_fires,
        mount.c.missed_fires,
        ITEM.title.label("label"),
        ITEM.archived,
    )
    .join(*live_item_of(mount))
    .join(*live_workspace_of(mount))
    .where(_SYNCED)
)


class _Row(Protocol):
    id: Id
    workspace_id: Id
    label: str
    archived: bool
    next_run_at: datetime | None
    skipped_fires: int
    missed_fires: int


def _read(row: _Row) -> DesiredSchedule:
    return DesiredSchedule(
        workflow_kind=WorkflowKind.MOUNT_SCHEDULE,
        subject_id=row.id,
        workspace_id=row.workspace_id,
        title=title_of(row.label, "sync"),
        timing=SYNC_TIMING,
        paused=ARCHIVED if row.archived else None,
        next_run_at=row.next_run_at,
        passed_over=PassedOverCounts(row.skipped_fires, row.missed_fires),
    )


MOUNT_SCHEDULES = ScheduleTable(mount, WorkflowKind.MOUNT_SCHEDULE, _SCHEDULED, _read, _SYNCED)


async def mounts_placed(work: UnitOfWork, workspace_id: Id, mount_ids: Sequence[Id]) -> None:
    """Update schedules after items were trashed, archived or restored."""
    mine = mount.c.workspace_id == workspace_id
    await announce(work, MOUNT_SCHEDULES, mine & mount.c.id.in_(mount_ids))


async def mounts_closed(work: UnitOfWork, workspace_id: Id) -> None:
    """Stop the schedules of a deleted workspace."""
    await announce(work, MOUNT_SCHEDULES, mount.c.workspace_id == workspace_id)


@dataclass(frozen=True, slots=True)
class DueSync:
    """An open sync of a due time, and the request that starts it in Temporal."""

    job_id: Id
    workspace_id: Id
    request: StartRequest


async def fire_sync(work: UnitOfWork, mount_id: Id, due: datetime) -> DueSync | None:
    """The sync of a due time that has come, which the caller starts and waits for.

    None when there is nothing to wait for: the schedule is gone or paused, the sync has ended
    already, or another one is open, which then counts for the due time too.
    """
    schedule = await scheduled(work, MOUNT_SCHEDULES, mount_id)
    if schedule is None:
        return None
    await set_next_run(work, MOUNT_SCHEDULES, mount_id, schedule.next_after(work.now))
    if schedule.paused is not None:
        return None
    conditions = (mount.c.workspace_id == schedule.workspace_id, mount.c.id == mount_id)
    row = await work.first(sa.select(mount).where(*conditions).with_for_update(), of=MountRow)
    if row is None or row.created_by_user_id is None:
        return None
    job_id = due_run_id(schedule.schedule_id, due)
    if row.sync_job_id is None:
        given = {"mountId": str(mount_id), "place": None}
        workspace_id, user_id = schedule.workspace_id, row.created_by_user_id
        workflow_kind = WorkflowKind.MOUNT_SYNC
        if await record_job(work, workspace_id, user_id, workflow_kind, job_id, mount_id, given):
            await work.execute(sa.update(mount).where(*conditions).values(sync_job_id=job_id))
            await stand_in_line(work, workflow_kind, workspace_id, job_id, _request(mount_id))
    elif row.sync_job_id != job_id:
        return None
    job = await find_job(work, schedule.workspace_id, WorkflowKind.MOUNT_SYNC, job_id)
    if job.status not in OPEN_JOB:
        return None
    return DueSync(job_id, schedule.workspace_id, _request(mount_id))


def _request(mount_id: Id) -> StartRequest:
    return start_request(mount_id, "Sync", "schedule")


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
        await cancel_executions(work, WorkflowKind.MOUNT_SYNC, actor.workspace_id, job_ids)
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
        WorkflowKind.MOUNT_SYNC,
        job_id,
        mount_id,
        summary=f"Sync · {provider.value}",
        input={"mountId": str(mount_id), "place": place},
    )


def _this(actor: Actor, mount_id: Id) -> tuple[sa.ColumnElement[bool], ...]:
    return (mount.c.workspace_id == actor.workspace_id, mount.c.id == mount_id)
