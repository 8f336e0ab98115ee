"""Resources of a connection: browsed and read through a worker, mounted and imported."""

import json
from collections.abc import Awaitable
from dataclasses import dataclass, replace
from typing import Annotated, Generic, Literal, TypeVar

from pydantic import Field
from starlette.responses import Response

from api.console.entered import Form, given, read_as
from api.console.forms import paged, read_json
from api.console.rendering import console_page, page, see_other, shell_of
from api.console.resource_pages import act
from api.console.routing import page_router
from api.console.words import queried
from api.kernel.operation import Endpoint
from api.kernel.routing import Access, ApiRequest, Cursor, QueryId
from api.routers.sources import connections as api
from api.routers.sources import mounts as mounts_api
from api.routers.sources.connections import CONNECTION, INTEGRATIONS, PROVIDER_ERRORS
from api.routers.sources.mounts import READ
from models.core.access.rules import Level, Scope
from models.core.base import Id
from models.messages.jobs.store import own_job
from models.sources import provider_calls
from models.sources.connections.providers import PROVIDERS
from models.sources.connections.store import get_connection
from models.sources.external_resources.rules.resources import Capability, ExternalId
from models.sources.mounts import queries
from models.sources.mounts.commands import accept_mount
from models.sources.mounts.queries import MountDetail, MountedResource, MountResource, mount_outcome
from models.sources.resource_imports import commands
from runtime.errors import ConflictError, InProgressError, NotFoundError, PlatformError
from runtime.temporal.workflow_kinds import WorkflowKind

router = page_router()

PAGE = 50
_ONE = CONNECTION.removeprefix("/v1")
_BROWSE = Access(scopes=[Scope.INTEGRATIONS_READ])
_READ = Access(scopes=[Scope.RESOURCES_READ, Scope.INTEGRATIONS_READ])


class TreeLevel(Form):
    """A level of the tree of a connection, or a search in it, and the end of the page before."""

    parent: str | None = None
    q: str | None = None
    cursor: str | None = None


class Chosen(Form):
    """A resource as the page before has shown it, in JSON."""

    resource: str

    def named(self, connection_id: Id, **others: object) -> dict[str, object]:
        """The body of an operation on the resource. Raises ValidationError."""
        resource = read_json("resource", self.resource)
        return {"connectionId": str(connection_id), "resource": resource, **others}


@router.get(f"{_ONE}/browse", access=paged(_BROWSE), errors=PROVIDER_ERRORS)
async def get_listing(
    request: ApiRequest,
    parent: ExternalId | None = None,
    q: Annotated[str, Field(max_length=200)] | None = None,
    cursor: Cursor = None,
    call: QueryId | None = None,
) -> Response:
    """Look through what is known below a resource, or wait for a worker that asks for it."""
    question = _question(request, TreeLevel(parent=parent, q=q, cursor=cursor))
    if call is not None:
        outcome = await outcome_of(_browsed(request, question, call))
        if not isinstance(outcome.refusal, NotFoundError):
            return await _listing(request, question, outcome, call)
    known = await provider_calls.known_page(
        request.work, request.actor, request.services.keys, question
    )
    return await _listing(request, question, Outcome(known), None)


@router.post(
    f"{_ONE}/browse",
    access=paged(replace(_BROWSE, idempotent=True, safe=True)),
    errors=PROVIDER_ERRORS,
)
async def browse_by_form(request: ApiRequest, body: TreeLevel) -> Response:
    """Have a worker ask for what is below a resource, at the top, or has a name."""
    question, keys, call_id = _question(request, body), request.services.keys, request.new_id
    known = await provider_calls.accept_browse(request.work, request.actor, keys, call_id, question)
    call = call_id if known is None else None
    place = {"parent": body.parent, "q": body.q, "cursor": body.cursor}
    return see_other(queried(request.url.path, **place, call=call))


@router.post(
    f"{_ONE}/read",
    access=paged(Access(scopes=_READ.scopes, idempotent=True, safe=True)),
    errors=PROVIDER_ERRORS,
)
async def read_by_form(request: ApiRequest, body: Chosen) -> Response:
    """Have a worker read a resource, and lead to where its content will stand."""
    connection_id = request.ids["connectionId"]
    resource = read_as(provider_calls.NamedResource, given(body.named(connection_id)))
    await provider_calls.accept_read(request.work, request.actor, request.new_id, resource)
    return see_other(f"{_path(request)}/reads/{request.new_id}")


