"""Secrets of a workspace: their values go in and never come out."""

from api.kernel.routing import Access, Call, Cursor, Data, Limit, Router
from models.automation.secrets import commands, queries
from models.automation.secrets.shapes import DeletedSecret, PutSecret, SecretBody, SecretList
from models.core.access.rules import Scope
from runtime.errors import ConflictError

router = Router(tags=["secrets"])

SECRETS = "/v1/workspaces/{workspaceId}/secrets"
SECRET = f"{SECRETS}/{{secretName}}"

_WRITE = Access(scopes=[Scope.INTEGRATIONS_WRITE])


@router.get(SECRETS, access=Access(scopes=[Scope.INTEGRATIONS_READ]))
async def list_secrets(call: Call, limit: Limit = 30, cursor: Cursor = None) -> Data[SecretList]:
    """List the secrets of a workspace by name, without their values."""
    page = call.page("secrets", limit, cursor)
    return Data(await queries.list_secrets(call.work, call.actor, page))


@router.put(SECRET, access=_WRITE, errors=[ConflictError])
async def put_secret(call: Call, body: PutSecret) -> Data[SecretBody]:
    """Store a secret, or give it another value."""
    name = call.path_params["secretName"]
    return Data(await commands.put_secret(call.work, call.actor, call.kernel.keys, name, body))


@router.delete(SECRET, access=_WRITE)
async def delete_secret(call: Call) -> Data[DeletedSecret]:
    """Delete a secret; nodes that name it fail from now on."""
    name = call.path_params["secretName"]
    return Data(await commands.delete_secret(call.work, call.actor, name))
