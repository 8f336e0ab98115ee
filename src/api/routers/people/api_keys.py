"""API keys and the log of what was done with them."""

from api.kernel.routing import Access, ApiRequest, Cursor, Data, Limit, Router, WholeLimit
from models.core.access.rules import Scope
from models.people.api_keys import commands, queries
from models.people.api_keys.shapes import ApiKeyBody, CreateApiKey, IssuedApiKey, RevokedApiKey
from models.people.request_logs.queries import page_of_requests
from models.people.request_logs.shapes import RequestLogBody
from runtime.errors import ConflictError

router = Router(tags=["api keys"])


@router.get("/v1/workspaces/{workspaceId}/api-keys", access=Access(scopes=[Scope.API_KEYS_READ]))
async def list_api_keys(
    request: ApiRequest, limit: WholeLimit = 1000, cursor: Cursor = None
) -> Data[list[ApiKeyBody]]:
    """List API keys, newest first, without their secrets."""
    page = request.page("api keys", limit, cursor)
    return request.array(await queries.page_of_keys(request.work, request.actor, page))


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
async def list_request_logs(
    request: ApiRequest, limit: Limit = 30, cursor: Cursor = None
) -> Data[list[RequestLogBody]]:
    """List the calls made in the workspace, newest first."""
    page = request.page("request logs", limit, cursor)
    return request.array(await page_of_requests(request.work, request.actor, page))


@router.delete(
    "/v1/workspaces/{workspaceId}/api-keys/{apiKeyId}",
    access=Access(scopes=[Scope.API_KEYS_WRITE], resource="api_key", idempotent=True),
)
async def revoke_api_key(request: ApiRequest) -> Data[RevokedApiKey]:
    """Revoke an API key; it stops at once."""
    return Data(await commands.revoke_key(request.work, request.actor, request.ids["apiKeyId"]))
