"""Records: create, read, change, ask for by filter; their templates, comments and exports."""

from dataclasses import replace

from api.kernel.routing import (
    Access,
    ApiRequest,
    Cursor,
    Data,
    IfUnchanged,
    Limit,
    Router,
    WholeLimit,
)
from models.core.access.rules import Level, Scope
from models.core.base import Deleted
from models.data import record_comments, record_templates
from models.data.fields.queries import prefetched_schema
from models.data.record_changes.history import RecordHistory
from models.data.record_comments import (
    CreateRecordComment,
    RecordCommentDetail,
    RecordCommentList,
    UpdateRecordComment,
)
from models.data.record_exports import exports
from models.data.record_exports.exports import accept_export
from models.data.record_exports.exports import cancel_export as cancel
from models.data.record_exports.shapes import CreateExport, ExportDetail, ExportList
from models.data.record_templates import (
    CreateRecordTemplate,
    RecordTemplateList,
    RecordTemplateShape,
    UpdateRecordTemplate,
)
from models.data.records import commands, queries
from models.data.records.queries import QueryTooSlowError, list_history
from models.data.records.shapes import (
    BatchResult,
    CreateRecord,
    QueryResult,
    RecordBatch,
    RecordDetail,
    RecordList,
    RecordQuery,
    UpdateRecord,
)
from models.data.views.queries import through_its_view
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, UnsupportedError

templates_router = Router(tags=["record templates"])

TEMPLATES = "/v1/databases/{databaseId}/record-templates"
TEMPLATE = f"{TEMPLATES}/{{templateId}}"

READ_TEMPLATES = Access(scopes=[Scope.DATABASES_READ], resource="database", level=Level.VIEW)

WRITE_TEMPLATES = Access(
    scopes=[Scope.DATABASES_WRITE], resource="database", level=Level.EDIT, idempotent=True
)


@templates_router.get(TEMPLATES, access=READ_TEMPLATES)
async def list_record_templates(
    request: ApiRequest, limit: WholeLimit = 1000, cursor: Cursor = None
) -> Data[RecordTemplateList]:
    """List the record templates of a database by label."""
    workspace_id, database_id = request.actor.workspace_id, request.ids["databaseId"]
    page = request.page("record templates", limit, cursor, database_id)
    return Data(
        await record_templates.list_templates(request.work, workspace_id, database_id, page)
    )


@templates_router.post(TEMPLATES, access=WRITE_TEMPLATES, status_code=201, errors=[ConflictError])
async def create_record_template(
    request: ApiRequest, body: CreateRecordTemplate
) -> Data[RecordTemplateShape]:
    """Create a record template.

    Its content is written on the surface `contentSurfaceId`. A new default replaces the one before.
    """
    database_id = request.ids["databaseId"]
    return Data(
        await record_templates.create_template(request.work, request.actor, database_id, body)
    )


@templates_router.patch(TEMPLATE, access=WRITE_TEMPLATES)
async def update_record_template(
    request: ApiRequest, body: UpdateRecordTemplate
) -> Data[RecordTemplateShape]:
    """Update a record template; `data` and `relations` replace what was there."""
    database_id, template_id = request.ids["databaseId"], request.ids["templateId"]
    return Data(
        await record_templates.update_template(
            request.work, request.actor, database_id, template_id, body
        )
    )


@templates_router.delete(TEMPLATE, access=WRITE_TEMPLATES)
async def delete_record_template(request: ApiRequest) -> Data[Deleted]:
    """Delete a record template; records made from it stay."""
    database_id, template_id = request.ids["databaseId"], request.ids["templateId"]
    return Data(
        await record_templates.delete_template(
            request.work, request.actor, database_id, template_id
        )
    )


router = Router(tags=["records"])

RECORDS = "/v1/databases/{databaseId}/records"
RECORD = "/v1/records/{recordId}"

READ_ALL = Access(scopes=[Scope.RECORDS_READ], resource="database", level=Level.VIEW)
QUERY = replace(READ_ALL, heavy=True)
WRITE_ALL = Access(
    scopes=[Scope.RECORDS_WRITE], resource="database", level=Level.EDIT, idempotent=True
)
READ = Access(scopes=[Scope.RECORDS_READ], resource="record", level=Level.VIEW)
WRITE = Access(scopes=[Scope.RECORDS_WRITE], resource="record", level=Level.EDIT, idempotent=True)


