"""Stored files: bytes in, bytes out, and the rows that say what they are."""

from typing import Annotated

from pydantic import Field
from starlette.responses import Response

from api.kernel.browsers import NoSubresourceError, refuse_subresource
from api.kernel.representations import RangeNotSatisfiableError, download
from api.kernel.routing import Access, ApiRequest, Data, Router
from models.content.files import commands, queries
from models.content.files.queries import StoredFile
from models.content.files.rules import UNKNOWN_TYPE
from models.core.access.rules import Level, Scope
from models.workspace.share_links.content import open_asset
from runtime.ids import parse_id

router = Router(tags=["files"])

_FILES = "/v1/workspaces/{workspaceId}/files"
_ASSET = "/v1/assets/{fileId}/{assetToken}"


@router.post(
    _FILES,
    access=Access(
        scopes=[Scope.FILES_WRITE], level=Level.EDIT, idempotent=True, upload=True, cookie=True
    ),
    status_code=201,
)
async def upload_file(
    request: ApiRequest, name: Annotated[str | None, Field(max_length=1000)] = None
) -> Data[StoredFile]:
    """Store a file.

    Send its bytes as they are, with its name in `name` or `X-File-Name`, or as the only part, named
    `file`, of a form. A guest needs edit access to some item.
    """
    return Data(
        await commands.record_upload(
            request.work, request.actor, request.services.keys, request.new_id, request.upload, name
        )
    )


@router.get(_FILES, access=Access(scopes=[Scope.FILES_READ]), calls=queries.list_files)
async def list_files() -> None:
    """List files, newest first."""


@router.get(
    f"{_FILES}/{{fileId}}",
    access=Access(scopes=[Scope.FILES_READ], resource="file", level=Level.VIEW, cookie=True),
    calls=queries.stored_file,
)
async def get_file() -> None:
    """Get the metadata of a file."""


@router.delete(
    f"{_FILES}/{{fileId}}",
    access=Access(scopes=[Scope.FILES_WRITE], resource="file", level=Level.EDIT, idempotent=True),
)
async def delete_file(request: ApiRequest) -> Data[StoredFile]:
    """Put a file in the trash for 30 days, with the item that places it; its URL stops at once."""
    file_id, keys = request.ids["fileId"], request.services.keys
    return Data(
        await commands.delete_file(request.work, request.actor, keys, file_id, request.placement)
    )


@router.get(
    _ASSET,
    access=Access(credential="none"),
    errors=[NoSubresourceError, RangeNotSatisfiableError],
    media_type=UNKNOWN_TYPE,
    statuses=[206, 304],
)
async def get_asset(request: ApiRequest) -> Response:
    """Download a file; one range may be asked for."""
    refuse_subresource(request.headers)
    file_id, token = parse_id(request.path_params["fileId"]), request.path_params["assetToken"]
    return download(request, await open_asset(request.work, request.services.keys, file_id, token))


@router.head(
    _ASSET,
    access=Access(credential="none"),
    errors=[NoSubresourceError],
    media_type=UNKNOWN_TYPE,
    statuses=[304],
)
async def head_asset(request: ApiRequest) -> Response:
    """Get the headers of a download."""
    return await get_asset(request)
