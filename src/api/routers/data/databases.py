"""Databases: create one with its fields, list, read, change and delete them."""

from api.kernel.routing import Access, ApiRequest, Cursor, Data, IfUnchanged, Limit, Router
from models.core.access.rules import Level, Scope
from models.data.databases import queries
from models.data.databases.commands import databases as commands
from models.data.databases.shapes import (
    CreateDatabase,
    DatabaseDetail,
    DatabaseList,
    UpdateDatabase,
)
from runtime.errors import ConflictError

router = Router(tags=["databases"])

DATABASES = "/v1/workspaces/{workspaceId}/databases"
DATABASE = f"{DATABASES}/{{databaseId}}"

WRITE = Access(
    scopes=[Scope.DATABASES_WRITE], resource="database", level=Level.EDIT, idempotent=True
)


@router.post(
    DATABASES,
    access=Access(scopes=[Scope.DATABASES_WRITE], level=Level.EDIT, idempotent=True),
    errors=[ConflictError],
    status_code=201,
)
async def create_database(request: ApiRequest, body: CreateDatabase) -> Data[DatabaseDetail]:
    """Create a database with its fields.

    A field with the key `title` is put first unless one is described. A relation gets its other
    side in the database it points into, which takes edit access to that one.
    """
    return Data(await commands.create_database(request.work, request.actor, body))


@router.get(DATABASES, access=Access(scopes=[Scope.DATABASES_READ], level=Level.VIEW))
async def list_databases(
    request: ApiRequest, limit: Limit = 30, cursor: Cursor = None
) -> Data[DatabaseList]:
    """List databases with their fields, newest first."""
    page = request.page("databases", limit, cursor)
    return Data(await queries.list_databases(request.work, request.actor, page))


@router.get(
    DATABASE,
    access=Access(scopes=[Scope.DATABASES_READ], resource="database", level=Level.VIEW),
)
async def get_database(request: ApiRequest) -> Data[DatabaseDetail]:
    """Get a database with its fields and views."""
    database_id = request.ids["databaseId"]
    return Data(await queries.get_database(request.work, request.actor, database_id))


@router.patch(DATABASE, access=WRITE, errors=[ConflictError])
async def update_database(
    request: ApiRequest, body: UpdateDatabase, if_match: IfUnchanged = None
) -> Data[DatabaseDetail]:
    """Update a database.

    What the body names is replaced; of `recordLayout`, key by key. With the header
    `If-Match: <updatedAt>` a database that was changed since is left as it is.
    """
    database_id = request.ids["databaseId"]
    return Data(
        await commands.update_database(request.work, request.actor, database_id, body, if_match)
    )


@router.delete(DATABASE, access=WRITE)
async def delete_database(request: ApiRequest) -> Data[DatabaseDetail]:
    """Put a database into the trash, with everything below its item."""
    return Data(
        await commands.delete_database(request.work, request.actor, request.ids["databaseId"])
    )
