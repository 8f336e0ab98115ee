"""Surfaces: read and replace their content, change single blocks, comment.

A canvas asks for `canvas:read` and `canvas:write` where other surfaces ask for `surfaces:*` and
`blocks:*`.
"""

from uuid import UUID

from api.kernel.routing import Access, ApiRequest, Data, IfVersion, Router
from models.content.surfaces import blocks, commands, queries, shapes
from models.core.access.rules import Level, Scope
from models.data.records import commands as record_contents
from runtime.errors import ConflictError

router = Router(tags=["surfaces"])

SURFACE = "/v1/surfaces/{surfaceId}"
BLOCKS = f"{SURFACE}/blocks"
BLOCK = f"{BLOCKS}/{{blockId}}"
COMMENTS = f"{SURFACE}/comments"
COMMENT = f"{COMMENTS}/{{commentId}}"

READ = Access(
    any_scope=[Scope.SURFACES_READ, Scope.CANVAS_READ],
    resource="surface",
    level=Level.VIEW,
    cookie=True,
)
WRITE = Access(
    any_scope=[Scope.SURFACES_WRITE, Scope.CANVAS_WRITE],
    resource="surface",
    level=Level.EDIT,
    idempotent=True,
)
READ_BLOCKS = Access(
    any_scope=[Scope.BLOCKS_READ, Scope.CANVAS_READ],
    resource="surface",
    level=Level.VIEW,
    cookie=True,
)
WRITE_BLOCKS = Access(
    any_scope=[Scope.BLOCKS_WRITE, Scope.CANVAS_WRITE],
    resource="surface",
    level=Level.EDIT,
    idempotent=True,
    cookie=True,
)
COMMENTING = Access(
    scopes=[Scope.BLOCKS_COMMENT], resource="surface", level=Level.COMMENT, idempotent=True
)


@router.get(SURFACE, access=READ, calls=queries.get_surface)
async def get_surface() -> None:
    """Get a surface with all its blocks."""


@router.put(
    SURFACE, access=WRITE, batch=True, errors=[ConflictError], calls=commands.replace_surface
)
async def replace_surface() -> None:
    """Replace the content of a surface.

    Blocks whose ids are on the surface stay the same blocks, new ids make new blocks, and blocks
    that are not named are deleted. With `If-Match: <version>` or `expectedVersion` a surface that
    was changed since is left unchanged.
    """


@router.get(BLOCKS, access=READ_BLOCKS, calls=queries.list_blocks)
async def list_blocks() -> None:
    """List the blocks at the top of a surface, or those directly in one block, in order."""


@router.post(
    BLOCKS,
    access=WRITE_BLOCKS,
    status_code=201,
    batch=True,
    errors=[ConflictError],
    calls=blocks.add_blocks,
)
async def add_blocks() -> None:
    """Add one block or many, after the existing ones or behind one of them."""


@router.get(BLOCK, access=READ_BLOCKS)
async def get_block(request: ApiRequest) -> Data[shapes.BlockDetail]:
    """Get a block."""
    surface_id, block_id = _block(request)
    return Data(await queries.get_block(request.work, request.actor, surface_id, block_id))


@router.patch(BLOCK, access=WRITE_BLOCKS, errors=[ConflictError])
async def update_block(
    request: ApiRequest, body: shapes.UpdateBlock, if_match: IfVersion = None
) -> Data[shapes.ChangedBlock]:
    """Change a block, or move it with what is nested in it."""
    surface_id, block_id = _block(request)
    return Data(
        await blocks.update_block(request.work, request.actor, surface_id, block_id, body, if_match)
    )


@router.delete(BLOCK, access=WRITE_BLOCKS, errors=[ConflictError])
async def delete_block(
    request: ApiRequest, if_match: IfVersion = None
) -> Data[shapes.DeletedBlock]:
    """Delete a block with what is nested in it."""
    surface_id, block_id = _block(request)
    return Data(
        await blocks.delete_block(request.work, request.actor, surface_id, block_id, if_match)
    )


@router.get(COMMENTS, access=READ_BLOCKS, calls=queries.list_comments)
async def list_surface_comments() -> None:
    """List comments, oldest first: all, the ones on one block, or the ones of one thread."""


@router.post(COMMENTS, access=COMMENTING, status_code=201, calls=commands.create_comment)
async def create_surface_comment() -> None:
    """Comment on a surface or a block, or reply to a thread."""


@router.patch(COMMENT, access=COMMENTING, calls=commands.update_comment)
async def update_surface_comment() -> None:
    """Change one's own comment, or resolve or reopen a thread."""


@router.delete(COMMENT, access=COMMENTING, calls=commands.delete_comment)
async def delete_surface_comment() -> None:
    """Delete one's own comment, or any as a manager; the first one with its whole thread."""


@router.post(
    "/v1/records/{recordId}/content-surface",
    access=Access(
        scopes=[Scope.RECORDS_WRITE, Scope.SURFACES_WRITE],
        resource="record",
        level=Level.EDIT,
        idempotent=True,
    ),
    calls=record_contents.content_surface,
)
async def open_content_surface() -> None:
    """Get the content of a record, created if it has none.

    `contentSurfaceId` of the record names it from then on.
    """


def _block(request: ApiRequest) -> tuple[UUID, UUID]:
    return request.ids["surfaceId"], request.ids["blockId"]
