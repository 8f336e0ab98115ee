"""Surfaces: read and replace their content, change single blocks, comment.

A canvas asks for `canvas:read` and `canvas:write` where other surfaces ask for `surfaces:*` and
`blocks:*`.
"""

from uuid import UUID

from api.kernel.routing import Access, ApiRequest, Cursor, Data, IfVersion, Limit, QueryId, Router
from models.content.surfaces import blocks, commands, queries
from models.content.surfaces.shapes import (
    AddBlocks,
    AddedBlocks,
    BlockDetail,
    BlockList,
    ChangedBlock,
    CommentDetail,
    CommentList,
    CreateComment,
    DeletedBlock,
    ReplaceSurface,
    SurfaceDetail,
    UpdateBlock,
    UpdateComment,
)
from models.core.access.rules import Level, Scope
from models.core.base import Deleted
from models.data.records import commands as record_contents
from runtime.errors import ConflictError

router = Router(tags=["surfaces"])

SURFACE = "/v1/surfaces/{surfaceId}"
BLOCKS = f"{SURFACE}/blocks"
BLOCK = f"{BLOCKS}/{{blockId}}"
COMMENTS = f"{SURFACE}/comments"
COMMENT = f"{COMMENTS}/{{commentId}}"

READ = Access(
    any_scope=[Scope.SURFACES_READ, Scope.CANVAS_READ], resource="surface", level=Level.VIEW
)
WRITE = Access(
    any_scope=[Scope.SURFACES_WRITE, Scope.CANVAS_WRITE],
    resource="surface",
    level=Level.EDIT,
    idempotent=True,
)
READ_BLOCKS = Access(
    any_scope=[Scope.BLOCKS_READ, Scope.CANVAS_READ], resource="surface", level=Level.VIEW
)
WRITE_BLOCKS = Access(
    any_scope=[Scope.BLOCKS_WRITE, Scope.CANVAS_WRITE],
    resource="surface",
    level=Level.EDIT,
    idempotent=True,
)
COMMENTING = Access(
    scopes=[Scope.BLOCKS_COMMENT], resource="surface", level=Level.COMMENT, idempotent=True
)


@router.get(SURFACE, access=READ)
async def get_surface(request: ApiRequest) -> Data[SurfaceDetail]:
    """Get a surface with all its blocks."""
    return Data(await queries.get_surface(request.work, request.actor, request.ids["surfaceId"]))


@router.put(SURFACE, access=WRITE, batch=True, errors=[ConflictError])
async def replace_surface(
    request: ApiRequest, body: ReplaceSurface, if_match: IfVersion = None
) -> Data[SurfaceDetail]:
    """Replace the content of a surface.

    Blocks whose ids are on the surface stay the same blocks, new ids make new blocks, and blocks
    that are not named are deleted. With `If-Match: <version>` or `expectedVersion` a surface that
    was changed since is left unchanged.
    """
    return Data(
        await commands.replace_surface(
            request.work, request.actor, request.ids["surfaceId"], body, if_match
        )
    )


@router.get(BLOCKS, access=READ_BLOCKS)
async def list_blocks(
    request: ApiRequest,
    limit: Limit = 30,
    cursor: Cursor = None,
    parent_block_id: QueryId | None = None,
) -> Data[BlockList]:
    """List the blocks at the top of a surface, or those directly in one block, in order."""
    surface_id = request.ids["surfaceId"]
    page = request.page("blocks", limit, cursor, surface_id, parent_block_id)
    return Data(
        await queries.list_blocks(request.work, request.actor, surface_id, parent_block_id, page)
    )


@router.post(BLOCKS, access=WRITE_BLOCKS, status_code=201, batch=True, errors=[ConflictError])
async def add_blocks(
    request: ApiRequest, body: AddBlocks, if_match: IfVersion = None
) -> Data[AddedBlocks]:
    """Add one block or many, after the existing ones."""
    return Data(
        await blocks.add_blocks(
            request.work, request.actor, request.ids["surfaceId"], body, if_match
        )
    )


@router.get(BLOCK, access=READ_BLOCKS)
async def get_block(request: ApiRequest) -> Data[BlockDetail]:
    """Get a block."""
    surface_id, block_id = _block(request)
    return Data(await queries.get_block(request.work, request.actor, surface_id, block_id))


@router.patch(BLOCK, access=WRITE_BLOCKS, errors=[ConflictError])
async def update_block(
    request: ApiRequest, body: UpdateBlock, if_match: IfVersion = None
) -> Data[ChangedBlock]:
    """Change a block, or move it with what is nested in it."""
    surface_id, block_id = _block(request)
    return Data(
        await blocks.update_block(request.work, request.actor, surface_id, block_id, body, if_match)
    )


@router.delete(BLOCK, access=WRITE_BLOCKS, errors=[ConflictError])
async def delete_block(request: ApiRequest, if_match: IfVersion = None) -> Data[DeletedBlock]:
    """Delete a block with what is nested in it."""
    surface_id, block_id = _block(request)
    return Data(
        await blocks.delete_block(request.work, request.actor, surface_id, block_id, if_match)
    )


@router.get(COMMENTS, access=READ_BLOCKS)
async def list_surface_comments(
    request: ApiRequest,
    limit: Limit = 30,
    cursor: Cursor = None,
    block_id: QueryId | None = None,
    parent_comment_id: QueryId | None = None,
) -> Data[CommentList]:
    """List comments, oldest first: all, the ones on one block, or the ones of one thread."""
    surface_id = request.ids["surfaceId"]
    page = request.page("surface_comments", limit, cursor, surface_id, block_id, parent_comment_id)
    found = await queries.list_comments(
        request.work, request.actor, surface_id, page, block_id, parent_comment_id
    )
    return Data(found)


@router.post(COMMENTS, access=COMMENTING, status_code=201)
async def create_surface_comment(request: ApiRequest, body: CreateComment) -> Data[CommentDetail]:
    """Comment on a surface or a block, or reply to a thread."""
    return Data(
        await commands.create_comment(request.work, request.actor, request.ids["surfaceId"], body)
    )


@router.patch(COMMENT, access=COMMENTING)
async def update_surface_comment(request: ApiRequest, body: UpdateComment) -> Data[CommentDetail]:
    """Change one's own comment, or resolve or reopen a thread."""
    surface_id, comment_id = request.ids["surfaceId"], request.ids["commentId"]
    return Data(
        await commands.update_comment(request.work, request.actor, surface_id, comment_id, body)
    )


@router.delete(COMMENT, access=COMMENTING)
async def delete_surface_comment(request: ApiRequest) -> Data[Deleted]:
    """Delete one's own comment, or any as a manager; the first one with its whole thread."""
    surface_id, comment_id = request.ids["surfaceId"], request.ids["commentId"]
    return Data(
        await commands.delete_comment(
            request.work, request.actor, request.placement, surface_id, comment_id
        )
    )


@router.post(
    "/v1/records/{recordId}/content-surface",
    access=Access(
        scopes=[Scope.RECORDS_WRITE, Scope.SURFACES_WRITE],
        resource="record",
        level=Level.EDIT,
        idempotent=True,
    ),
)
async def open_content_surface(request: ApiRequest) -> Data[SurfaceDetail]:
    """Get the content of a record, created if it has none.

    `contentSurfaceId` of the record names it from then on.
    """
    return Data(
        await record_contents.content_surface(request.work, request.actor, request.ids["recordId"])
    )


def _block(request: ApiRequest) -> tuple[UUID, UUID]:
    return request.ids["surfaceId"], request.ids["blockId"]