@router.get(f"{_ONE}/reads/{{readId}}", access=paged(_READ))
async def get_content(request: ApiRequest) -> Response:
    """Look at what stands in a resource."""
    work, actor, connection_id = request.work, request.actor, request.ids["connectionId"]
    read_id = request.ids["readId"]
    connection = await get_connection(work, actor, connection_id)
    question = await provider_calls.asked_by(
        work, actor, connection_id, read_id, provider_calls.CallKind.READ
    )
    resource = question["resource"]
    outcome = await outcome_of(provider_calls.read_outcome(work, actor, read_id, last=False))
    body = {"connectionId": str(connection_id), "resource": resource}
    return await console_page(
        request,
        "resource.html",
        (api.read_resource, body),
        connection=connection,
        resource=resource,
        chosen=json.dumps(resource),
        outcome=outcome,
        text=_text(outcome.value),
    )


def _question(request: ApiRequest, level: TreeLevel) -> provider_calls.BrowseConnection:
    """The body of the operation that a level stands for. Raises ValidationError."""
    fields = {
        "connectionId": str(request.ids["connectionId"]),
        "parentExternalId": level.parent,
        "query": level.q or None,
        "cursor": level.cursor,
        "limit": PAGE,
    }
    return read_as(provider_calls.BrowseConnection, given(fields))


async def _browsed(
    request: ApiRequest, question: provider_calls.BrowseConnection, call_id: Id
) -> provider_calls.BrowsedResources | None:
    work, actor, keys = request.work, request.actor, request.services.keys
    await provider_calls.asked_by(
        work, actor, question.connection_id, call_id, provider_calls.CallKind.BROWSE
    )
    return await provider_calls.browse_outcome(work, actor, keys, call_id, question, last=False)


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Outcome(Generic[T]):
    """The result of a call, or why there is none; neither while it goes on."""

    value: T | None = None
    refusal: PlatformError | None = None

    @property
    def waits(self) -> bool:
        return self.value is None and self.refusal is None


async def _listing(
    request: ApiRequest,
    question: provider_calls.BrowseConnection,
    outcome: Outcome[provider_calls.BrowsedResources],
    call: Id | None,
) -> Response:
    connection = await get_connection(request.work, request.actor, question.connection_id)
    level = {"parent": question.parent_external_id, "q": question.query}
    answer = outcome.value
    body = question.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"cursor"})
    return await console_page(
        request,
        "browse.html",
        (api.browse_connection, body),
        connection=connection,
        searches=Capability.SEARCH in PROVIDERS[connection.provider].capabilities,
        level=level,
        cursor=question.cursor,
        following=None if answer is None else answer.cursor,
        outcome=outcome,
        waits=call is not None and outcome.waits,
        resources=[(one, json.dumps(one)) for one in (answer.resources if answer else [])],
        live=queried(request.url.path, **level, cursor=question.cursor, call=call),
    )


def _text(content: provider_calls.ResourceContent | None) -> str:
    """The content of a resource as text, which a page shows as it is."""
    if content is None or content.content is None:
        return ""
    whole = content.content
    return whole if isinstance(whole, str) else json.dumps(whole, indent=2, ensure_ascii=False)


def _path(request: ApiRequest) -> str:
    path = f"/workspaces/{request.workspace_id}/integrations"
    return f"{path}/connections/{request.ids['connectionId']}"


async def outcome_of(result: Awaitable[T | None]) -> Outcome[T]:
    """The outcome as it is now. A refusal of the provider is a part of the page, not its status."""
    try:
        return Outcome(await result)
    except InProgressError:
        return Outcome()
    except PlatformError as refusal:
        return Outcome(refusal=refusal)


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


class Mounted(Chosen):
    """A resource to mount, with what is below it if that is ticked."""

    recursive: Literal["on"] | None = None


@router.post(f"{_ONE}/mount", access=paged(_MOUNT), errors=[*PROVIDER_ERRORS, ConflictError])
async def mount_by_form(request: ApiRequest, body: Mounted) -> Response:
    """Mount a resource, and lead to its item, or to where it will stand."""
    recursive = body.recursive is not None
    fields = body.named(request.ids["connectionId"], recursive=recursive)
    content = read_as(MountResource, given(fields))
    known = await accept_mount(request.work, request.actor, request.new_id, content)
    if known is not None:
        return see_other(f"/workspaces/{request.workspace_id}/items?parent={known.item.id}")
    return see_other(f"{_path(request)}/mounts/{request.new_id}")


@router.post(f"{_ONE}/import", access=paged(_IMPORT), errors=PROVIDER_ERRORS)
async def import_by_form(request: ApiRequest, body: Chosen) -> Response:
    """Import a resource, and lead to where the outcome will stand."""
    content = read_as(commands.ImportResource, given(body.named(request.ids["connectionId"])))
    await commands.accept_import_resource(request.work, request.actor, request.new_id, content)
    return see_other(f"{_path(request)}/imports/{request.new_id}")


@router.post(f"{_ONE}/import-form", access=paged(_IMPORT_FORM), errors=PROVIDER_ERRORS)
async def import_form_by_form(request: ApiRequest, body: Chosen) -> Response:
    """Import a form, and lead to where the outcome will stand."""
    content = read_as(provider_calls.NamedResource, given(body.named(request.ids["connectionId"])))
    await commands.accept_form_import(request.work, request.actor, request.new_id, content)
    return see_other(f"{_path(request)}/form-imports/{request.new_id}")


