"""Copies of databases."""

from api.kernel.routing import Access, ApiRequest, Data, Router
from models.core.access.rules import Level, Scope
from models.data.database_copies.commands.acceptance import accept_copy
from models.data.database_copies.queries import copy_outcome
from models.data.database_copies.rules import WAIT_SECONDS
from models.data.database_copies.shapes import DuplicateDatabase
from models.data.databases.shapes import DatabaseDetail
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, InProgressError

router = Router(tags=["databases"])


@router.post(
    "/v1/workspaces/{workspaceId}/databases/{databaseId}/duplicate",
    access=Access(
        scopes=[Scope.DATABASES_READ, Scope.DATABASES_WRITE],
        resource="database",
        level=Level.VIEW,
        idempotent=True,
        joins=True,
    ),
    errors=[ConflictError, InProgressError],
)
async def duplicate_database(request: ApiRequest, body: DuplicateDatabase) -> Data[DatabaseDetail]:
    """Duplicate a database beside it, with its records where asked for.

    With `includeRecords` the scopes records:read and records:write are needed as well.
    Where the caller may create nothing beside it, the copy is put at the top of the workspace. A
    relation into a database that the caller does not edit is left out, with what follows from it.
    The copy is seen when it is whole, which the call waits for, up to ten minutes. The same call
    made again before it was answered gives the same copy; past ten minutes the answer is
    in_progress.
    """
    actor, copy_id = request.actor, request.new_id
    await accept_copy(request.work, actor, request.ids["databaseId"], copy_id, body)

    async def poll(work: UnitOfWork, last: bool) -> DatabaseDetail | None:
        return await copy_outcome(work, actor, copy_id, last=last)

    return request.deferred(poll, within=WAIT_SECONDS)
