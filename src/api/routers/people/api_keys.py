"""API keys and the log of what was done with them."""

from api.kernel.routing import Access, ApiRequest, Data, Limit, Router
from models.core.access.rules import Scope
from models.people.api_keys import commands, queries
from models.people.api_keys.shapes import ApiKeyBody, CreateApiKey, IssuedApiKey, RevokedApiKey
from models.people.request_logs.queries import list_request_logs as logged_requests
from models.people.request_logs.shapes import RequestLogBody
from runtime.errors import ConflictError

router = Router(tags=["api keys"])


@router.get("/v1/workspaces/{workspaceId}/api-keys", access=Access(scopes=[Scope.API_KEYS_READ]))
async def list_api_keys(request: ApiRequest) -> Data[list[ApiKeyBody]]:
    """List API keys, newest first, without their secrets."""
    return Data(await queries.list_keys(request.work, request.actor))


@router.post(
    "/v1/workspaces/{workspaceId}/api-keys",
    access=Access(scopes=[Scope.API_KEYS_WRITE], idempotent=True),
    status_code=201,
    errors=[ConflictError],
)
async def create_api_key(request: ApiRequest, body: CreateApiKey) -> Data[IssuedApiKey]:
    """Create an API key; its secret is shown in this answer only."""
    return Data(await commands.create_key(request.work, request.actor, request.services.keys, body))


@router.get(
    "/v1/workspaces/{workspaceId}/api-keys/request-logs",
    access=Access(scopes=[Scope.API_KEYS_READ]),
)
async def list_request_logs(request: ApiRequest, limit: Limit = 30) -> Data[list[RequestLogBody]]:
    """List the newest calls made in the workspace."""
    return Data(await logged_requests(request.work, request.actor, limit))


@router.delete(
    "/v1/workspaces/{workspaceId}/api-keys/{apiKeyId}",
    access=Access(scopes=[Scope.API_KEYS_WRITE], resource="api_key", idempotent=True),
)
async def revoke_api_key(request: ApiRequest) -> Data[RevokedApiKey]:
    """Revoke an API key; it stops at once."""
    return Data(await commands.revoke_key(request.work, request.actor, request.ids["apiKeyId"]))
