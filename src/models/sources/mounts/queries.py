"""Reading mounts."""

from typing import Any

from sqlalchemy import Select, select

from models.content.items.joins import live_item_of
from models.content.items.queries import closed_items, get_item, placement_of
from models.core.access.rules import Actor
from models.core.base import Id
from models.core.pagination import PageRequest
from models.messages.jobs.queries import find_job, refusal_of
from models.messages.jobs.rules import OPEN_JOB
from models.sources.mounts.rows import MountRow
from models.sources.mounts.shapes import MountDetail, MountedResource, MountList
from models.sources.mounts.tables import mount
from runtime.database import UnitOfWork
from runtime.errors import InProgressError, NotFoundError, UpstreamError
from runtime.families import Family

visible = placement_of(mount)
"""The placement of a mount: `await visible(work, workspace_ids, mount_id, user_id)`."""


def mount_detail(row: MountRow) -> MountDetail:
    """A row as the wire shows it."""
    detail = MountDetail.model_validate(row)
    detail.syncing = row.sync_job_id is not None
    return detail


async def find_mount(work: UnitOfWork, workspace_id: Id, mount_id: Id) -> MountRow:
    """A mount whose item is not in the trash. Raises NotFoundError."""
    found = await work.first(_mounts(workspace_id).where(mount.c.id == mount_id), of=MountRow)
    if found is None:
        raise NotFoundError("mount")
    return found


async def get_mount(work: UnitOfWork, workspace_id: Id, mount_id: Id) -> MountDetail:
    """A mount. Raises NotFoundError."""
    return mount_detail(await find_mount(work, workspace_id, mount_id))


async def list_mounts(work: UnitOfWork, actor: Actor, page: PageRequest) -> MountList:
    """The mounts that the actor sees, without their entries, newest first."""
    statement = _mounts(actor.workspace_id).where(
        mount.c.root_mount_id.is_(None),
        mount.c.item_id.not_in(select(closed_items(actor).c.id)),
    )
    shown = await page.descending(work, statement, mount.c.created_at, mount.c.id, of=MountRow)
    return MountList(mounts=[mount_detail(row) for row in shown.items], cursor=shown.cursor)


async def mounted_resource(work: UnitOfWork, workspace_id: Id, mount_id: Id) -> MountedResource:
    """A mount with its item. Raises NotFoundError."""
    detail = await get_mount(work, workspace_id, mount_id)
    placed = await get_item(work, workspace_id, detail.item_id)
    return MountedResource(resource=detail.resource, item=placed, mount=detail)


async def mount_outcome(
    work: UnitOfWork, actor: Actor, job_id: Id, *, last: bool
) -> MountedResource | None:
    """The resource a job has mounted, as soon as it has a place; None while it has none.

    Raises why nothing was mounted, and InProgressError when this is the last time to ask.
    """
    job = await find_job(work, actor.workspace_id, Family.MOUNT_SYNC, job_id)
    placed = (job.result or job.progress).get("mountId")
    if placed is not None:
        return await mounted_resource(work, actor.workspace_id, Id(placed))
    if job.status not in OPEN_JOB:
        raise refusal_of(job) or UpstreamError("The provider could not be asked. Try again.")
    if last:
        raise InProgressError("The provider takes long to answer. Ask again with the same key.")
    return None


def _mounts(workspace_id: Id) -> Select[Any]:
    return select(mount).join(*live_item_of(mount)).where(mount.c.workspace_id == workspace_id)
