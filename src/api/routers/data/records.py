"""Records: create, read, change, ask for by filter; their templates, comments and exports."""

from dataclasses import replace

from api.kernel import routing
from models.automation import written_records
from models.core.access.rules import Level, Scope
from models.data import record_comments, record_templates
from models.data.fields.queries import prefetched_schema
from models.data.record_exports import exports
from models.data.record_exports.shapes import CreateExport, ExportDetail
from models.data.records import commands, queries, shapes
from models.data.views.queries import through_its_view
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, UnsupportedError

templates_router = routing.Router(tags=["record templates"])

TEMPLATES = "/v1/databases/{databaseId}/record-templates"
TEMPLATE = f"{TEMPLATES}/{{templateId}}"

READ_TEMPLATES = routing.Access(
    scopes=[Scope.DATABASES_READ], resource="database", level=Level.VIEW
)

WRITE_TEMPLATES = routing.Access(
    scopes=[Scope.DATABASES_WRITE], resource="database", level=Level.EDIT, idempotent=True
)


@templates_router.get(TEMPLATES, access=READ_TEMPLATES, calls=record_templates.list_templates)
async def list_record_templates(limit: routing.WholeLimit = 1000) -> None:
    """List the record templates of a database by label."""


@templates_router.post(
    TEMPLATES,
    access=WRITE_TEMPLATES,
    status_code=201,
    errors=[ConflictError],
    calls=record_templates.create_template,
)
async def create_record_template() -> None:
    """Create a record template.

    Its content is written on the surface `contentSurfaceId`. A new default replaces the one before.
    """


@templates_router.patch(TEMPLATE, access=WRITE_TEMPLATES, calls=record_templates.update_template)
async def update_record_template() -> None:
    """Update a record template; `data` and `relations` replace what was there."""


@templates_router.delete(TEMPLATE, access=WRITE_TEMPLATES, calls=record_templates.delete_template)
async def delete_record_template() -> None:
    """Delete a record template; records made from it stay."""


router = routing.Router(tags=["records"])

RECORDS = "/v1/databases/{databaseId}/records"
RECORD = "/v1/records/{recordId}"

READ_ALL = routing.Access(scopes=[Scope.RECORDS_READ], resource="database", level=Level.VIEW)
QUERY = replace(READ_ALL, heavy=True, cookie=True, safe=True)
WRITE_ALL = routing.Access(
    scopes=[Scope.RECORDS_WRITE], resource="database", level=Level.EDIT, idempotent=True
)
READ = routing.Access(scopes=[Scope.RECORDS_READ], resource="record", level=Level.VIEW)
WRITE = routing.Access(
    scopes=[Scope.RECORDS_WRITE], resource="record", level=Level.EDIT, idempotent=True
)
WRITE_ALL_BY_PAGE, WRITE_BY_PAGE = replace(WRITE_ALL, cookie=True), replace(WRITE, cookie=True)


@router.post(
    RECORDS,
    access=WRITE_ALL_BY_PAGE,
    status_code=201,
    errors=[ConflictError],
    calls=commands.create_record,
)
async def create_record() -> None:
    """Create a record."""


@router.post(
    f"{RECORDS}/batch",
    access=WRITE_ALL_BY_PAGE,
    errors=[ConflictError],
    batch=True,
    calls=commands.write_batch,
)
async def write_records() -> None:
    """Write up to 500 records: all operations happen, or none does.

    Every invalid operation is named as `operations.<i>`. No record may be named twice, and all
    upserts of a batch name the same fields in `upsertBy`.
    """


@router.get(
    RECORDS, access=replace(READ_ALL, prefetch=prefetched_schema), calls=queries.list_records
)
async def list_records() -> None:
    """List records that are not archived, newest first."""


async def _too_slow(_work: UnitOfWork, _last: bool) -> None:
    raise queries.QueryTooSlowError


@router.post(f"{RECORDS}/query", access=QUERY, errors=[UnsupportedError])
async def query_records(
    request: routing.ApiRequest, body: shapes.RecordQuery
) -> routing.Data[shapes.QueryResult]:
    """Query records by filter, order and search, with groups and aggregates.

    It only reads. The answer has `groups`, `groupsTruncated` and `aggregates` where the query or
    its view asks for them.
    """
    database_id = request.ids["databaseId"]
    keys = request.services.keys
    place = request.work, request.actor, database_id
    found = await queries.ask_records(*place, await through_its_view(*place, body), keys)
    # Refused after the commit: what shortens the next such query is kept.
    return request.deferred(_too_slow, within=0) if found is None else routing.Data(found)


@router.get(
    RECORD,
    access=replace(READ, prefetch=queries.prefetched_record, cookie=True),
    calls=queries.get_record,
)
async def get_record() -> None:
    """Get a record."""


@router.patch(RECORD, access=WRITE_BY_PAGE, errors=[ConflictError], calls=commands.update_record)
async def update_record() -> None:
    """Update a record.

    `data` is merged per key and null clears. Values that are equal are not written: `updatedAt`
    stays. With the header `If-Match: <updatedAt>` a record that was changed since is left
    unchanged.
    """


