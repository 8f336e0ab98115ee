"""Resources and forms that are mounted or imported from a page, and what became of that."""

from typing import Literal, TypeVar

from starlette.responses import Response

from api.console.forms import body_of, paged
from api.console.integrations.browsing import Chosen
from api.console.integrations.calls import Outcome, outcome_of
from api.console.rendering import page, see_other
from api.console.routing import page_router
from api.console.shell import shell_of
from api.console.words import curl
from api.kernel.routing import Access, ApiRequest
from api.routers.sources.connections import CONNECTION
from api.routers.sources.resources import PROVIDER_ERRORS
from models.core.access.rules import Level, Scope
from models.core.base import Id
from models.messages.jobs.queries import own_job
from models.sources.connections.queries import get_connection
from models.sources.mounts.commands.mounts import accept_mount
from models.sources.mounts.queries import mount_outcome
from models.sources.mounts.shapes import MountedResource, MountResource
from models.sources.provider_calls.shapes import NamedResource
from models.sources.resource_imports import forms
from models.sources.resource_imports.commands import accept_import_resource, get_import_job
from models.sources.resource_imports.shapes import (
    FormImportResult,
    ImportedResource,
    ImportResource,
)
from runtime.errors import ConflictError
from runtime.families import Family

router = page_router()

_ONE = CONNECTION.removeprefix("/v1")
_MOUNT = Access(
    scopes=[Scope.RESOURCES_WRITE, Scope.INTEGRATIONS_WRITE], level=Level.EDIT, idempotent=True
)
_IMPORT = Access(
    scopes=[Scope.RESOURCES_WRITE, Scope.INTEGRATIONS_READ], level=Level.EDIT, idempotent=True
)
_IMPORT_FORM = Access(
    scopes=[
        Scope.INTEGRATIONS_READ,
        Scope.RESOURCES_READ,
        Scope.DATABASES_WRITE,
        Scope.VIEWS_WRITE,
    ],
    level=Level.EDIT,
    idempotent=True,
)
_LOOK = Access(scopes=[Scope.RESOURCES_READ, Scope.INTEGRATIONS_READ])

T = TypeVar("T")


class Mounted(Chosen):
    """A resource to mount, with what is below it if that is ticked."""

    recursive: Literal["on"] | None = None


@router.post(f"{_ONE}/mount", access=paged(_MOUNT), errors=[*PROVIDER_ERRORS, ConflictError])
async def mount_by_form(request: ApiRequest, body: Mounted) -> Response:
    """Mount a resource, and lead to its item, or to where it will stand."""
    recursive = body.recursive is not None
    fields = body.named(request.ids["connectionId"], recursive=recursive)
    content = body_of(MountResource, fields)
    known = await accept_mount(request.work, request.actor, request.new_id, content)
    if known is not None:
        return see_other(f"/workspaces/{request.workspace_id}/items?parent={known.item.id}")
    return see_other(f"{_path(request)}/mounts/{request.new_id}")


@router.post(f"{_ONE}/import", access=paged(_IMPORT), errors=PROVIDER_ERRORS)
async def import_by_form(request: ApiRequest, body: Chosen) -> Response:
    """Import a resource, and lead to where the outcome will stand."""
    content = body_of(ImportResource, body.named(request.ids["connectionId"]))
    await accept_import_resource(request.work, request.actor, request.new_id, content)
    return see_other(f"{_path(request)}/imports/{request.new_id}")


@router.post(f"{_ONE}/import-form", access=paged(_IMPORT_FORM), errors=PROVIDER_ERRORS)
async def import_form_by_form(request: ApiRequest, body: Chosen) -> Response:
    """Import a form, and lead to where the outcome will stand."""
    content = body_of(NamedResource, body.named(request.ids["connectionId"]))
    await forms.accept_form_import(request.work, request.actor, request.new_id, content)
    return see_other(f"{_path(request)}/form-imports/{request.new_id}")


@router.get(f"{_ONE}/mounts/{{mountJobId}}", access=paged(_LOOK))
async def get_mounting(request: ApiRequest) -> Response:
    """Wait for the item of a resource that is mounted."""
    job_id = request.ids["mountJobId"]

    async def placed() -> MountedResource | None:
        await own_job(request.work, request.actor, Family.MOUNT_SYNC, job_id)
        return await mount_outcome(request.work, request.actor, job_id, last=False)

    outcome = await outcome_of(placed())
    mounted = outcome.value
    path = None if mounted is None else f"mounts/{mounted.mount.id}"
    going = outcome.waits or (mounted is not None and mounted.mount.syncing)
    return await _shown(request, "mounting.html", outcome, going=going, path=path)


@router.get(f"{_ONE}/imports/{{resourceImportId}}", access=paged(_LOOK))
async def get_importing(request: ApiRequest) -> Response:
    """Follow the import of a resource."""
    job_id = request.ids["resourceImportId"]
    outcome: Outcome[ImportedResource] = await outcome_of(
        get_import_job(request.work, request.actor, job_id)
    )
    imported = outcome.value
    going = outcome.waits or (imported is not None and imported.job.completed_at is None)
    path = f"integrations/resource-imports/{job_id}"
    return await _shown(request, "importing.html", outcome, going=going, path=path)


@router.get(f"{_ONE}/form-imports/{{formImportId}}", access=paged(_LOOK))
async def get_importing_form(request: ApiRequest) -> Response:
    """Follow the import of a form."""
    work, actor, job_id = request.work, request.actor, request.ids["formImportId"]

    async def imported() -> FormImportResult | None:
        await own_job(work, actor, Family.FORM_IMPORT, job_id)
        return await forms.form_outcome(work, actor, job_id, last=False)

    outcome = await outcome_of(imported())
    return await _shown(request, "importing_form.html", outcome, going=outcome.waits, path=None)


async def _shown(
    request: ApiRequest, template: str, outcome: Outcome[T], *, going: bool, path: str | None
) -> Response:
    connection_id: Id = request.ids["connectionId"]
    connection = await get_connection(request.work, request.actor, connection_id)
    shell = await shell_of(request)
    at = f"/v1/workspaces/{request.workspace_id}"
    call = None if path is None else curl(shell.base, "GET", f"{at}/{path}")
    return page(
        request, template, shell, connection=connection, outcome=outcome, going=going, call=call
    )


def _path(request: ApiRequest) -> str:
    path = f"/workspaces/{request.workspace_id}/integrations"
    return f"{path}/connections/{request.ids['connectionId']}"
