"""Mounts of resources: make, list, read, sync, delete; and imports of resources and forms."""

from api.kernel.awaited_work import Poll
from api.kernel.routing import Access, ApiRequest, Data, Deletes, Router
from api.routers.sources.connections import CALL_SECONDS, INTEGRATIONS, PROVIDER_ERRORS, RESOURCES
from models.core.access.rules import Level, Scope
from models.core.base import Id
from models.core.references.rules import SubjectKind
from models.sources.mounts import commands, queries
from models.sources.mounts.queries import MountedResource, MountResource
from models.sources.provider_calls import NamedResource
from models.sources.resource_imports import commands as import_commands
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
    known = await commands.accept_mount(request.work, request.actor, job_id, body)
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


@router.get(
    MOUNTS,
    access=Access(scopes=[Scope.INTEGRATIONS_READ], level=Level.VIEW),
    calls=queries.list_mounts,
)
async def list_mounts() -> None:
    """List mounts, newest first, without the entries of recursive ones."""


@router.get(MOUNT, access=READ, calls=queries.get_mount)
async def get_mount() -> None:
    """Get a mount, or an entry of one."""


@router.post(
    f"{MOUNT}/sync",
    access=WRITE,
    errors=[*PROVIDER_ERRORS, ConflictError],
    calls=commands.request_sync,
)
async def sync_mount() -> None:
    """Sync a mount now; it also syncs every 15 minutes.

    The answer does not wait for the end: the mount is `syncing` until then.
    """


@router.post(f"{MOUNT}/cancel", access=WRITE, calls=commands.cancel_sync)
async def cancel_mount_sync() -> None:
    """Cancel the sync of a mount; what it has mounted stays. Without one nothing changes."""


@router.delete(MOUNT, access=WRITE, calls=commands.delete_mount, deletes=Deletes(SubjectKind.ITEM))
async def delete_mount() -> None:
    """Put a mount into the trash with its item and entries, for 30 days; the provider keeps all."""


@router.post(
    f"{RESOURCES}/import",
    access=Access(
        scopes=[Scope.RESOURCES_WRITE, Scope.INTEGRATIONS_READ], level=Level.EDIT, idempotent=True
    ),
    errors=PROVIDER_ERRORS,
)
async def import_resource(
    request: ApiRequest, body: import_commands.ImportResource
) -> Data[import_commands.ImportedResource]:
    """Import a resource: a folder with what is in it, a page, a file, or a database of a table.

    Imported again it is refreshed in place: `kept` counts what people changed since, which stays
    as it is. Other types are unsupported. The answer waits for the end for a while; a longer
    import shows what it has made so far, and its `job` is read by its id.
    """
    actor, job_id = request.actor, request.new_id
    await import_commands.accept_import_resource(request.work, actor, job_id, body)

    async def poll(work: UnitOfWork, last: bool) -> import_commands.ImportedResource | None:
        return await import_commands.import_outcome(work, actor, job_id, last=last)

    return request.deferred(poll, within=CALL_SECONDS)


@router.get(
    f"{INTEGRATIONS}/resource-imports/{{resourceImportId}}",
    access=Access(scopes=[Scope.RESOURCES_READ, Scope.INTEGRATIONS_READ]),
    errors=PROVIDER_ERRORS,
)
async def get_resource_import(request: ApiRequest) -> Data[import_commands.ImportedResource]:
    """Get the current state of an import of the caller, by the id of its job."""
    job_id = request.ids["resourceImportId"]
    return Data(await import_commands.get_import_job(request.work, request.actor, job_id))


@router.post(
    f"{RESOURCES}/import-form",
    access=Access(
        scopes=[
            Scope.INTEGRATIONS_READ,
            Scope.RESOURCES_READ,
            Scope.DATABASES_WRITE,
            Scope.VIEWS_WRITE,
        ],
        level=Level.EDIT,
        idempotent=True,
    ),
    errors=PROVIDER_ERRORS,
)
async def import_form(
    request: ApiRequest, body: NamedResource
) -> Data[import_commands.FormImportResult]:
    """Import a form: a database for its answers and a form that asks its questions.

    Every question with a native equivalent is imported; `skipped` names the others. A resource that
    is not a form is unsupported, a form with nothing to import a validation error. The copy keeps
    no link to the provider.
    """
    actor, job_id = request.actor, request.new_id
    await import_commands.accept_form_import(request.work, actor, job_id, body)

    async def poll(work: UnitOfWork, last: bool) -> import_commands.FormImportResult | None:
        return await import_commands.form_outcome(work, actor, job_id, last=last)

    return request.deferred(poll, within=CALL_SECONDS)
