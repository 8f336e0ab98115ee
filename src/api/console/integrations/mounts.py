"""Mounts of a workspace: the list, the page of one, its sync, and its end."""

from starlette.responses import Response

from api.console.forms import paged
from api.console.rendering import page, see_other
from api.console.routing import page_router
from api.console.shell import shell_of
from api.console.words import curl
from api.kernel.routing import Access, ApiRequest, Cursor
from api.routers.sources.connections import INTEGRATIONS
from api.routers.sources.mounts import READ, WRITE
from api.routers.sources.resources import PROVIDER_ERRORS
from models.core.access.rules import Level, Scope
from models.sources.connections.queries import get_connection
from models.sources.mounts import queries
from models.sources.mounts.commands import mounts as commands
from models.sources.mounts.shapes import MountDetail
from runtime.errors import ConflictError, NotFoundError

router = page_router()

PAGE = 50
_ALL = f"{INTEGRATIONS.removeprefix('/v1')}/mounts"
_ONE = f"{_ALL}/{{mountId}}"
_LIST = Access(scopes=[Scope.INTEGRATIONS_READ], level=Level.VIEW)


@router.get(_ALL, access=paged(_LIST))
async def get_mounts(request: ApiRequest, cursor: Cursor = None) -> Response:
    """Look through the mounts, without the entries of recursive ones."""
    turned = request.page("console mounts", PAGE, cursor)
    listed = await queries.list_mounts(request.work, request.actor, turned)
    shell = await shell_of(request)
    call = curl(shell.base, "GET", f"/v1{shell.at('mounts')}?limit={PAGE}")
    return page(request, "mounts.html", shell, listed=listed, cursor=cursor, call=call)


@router.get(_ONE, access=paged(READ))
async def get_mount_page(request: ApiRequest) -> Response:
    """Look at a mount, or an entry of one, and follow its sync."""
    mount_id = request.ids["mountId"]
    mount = await queries.get_mount(request.work, request.actor.workspace_id, mount_id)
    shell = await shell_of(request)
    path = f"/v1{shell.at('mounts', mount_id)}"
    return page(
        request,
        "mount.html",
        shell,
        mount=mount,
        connection=await _label(request, mount),
        calls={
            "Sync it": curl(shell.base, "POST", f"{path}/sync"),
            "Read it": curl(shell.base, "GET", path),
        },
    )


@router.post(f"{_ONE}/sync", access=paged(WRITE), errors=[*PROVIDER_ERRORS, ConflictError])
async def sync(request: ApiRequest) -> Response:
    """Have a worker bring a mount in step with its provider."""
    mount_id, job_id = request.ids["mountId"], request.new_id
    await commands.request_sync(request.work, request.actor, mount_id, job_id)
    return _back(request)


@router.post(f"{_ONE}/cancel", access=paged(WRITE))
async def cancel_sync(request: ApiRequest) -> Response:
    """Cancel a sync."""
    await commands.cancel_sync(request.work, request.actor, request.ids["mountId"])
    return _back(request)


@router.post(f"{_ONE}/delete", access=paged(WRITE))
async def delete_mount_by_form(request: ApiRequest) -> Response:
    """Put a mount into the trash."""
    await commands.delete_mount(request.work, request.actor, request.ids["mountId"])
    return see_other(_path(request))


def _back(request: ApiRequest) -> Response:
    return see_other(f"{_path(request)}/{request.ids['mountId']}")


def _path(request: ApiRequest) -> str:
    return f"/workspaces/{request.workspace_id}/integrations/mounts"


async def _label(request: ApiRequest, mount: MountDetail) -> str | None:
    """The name of the connection, for whom it is shared with."""
    if mount.connection_id is None:
        return None
    try:
        return (await get_connection(request.work, request.actor, mount.connection_id)).label
    except NotFoundError:
        return None
