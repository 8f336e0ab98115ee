"""Databases: create one with its fields, list them, read one."""

from api.kernel.routing import Access, Call, Cursor, Data, Limit, Router
from models.access.rules import Level, Scope
from models.databases import commands, queries
from models.databases.shapes import CreateDatabase, DatabaseDetail, DatabaseList
from runtime.errors import ConflictError, UnsupportedError

router = Router(tags=["databases"])

DATABASES = "/v1/workspaces/{workspaceId}/databases"


@router.post(
    DATABASES,
    access=Access(scopes=[Scope.DATABASES_WRITE], level=Level.EDIT, idempotent=True),
    errors=[ConflictError, UnsupportedError],
    status_code=201,
)
async def create_database(call: Call, body: CreateDatabase) -> Data[DatabaseDetail]:
    """Create a database with its fields.

    A field with the key `title` is put first unless one is described.
    """
    return Data(await commands.create_database(call.work, call.actor, body))


@router.get(DATABASES, access=Access(scopes=[Scope.DATABASES_READ], level=Level.VIEW))
async def list_databases(
    call: Call, limit: Limit = 30, cursor: Cursor = None
) -> Data[DatabaseList]:
    """List databases with their fields, newest first."""
    page = call.page("databases", limit, cursor)
    return Data(await queries.list_databases(call.work, call.actor, page))


@router.get(
    f"{DATABASES}/{{databaseId}}",
    access=Access(scopes=[Scope.DATABASES_READ], resource="database", level=Level.VIEW),
)
async def get_database(call: Call) -> Data[DatabaseDetail]:
    """Get a database with its fields and views."""
    database_id = call.ids["databaseId"]
    return Data(await queries.get_database(call.work, call.actor.workspace_id, database_id))