@router.post(RECORDS, access=WRITE_ALL, status_code=201, errors=[ConflictError])
async def create_record(request: ApiRequest, body: CreateRecord) -> Data[RecordDetail]:
    """Create a record."""
    database_id = request.ids["databaseId"]
    return Data(await commands.create_record(request.work, request.actor, database_id, body))


@router.post(f"{RECORDS}/batch", access=WRITE_ALL, errors=[ConflictError], batch=True)
async def write_records(request: ApiRequest, body: RecordBatch) -> Data[BatchResult]:
    """Write up to 500 records: all operations happen, or none does.

    Every invalid operation is named as `operations.<i>`. No record may be named twice, and all
    upserts of a batch name the same fields in `upsertBy`.
    """
    database_id = request.ids["databaseId"]
    return Data(await commands.write_batch(request.work, request.actor, database_id, body))


@router.get(RECORDS, access=replace(READ_ALL, prefetch=prefetched_schema))
async def list_records(
    request: ApiRequest, limit: Limit = 30, cursor: Cursor = None
) -> Data[RecordList]:
    """List records that are not archived, newest first."""
    database_id = request.ids["databaseId"]
    page = request.page("records", limit, cursor, database_id)
    return Data(await queries.list_records(request.work, request.actor, database_id, page))


async def _too_slow(_work: UnitOfWork, _last: bool) -> None:
    raise QueryTooSlowError


@router.post(f"{RECORDS}/query", access=QUERY, errors=[UnsupportedError])
async def query_records(request: ApiRequest, body: RecordQuery) -> Data[QueryResult]:
    """Query records by filter, order and search, with groups and aggregates.

    It only reads. The answer has `groups`, `groupsTruncated` and `aggregates` where the query or
    its view asks for them.
    """
    database_id = request.ids["databaseId"]
    keys = request.services.keys
    place = request.work, request.actor, database_id
    found = await queries.ask_records(*place, await through_its_view(*place, body), keys)
    # Refused after the commit: what shortens the next such query is kept.
    return request.deferred(_too_slow, within=0) if found is None else Data(found)


@router.get(RECORD, access=replace(READ, prefetch=queries.prefetched_record))
async def get_record(request: ApiRequest) -> Data[RecordDetail]:
    """Get a record."""
    return Data(await queries.get_record(request.work, request.actor, request.ids["recordId"]))


@router.patch(RECORD, access=WRITE, errors=[ConflictError])
async def update_record(
    request: ApiRequest, body: UpdateRecord, if_match: IfUnchanged = None
) -> Data[RecordDetail]:
    """Update a record.

    `data` is merged per key and null clears. Values that are equal are not written: `updatedAt`
    stays. With the header `If-Match: <updatedAt>` a record that was changed since is left
    unchanged.
    """
    record_id = request.ids["recordId"]
    return Data(
        await commands.update_record(request.work, request.actor, record_id, body, if_match)
    )


@router.delete(RECORD, access=WRITE, errors=[ConflictError])
async def delete_record(request: ApiRequest, if_match: IfUnchanged = None) -> Data[RecordDetail]:
    """Delete a record: it can be restored for 30 days. Takes `If-Match` as an update does."""
    record_id = request.ids["recordId"]
    return Data(await commands.delete_record(request.work, request.actor, record_id, if_match))


@router.post(f"{RECORD}/archive", access=WRITE, errors=[ConflictError])
async def archive_record(request: ApiRequest, if_match: IfUnchanged = None) -> Data[RecordDetail]:
    """Archive a record: only queries with `includeArchived` show it."""
    record_id = request.ids["recordId"]
    return Data(await commands.archive_record(request.work, request.actor, record_id, if_match))


@router.post(f"{RECORD}/restore", access=replace(WRITE, in_trash=True), errors=[ConflictError])
async def restore_record(request: ApiRequest, if_match: IfUnchanged = None) -> Data[RecordDetail]:
    """Restore a record from the archive, or within 30 days from the trash."""
    record_id = request.ids["recordId"]
    return Data(await commands.restore_record(request.work, request.actor, record_id, if_match))


@router.get(f"{RECORD}/history", access=READ)
async def list_record_history(
    request: ApiRequest, limit: Limit = 30, cursor: Cursor = None
) -> Data[RecordHistory]:
    """List the changes of a record, newest first."""
    record_id = request.ids["recordId"]
    page = request.page("record_history", limit, cursor, record_id)
    return Data(await list_history(request.work, request.actor, record_id, page))


comments_router = Router(tags=["record comments"])

