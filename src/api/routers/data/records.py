"""Records: create, read, change, list, and ask for by filter."""

from dataclasses import replace

from api.kernel.routing import Access, ApiRequest, Cursor, Data, IfUnchanged, Limit, Router
from models.core.access.rules import Level, Scope
from models.data.fields.queries import prefetched_schema
from models.data.record_changes.shapes import RecordHistory
from models.data.records.commands import records as commands
from models.data.records.queries import records as queries
from models.data.records.queries.execution import QueryTooSlowError
from models.data.records.queries.history import list_history
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

    Every operation that is wrong is named as `operations.<i>`. No record may be meant twice, and
    all upserts of a batch name the same fields in `upsertBy`.
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

    It only reads. `groups`, `groupsTruncated` and `aggregates` stand in the answer where the query
    or its view asks for them.
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

    `data` is merged per key and null clears. What is so already is not written: `updatedAt` stays.
    With the header `If-Match: <updatedAt>` a record that was changed since is left as it is.
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
    """Bring a record back from the archive, or within 30 days from the trash."""
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