@router.delete(RECORD, access=WRITE, errors=[ConflictError], calls=commands.delete_record)
async def delete_record() -> None:
    """Delete a record: it can be restored for 30 days. Takes `If-Match` as an update does."""


@router.post(
    f"{RECORD}/archive", access=WRITE, errors=[ConflictError], calls=commands.archive_record
)
async def archive_record() -> None:
    """Archive a record: only queries with `includeArchived` show it."""


@router.post(
    f"{RECORD}/restore",
    access=replace(WRITE, in_trash=True),
    errors=[ConflictError],
    calls=commands.restore_record,
)
async def restore_record() -> None:
    """Restore a record from the archive, or within 30 days from the trash."""


@router.get(f"{RECORD}/history", access=READ, calls=written_records.list_record_history)
async def list_record_history() -> None:
    """List the changes of a record, newest first."""


comments_router = routing.Router(tags=["record comments"])

COMMENTS = "/v1/records/{recordId}/comments"
COMMENT = f"{COMMENTS}/{{commentId}}"

COMMENTING = routing.Access(
    scopes=[Scope.RECORDS_COMMENT], resource="record", level=Level.COMMENT, idempotent=True
)


@comments_router.get(
    COMMENTS,
    access=routing.Access(scopes=[Scope.RECORDS_READ], resource="record", level=Level.VIEW),
    calls=record_comments.list_comments,
)
async def list_record_comments() -> None:
    """List the comments on a record, oldest first."""


@comments_router.post(
    COMMENTS,
    access=replace(COMMENTING, cookie=True),
    status_code=201,
    calls=record_comments.create_comment,
)
async def create_record_comment() -> None:
    """Comment on a record, or reply to a comment."""


@comments_router.patch(COMMENT, access=COMMENTING)
async def update_record_comment(
    request: routing.ApiRequest, body: record_comments.UpdateRecordComment
) -> routing.Data[record_comments.RecordCommentDetail]:
    """Change one's own comment, or any as a manager; resolve or reopen a thread."""
    place = request.ids["recordId"], request.ids["commentId"]
    return routing.Data(
        await record_comments.update_comment(
            request.work, request.actor, request.placement, place, body
        )
    )


@comments_router.delete(COMMENT, access=COMMENTING)
async def delete_record_comment(
    request: routing.ApiRequest,
) -> routing.Data[record_comments.RecordCommentDetail]:
    """Delete one's own comment, or any as a manager; replies to it stay."""
    place = request.ids["recordId"], request.ids["commentId"]
    return routing.Data(
        await record_comments.delete_comment(request.work, request.actor, request.placement, place)
    )


exports_router = routing.Router(tags=["records"])

EXPORT_WAIT_SECONDS = 25

_EXPORTS = "/v1/workspaces/{workspaceId}/exports"
_EXPORT = f"{_EXPORTS}/{{exportId}}"

_EXPORTING = routing.Access(scopes=[Scope.RECORDS_READ])


@exports_router.post(
    "/v1/databases/{databaseId}/export",
    access=routing.Access(
        scopes=[Scope.RECORDS_READ], resource="database", level=Level.VIEW, idempotent=True
    ),
)
async def export_records(
    request: routing.ApiRequest, body: CreateExport
) -> routing.Data[ExportDetail]:
    """Export records as a CSV or XLSX file.

    A long export is answered while it runs; `GET …/exports/{exportId}` shows its progress. CSV is
    RFC 4180 in UTF-8 with a byte order mark, and text whose first visible character is a sign that
    begins a formula is led by an apostrophe, which an import leaves out.
    """
    actor, export_id, keys = request.actor, request.new_id, request.services.keys
    await exports.accept_export(request.work, actor, request.ids["databaseId"], export_id, body)

    async def poll(work: UnitOfWork, last: bool) -> ExportDetail | None:
        return await exports.export_outcome(work, actor, export_id, keys, last=last)

    return request.deferred(poll, within=EXPORT_WAIT_SECONDS)


@exports_router.get(_EXPORTS, access=_EXPORTING, calls=exports.list_exports)
async def list_exports() -> None:
    """List exports, newest first: the caller's own, or all for owners and administrators."""


@exports_router.get(_EXPORT, access=_EXPORTING)
async def get_export(request: routing.ApiRequest) -> routing.Data[ExportDetail]:
    """Get an export: the caller's own, or any for owners and administrators."""
    return await _shown(request)


@exports_router.post(f"{_EXPORT}/cancel", access=_EXPORTING)
async def cancel_export(request: routing.ApiRequest) -> routing.Data[ExportDetail]:
    """Cancel an export; a finished one is left unchanged.

    One that has begun is `cancelled` as soon as what it has written is removed.
    """
    await exports.cancel_export(request.work, request.actor, request.ids["exportId"])
    return await _shown(request)


async def _shown(request: routing.ApiRequest) -> routing.Data[ExportDetail]:
    export_id, keys = request.ids["exportId"], request.services.keys
    return routing.Data(await exports.export_detail(request.work, request.actor, export_id, keys))
