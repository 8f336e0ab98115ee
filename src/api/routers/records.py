"""Records: create, read, change, list, and ask for by filter."""

from api.kernel.routing import Access, Call, Cursor, Data, Limit, Router
from models.access.rules import Level, Scope
from models.records import commands, queries
from models.records.rules.precondition import read_if_match
from models.records.shapes import (
    CreateRecord,
    RecordDetail,
    RecordList,
    RecordQuery,
    UpdateRecord,
)
from runtime.errors import ConflictError, UnsupportedError

router = Router(tags=["records"])

RECORDS = "/v1/databases/{databaseId}/records"
RECORD = "/v1/records/{recordId}"

READ_ALL = Access(scopes=[Scope.RECORDS_READ], resource="database", level=Level.VIEW)


@router.post(
    RECORDS,
    access=Access(
        scopes=[Scope.RECORDS_WRITE], resource="database", level=Level.EDIT, idempotent=True
    ),
    status_code=201,
)
async def create_record(call: Call, body: CreateRecord) -> Data[RecordDetail]:
    """Create a record."""
    database_id = call.ids["databaseId"]
    return Data(await commands.create_record(call.work, call.actor, database_id, body))


@router.get(RECORDS, access=READ_ALL)
async def list_records(call: Call, limit: Limit = 30, cursor: Cursor = None) -> Data[RecordList]:
    """List records that are not archived, newest first."""
    database_id = call.ids["databaseId"]
    page = call.page("records", limit, cursor, database_id)
    return Data(await queries.list_records(call.work, call.actor.workspace_id, database_id, page))


@router.post(f"{RECORDS}/query", access=READ_ALL, errors=[UnsupportedError])
async def query_records(call: Call, body: RecordQuery) -> Data[RecordList]:
    """Query records by filter, order and search."""
    return Data(
        await queries.query_records(
            call.work,
            call.actor.workspace_id,
            call.ids["databaseId"],
            body,
            call.kernel.keys,
        )
    )


@router.get(RECORD, access=Access(scopes=[Scope.RECORDS_READ], resource="record", level=Level.VIEW))
async def get_record(call: Call) -> Data[RecordDetail]:
    """Get a record."""
    return Data(await queries.get_record(call.work, call.actor.workspace_id, call.ids["recordId"]))


@router.patch(
    RECORD,
    access=Access(
        scopes=[Scope.RECORDS_WRITE], resource="record", level=Level.EDIT, idempotent=True
    ),
    errors=[ConflictError],
)
async def update_record(call: Call, body: UpdateRecord) -> Data[RecordDetail]:
    """Update a record.

    `data` is merged per key and null clears. With the header `If-Match: <updatedAt>` a record
    that was changed since is left as it is.
    """
    expected = read_if_match(call.headers.get("if-match"))
    return Data(
        await commands.update_record(call.work, call.actor, call.ids["recordId"], body, expected)
    )
