"""Comments on records: read, write, answer, resolve."""

from api.kernel.routing import Access, ApiRequest, Cursor, Data, Limit, Router
from models.core.access.rules import Level, Scope
from models.data.record_comments import commands, queries
from models.data.record_comments.shapes import (
    CreateRecordComment,
    RecordCommentDetail,
    RecordCommentList,
    UpdateRecordComment,
)

router = Router(tags=["record comments"])

COMMENTS = "/v1/records/{recordId}/comments"
COMMENT = f"{COMMENTS}/{{commentId}}"

COMMENTING = Access(
    scopes=[Scope.RECORDS_COMMENT], resource="record", level=Level.COMMENT, idempotent=True
)


@router.get(
    COMMENTS, access=Access(scopes=[Scope.RECORDS_READ], resource="record", level=Level.VIEW)
)
async def list_record_comments(
    request: ApiRequest, limit: Limit = 30, cursor: Cursor = None
) -> Data[RecordCommentList]:
    """List the comments on a record, oldest first."""
    record_id = request.ids["recordId"]
    page = request.page("record_comments", limit, cursor, record_id)
    return Data(
        await queries.list_comments(request.work, request.actor.workspace_id, record_id, page)
    )


@router.post(COMMENTS, access=COMMENTING, status_code=201)
async def create_record_comment(
    request: ApiRequest, body: CreateRecordComment
) -> Data[RecordCommentDetail]:
    """Comment on a record, or answer a comment."""
    return Data(
        await commands.create_comment(request.work, request.actor, request.ids["recordId"], body)
    )


@router.patch(COMMENT, access=COMMENTING)
async def update_record_comment(
    request: ApiRequest, body: UpdateRecordComment
) -> Data[RecordCommentDetail]:
    """Change one's own comment, or as a manager anybody's; resolve a thread and open it again."""
    place = request.ids["recordId"], request.ids["commentId"]
    return Data(
        await commands.update_comment(request.work, request.actor, request.placement, place, body)
    )


@router.delete(COMMENT, access=COMMENTING)
async def delete_record_comment(request: ApiRequest) -> Data[RecordCommentDetail]:
    """Delete one's own comment, or as a manager anybody's; answers to it stay."""
    place = request.ids["recordId"], request.ids["commentId"]
    return Data(
        await commands.delete_comment(request.work, request.actor, request.placement, place)
    )