COMMENTS = "/v1/records/{recordId}/comments"
COMMENT = f"{COMMENTS}/{{commentId}}"

COMMENTING = Access(
    scopes=[Scope.RECORDS_COMMENT], resource="record", level=Level.COMMENT, idempotent=True
)


@comments_router.get(
    COMMENTS, access=Access(scopes=[Scope.RECORDS_READ], resource="record", level=Level.VIEW)
)
async def list_record_comments(
    request: ApiRequest, limit: Limit = 30, cursor: Cursor = None
) -> Data[RecordCommentList]:
    """List the comments on a record, oldest first."""
    record_id = request.ids["recordId"]
    page = request.page("record_comments", limit, cursor, record_id)
    return Data(
        await record_comments.list_comments(
            request.work, request.actor.workspace_id, record_id, page
        )
    )


@comments_router.post(COMMENTS, access=COMMENTING, status_code=201)
async def create_record_comment(
    request: ApiRequest, body: CreateRecordComment
) -> Data[RecordCommentDetail]:
    """Comment on a record, or reply to a comment."""
    return Data(
        await record_comments.create_comment(
            request.work, request.actor, request.ids["recordId"], body
        )
    )


@comments_router.patch(COMMENT, access=COMMENTING)
async def update_record_comment(
    request: ApiRequest, body: UpdateRecordComment
) -> Data[RecordCommentDetail]:
    """Change one's own comment, or any as a manager; resolve or reopen a thread."""
    place = request.ids["recordId"], request.ids["commentId"]
    return Data(
        await record_comments.update_comment(
            request.work, request.actor, request.placement, place, body
        )
    )


@comments_router.delete(COMMENT, access=COMMENTING)
async def delete_record_comment(request: ApiRequest) -> Data[RecordCommentDetail]:
    """Delete one's own comment, or any as a manager; replies to it stay."""
    place = request.ids["recordId"], request.ids["commentId"]
    return Data(
        await record_comments.delete_comment(request.work, request.actor, request.placement, place)
    )


exports_router = Router(tags=["records"])

EXPORT_WAIT_SECONDS = 25

_EXPORTS = "/v1/workspaces/{workspaceId}/exports"
_EXPORT = f"{_EXPORTS}/{{exportId}}"

_EXPORTING = Access(scopes=[Scope.RECORDS_READ])


@exports_router.post(
    "/v1/databases/{databaseId}/export",
    access=Access(
        scopes=[Scope.RECORDS_READ], resource="database", level=Level.VIEW, idempotent=True
    ),
)
async def export_records(request: ApiRequest, body: CreateExport) -> Data[ExportDetail]:
    """Export records as a CSV or XLSX file.

    A long export is answered while it runs; `GET …/exports/{exportId}` shows its progress. CSV is
    RFC 4180 in UTF-8 with a byte order mark, and text whose first visible character is a sign that
    begins a formula is led by an apostrophe, which an import keeps.
    """
    actor, export_id, keys = request.actor, request.new_id, request.services.keys
    await accept_export(request.work, actor, request.ids["databaseId"], export_id, body)

    async def poll(work: UnitOfWork, last: bool) -> ExportDetail | None:
        return await exports.export_outcome(work, actor, export_id, keys, last=last)

    return request.deferred(poll, within=EXPORT_WAIT_SECONDS)


@exports_router.get(_EXPORTS, access=_EXPORTING)
async def list_exports(
    request: ApiRequest, limit: Limit = 30, cursor: Cursor = None
) -> Data[ExportList]:
    """List exports, newest first: the caller's own, or all for owners and administrators."""
    page = request.page("exports", limit, cursor)
    return Data(await exports.list_exports(request.work, request.actor, page))


@exports_router.get(_EXPORT, access=_EXPORTING)
async def get_export(request: ApiRequest) -> Data[ExportDetail]:
    """Get an export: the caller's own, or any for owners and administrators."""
    return await _shown(request)


@exports_router.post(f"{_EXPORT}/cancel", access=_EXPORTING)
async def cancel_export(request: ApiRequest) -> Data[ExportDetail]:
    """Cancel an export; a finished one is left unchanged.

    One that has begun is `cancelled` as soon as what it has written is removed.
    """
    await cancel(request.work, request.actor, request.ids["exportId"])
    return await _shown(request)


async def _shown(request: ApiRequest) -> Data[ExportDetail]:
    export_id, keys = request.ids["exportId"], request.services.keys
    return Data(await exports.export_detail(request.work, request.actor, export_id, keys))
