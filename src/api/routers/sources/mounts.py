"""Mounts: make, list, read, sync, cancel, delete."""

from api.kernel.deferred import Poll
from api.kernel.routing import Access, ApiRequest, Cursor, Data, Limit, Router
from api.routers.sources.resources import CALL_SECONDS, PROVIDER_ERRORS, RESOURCES
from models.core.access.rules import Level, Scope
from models.core.base import Id
from models.sources.mounts import queries
from models.sources.mounts.commands import mounts
from models.sources.mounts.shapes import (
    MountDetail,
    MountedResource,
    MountList,
    MountResource,
)
from runtime.database import UnitOfWork
from runtime.errors import ConflictError

router = Router(tags=["integrations"])

MOUNTS = "/v1/workspaces/{workspaceId}/mounts"
MOUNT = f"{MOUNTS}/{{mountId}}"

READ = Access(scopes=[Scope.INTEGRATIONS_READ], resource="mount", level=Level.VIEW)
WRITE = Access(
    scopes=[Scope.RESOURCES_WRITE, Scope.INTEGRATIONS_WRITE],
    resource="mount",
    level=Level.EDIT,
    idempotent=True,
)


@router.post(
    f"{RESOURCES}/mount",
    access=Access(
        scopes=[Scope.RESOURCES_WRITE, Scope.INTEGRATIONS_WRITE], level=Level.EDIT, idempotent=True
    ),
    status_code=201,
    statuses=[200],
    errors=[*PROVIDER_ERRORS, ConflictError],
)
async def mount_resource(request: ApiRequest, body: MountResource) -> Data[MountedResource]:
    """Mount a resource: it gets an item, and is kept in step with its provider.

    With `recursive` so does everything below it, at most 20,000 entries: the answer does not wait
    for them, `entries` counts them while `syncing`. The same resource below the same parent is
    the same mount, answered with 200.
    """
    job_id = request.new_id
    known = await mounts.accept_mount(request.work, request.actor, job_id, body)
    if known is not None:
        request.status = 200
        return Data(known)

    return request.deferred(_placed(request, job_id), within=CALL_SECONDS)


def _placed(request: ApiRequest, job_id: Id) -> Poll[MountedResource]:
    """The mount of a job, as soon as it has a place; 200 for one that was there."""
    actor = request.actor

    async def poll(work: UnitOfWork, last: bool) -> MountedResource | None:
        found = await queries.mount_outcome(work, actor, job_id, last=last)
        if found is not None and found.mount.id != job_id:
            request.status = 200
        return found

    return poll


@router.get(MOUNTS, access=Access(scopes=[Scope.INTEGRATIONS_READ], level=Level.VIEW))
async def list_mounts(
    request: ApiRequest, limit: Limit = 30, cursor: Cursor = None
) -> Data[MountList]:
    """List mounts, newest first, without the entries of recursive ones."""
    page = request.page("mounts", limit, cursor)
    return Data(await queries.list_mounts(request.work, request.actor, page))


@router.get(MOUNT, access=READ)
async def get_mount(request: ApiRequest) -> Data[MountDetail]:
    """Get a mount, or an entry of one."""
    mount_id = request.ids["mountId"]
    return Data(await queries.get_mount(request.work, request.actor.workspace_id, mount_id))


@router.post(f"{MOUNT}/sync", access=WRITE, errors=[*PROVIDER_ERRORS, ConflictError])
async def sync_mount(request: ApiRequest) -> Data[MountDetail]:
    """Sync a mount now; it is synced every 15 minutes by itself.

    The answer does not wait for the end: the mount is `syncing` until then.
    """
    mount_id, job_id = request.ids["mountId"], request.new_id
    return Data(await mounts.request_sync(request.work, request.actor, mount_id, job_id))


@router.post(f"{MOUNT}/cancel", access=WRITE)
async def cancel_mount_sync(request: ApiRequest) -> Data[MountDetail]:
    """Cancel the sync of a mount; what it has mounted stays. Without one nothing changes."""
    return Data(await mounts.cancel_sync(request.work, request.actor, request.ids["mountId"]))


@router.delete(MOUNT, access=WRITE)
async def delete_mount(request: ApiRequest) -> Data[MountDetail]:
    """Put a mount into the trash with its item and entries, for 30 days; the provider keeps all."""
    return Data(await mounts.delete_mount(request.work, request.actor, request.ids["mountId"]))