@router.get(f"{_ONE}/mounts/{{mountJobId}}", access=paged(_READ))
async def get_mounting(request: ApiRequest) -> Response:
    """Wait for the item of a resource that is mounted."""
    job_id = request.ids["mountJobId"]

    async def placed() -> MountedResource | None:
        await own_job(request.work, request.actor, WorkflowKind.MOUNT_SYNC, job_id)
        return await mount_outcome(request.work, request.actor, job_id, last=False)

    outcome = await outcome_of(placed())
    mounted = outcome.value
    going = outcome.waits or (mounted is not None and mounted.mount.syncing)
    if mounted is None:
        return await _shown(request, "mounting.html", outcome, going=going)
    ids = {"mount_id": mounted.mount.id}
    operation = mounts_api.get_mount
    return await _shown(request, "mounting.html", outcome, operation, going=going, **ids)


@router.get(f"{_ONE}/imports/{{resourceImportId}}", access=paged(_READ))
async def get_importing(request: ApiRequest) -> Response:
    """Follow the import of a resource."""
    job_id = request.ids["resourceImportId"]
    outcome: Outcome[commands.ImportedResource] = await outcome_of(
        commands.get_import_job(request.work, request.actor, job_id)
    )
    imported = outcome.value
    going = outcome.waits or (imported is not None and imported.job.completed_at is None)
    operation = mounts_api.get_resource_import
    return await _shown(request, "importing.html", outcome, operation, going=going)


@router.get(f"{_ONE}/form-imports/{{formImportId}}", access=paged(_READ))
async def get_importing_form(request: ApiRequest) -> Response:
    """Follow the import of a form."""
    work, actor, job_id = request.work, request.actor, request.ids["formImportId"]

    async def imported() -> commands.FormImportResult | None:
        await own_job(work, actor, WorkflowKind.FORM_IMPORT, job_id)
        return await commands.form_outcome(work, actor, job_id, last=False)

    outcome = await outcome_of(imported())
    return await _shown(request, "importing_form.html", outcome, going=outcome.waits)


async def _shown(
    request: ApiRequest,
    template: str,
    outcome: Outcome[T],
    *operations: Endpoint,
    going: bool,
    **ids: object,
) -> Response:
    connection_id: Id = request.ids["connectionId"]
    connection = await get_connection(request.work, request.actor, connection_id)
    shell = await shell_of(request)
    return page(
        request,
        template,
        shell,
        connection=connection,
        outcome=outcome,
        going=going,
        api=shell.calls(*operations, **ids),
    )


_ALL_MOUNTS = f"{INTEGRATIONS.removeprefix('/v1')}/mounts"

_ONE_MOUNT = f"{_ALL_MOUNTS}/{{mountId}}"

_LIST_MOUNTS = Access(scopes=[Scope.INTEGRATIONS_READ], level=Level.VIEW)


@router.get(_ALL_MOUNTS, access=paged(_LIST_MOUNTS))
async def get_mounts(request: ApiRequest, cursor: Cursor = None) -> Response:
    """Look through the mounts, without the entries of recursive ones."""
    turned = request.page("console mounts", PAGE, cursor)
    listed = await queries.list_mounts(request.work, request.actor, turned)
    return await console_page(
        request,
        "mounts.html",
        (mounts_api.list_mounts, {"limit": PAGE}),
        mounts_api.mount_resource,
        listed=listed,
        cursor=cursor,
    )


@router.get(_ONE_MOUNT, access=paged(READ))
async def get_mount_page(request: ApiRequest) -> Response:
    """Look at a mount, or an entry of one, and follow its sync."""
    mount_id = request.ids["mountId"]
    mount = await queries.get_mount(request.work, request.actor.workspace_id, mount_id)
    return await console_page(
        request,
        "mount.html",
        mounts_api.get_mount,
        mounts_api.sync_mount,
        mounts_api.delete_mount,
        mount=mount,
        connection=await _label(request, mount),
    )


act(router, f"{_ONE_MOUNT}/sync", mounts_api.sync_mount, then=_ONE_MOUNT)


act(router, f"{_ONE_MOUNT}/cancel", mounts_api.cancel_mount_sync, then=_ONE_MOUNT)


act(router, f"{_ONE_MOUNT}/delete", mounts_api.delete_mount, then=_ALL_MOUNTS)


async def _label(request: ApiRequest, mount: MountDetail) -> str | None:
    """The name of the connection, for whom it is shared with."""
    if mount.connection_id is None:
        return None
    try:
        return (await get_connection(request.work, request.actor, mount.connection_id)).label
    except NotFoundError:
        return None
