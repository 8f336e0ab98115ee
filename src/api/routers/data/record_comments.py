"""Comments on records: read, write, answer, resolve."""

from api.kernel.routing import Access, Call, Cursor, Data, Limit, Router
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
    call: Call, limit: Limit = 30, cursor: Cursor = None
) -> Data[RecordCommentList]:
    """List the comments on a record, oldest first."""
    record_id = call.ids["recordId"]
    page = call.page("record_comments", limit, cursor, record_id)
    return Data(await queries.list_comments(call.work, call.actor.workspace_id, record_id, page))


@router.post(COMMENTS, access=COMMENTING, status_code=201)
async def create_record_comment(call: Call, body: CreateRecordComment) -> Data[RecordCommentDetail]:
    """Comment on a record, or answer a comment."""
    return Data(await commands.create_comment(call.work, call.actor, call.ids["recordId"], body))


@router.patch(COMMENT, access=COMMENTING)
async def update_record_comment(call: Call, body: UpdateRecordComment) -> Data[RecordCommentDetail]:
    """Change one's own comment, or as a manager anybody's; resolve a thread and open it again."""
    place = call.ids["recordId"], call.ids["commentId"]
    return Data(await commands.update_comment(call.work, call.actor, call.placement, place, body))


@router.delete(COMMENT, access=COMMENTING)
async def delete_record_comment(call: Call) -> Data[RecordCommentDetail]:
    """Delete one's own comment, or as a manager anybody's; answers to it stay."""
    place = call.ids["recordId"], call.ids["commentId"]
    return Data(await commands.delete_comment(call.work, call.actor, call.placement, place))
