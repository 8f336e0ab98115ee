"""Secrets of a workspace: their values go in and never come out."""

from api.kernel.routing import Access, ApiRequest, Cursor, Data, Limit, Router
from models.automation.secrets import commands, queries
from models.automation.secrets.shapes import DeletedSecret, PutSecret, SecretBody, SecretList
from models.core.access.rules import Scope
from runtime.errors import ConflictError

router = Router(tags=["secrets"])

SECRETS = "/v1/workspaces/{workspaceId}/secrets"
SECRET = f"{SECRETS}/{{secretName}}"

_WRITE = Access(scopes=[Scope.INTEGRATIONS_WRITE])


@router.get(SECRETS, access=Access(scopes=[Scope.INTEGRATIONS_READ]))
async def list_secrets(
    request: ApiRequest, limit: Limit = 30, cursor: Cursor = None
) -> Data[SecretList]:
    """List the secrets of a workspace by name, without their values."""
    page = request.page("secrets", limit, cursor)
    return Data(await queries.list_secrets(request.work, request.actor, page))


@router.put(SECRET, access=_WRITE, errors=[ConflictError])
async def put_secret(request: ApiRequest, body: PutSecret) -> Data[SecretBody]:
    """Store a secret, or give it another value."""
    name = request.path_params["secretName"]
    return Data(
        await commands.put_secret(request.work, request.actor, request.services.keys, name, body)
    )


@router.delete(SECRET, access=_WRITE)
async def delete_secret(request: ApiRequest) -> Data[DeletedSecret]:
    """Delete a secret; nodes that name it fail from now on."""
    name = request.path_params["secretName"]
    return Data(await commands.delete_secret(request.work, request.actor, name))
