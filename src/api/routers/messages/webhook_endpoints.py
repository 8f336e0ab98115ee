"""Webhook endpoints of a workspace, what was delivered to them, and the secret that signs it."""

from dataclasses import replace

from api.kernel.routing import Access, ApiRequest, Cursor, Data, Limit, Router
from models.core.access.rules import Scope
from models.core.base import Deleted
from models.messages.deliveries.rules import DeliveryStatus
from models.messages.webhook_endpoints import commands, queries
from models.messages.webhook_endpoints.queries import (
    CreateWebhookEndpoint,
    IssuedWebhookEndpoint,
    UpdateWebhookEndpoint,
    WebhookDeliveryBody,
    WebhookDeliveryList,
    WebhookEndpointBody,
    WebhookEndpointList,
)
from models.messages.webhook_signing import SigningSecret, show_signing_secret
from runtime.errors import ConflictError

router = Router(tags=["webhooks"])


@router.get(
    "/v1/workspaces/{workspaceId}/webhook-signing-secret",
    access=Access(scopes=[Scope.WEBHOOKS_WRITE], writes=True),
)
async def get_webhook_signing_secret(request: ApiRequest) -> Data[SigningSecret]:
    """Get the secret that verifies events of `send_webhook` (Standard Webhooks).

    Needs webhooks:write, which owners and administrators have: the secret can sign in the name of
    the workspace. It is created when first needed.
    """
    return Data(await show_signing_secret(request.work, request.services.keys, request.actor))


ENDPOINTS = "/v1/workspaces/{workspaceId}/webhook-endpoints"
ENDPOINT = f"{ENDPOINTS}/{{endpointId}}"

_WRITE = [Scope.WEBHOOKS_WRITE]
READ = Access(scopes=[Scope.WEBHOOKS_READ])
READ_ONE = Access(scopes=[Scope.WEBHOOKS_READ], resource="endpoint")
CREATE = Access(scopes=_WRITE, idempotent=True)
WRITE = Access(scopes=_WRITE, resource="endpoint", idempotent=True)


@router.post(ENDPOINTS, access=CREATE, status_code=201, errors=[ConflictError])
async def create_webhook_endpoint(
    request: ApiRequest, body: CreateWebhookEndpoint
) -> Data[IssuedWebhookEndpoint]:
    """Create an endpoint that receives the events of the workspace.

    Its `secret` is only returned once. A delivery is a POST of `type`, `timestamp`, `data` and
    more, with the headers of Standard Webhooks; `webhook-id` is the same for all attempts. Without
    a 2xx response within 15 seconds it is retried after 5 s, 5 min, 30 min, 2, 5, 10, 14, 20 and 24
    h. After five consecutive failures the `circuit` opens: events wait in order, and one is retried
    after 10 s, doubling up to one hour. A success closes it, and the others follow. A 410 response,
    or three days without a success, disables the endpoint. Events for one user only are not sent.
    """
    keys = request.services.keys
    return Data(await commands.create_endpoint(request.work, request.actor, keys, body))


@router.get(ENDPOINTS, access=replace(READ, cookie=True))
async def list_webhook_endpoints(
    request: ApiRequest, limit: Limit = 30, cursor: Cursor = None
) -> Data[WebhookEndpointList]:
    """List endpoints, newest first, without secrets, with the state of each circuit."""
    page = request.page("webhook endpoints", limit, cursor)
    return Data(await queries.list_endpoints(request.work, request.actor, page))


@router.get(ENDPOINT, access=READ_ONE)
async def get_webhook_endpoint(request: ApiRequest) -> Data[WebhookEndpointBody]:
    """Get an endpoint, without its secret."""
    endpoint_id = request.ids["endpointId"]
    return Data(await queries.get_endpoint(request.work, request.actor, endpoint_id))


@router.patch(ENDPOINT, access=WRITE)
async def update_webhook_endpoint(
    request: ApiRequest, body: UpdateWebhookEndpoint
) -> Data[WebhookEndpointBody]:
    """Change an endpoint. Once enabled again, it receives new events only."""
    endpoint_id = request.ids["endpointId"]
    return Data(await commands.update_endpoint(request.work, request.actor, endpoint_id, body))


@router.delete(ENDPOINT, access=WRITE)
async def delete_webhook_endpoint(request: ApiRequest) -> Data[Deleted]:
    """Delete an endpoint, and cancel its pending deliveries."""
    endpoint_id = request.ids["endpointId"]
    return Data(await commands.delete_endpoint(request.work, request.actor, endpoint_id))


@router.post(f"{ENDPOINT}/rotate-secret", access=WRITE)
async def rotate_webhook_endpoint_secret(request: ApiRequest) -> Data[IssuedWebhookEndpoint]:
    """Rotate the secret of an endpoint. The old one also signs for 24 more hours."""
    keys, endpoint_id = request.services.keys, request.ids["endpointId"]
    return Data(await commands.rotate_secret(request.work, request.actor, keys, endpoint_id))


@router.post(f"{ENDPOINT}/test", access=WRITE, errors=[ConflictError])
async def test_webhook_endpoint(request: ApiRequest) -> Data[WebhookDeliveryBody]:
    """Send a test event to the endpoint: type `webhook.test`, without data."""
    endpoint_id = request.ids["endpointId"]
    return Data(await commands.send_test(request.work, request.actor, request.new_id, endpoint_id))


@router.get(f"{ENDPOINT}/deliveries", access=READ_ONE)
async def list_webhook_deliveries(
    request: ApiRequest,
    limit: Limit = 30,
    cursor: Cursor = None,
    status: DeliveryStatus | None = None,
) -> Data[WebhookDeliveryList]:
    """List the deliveries to an endpoint, newest first, optionally by `status`.

    `circuit` says whether the endpoint is called now, and if not, when it is retried.
    """
    endpoint_id = request.ids["endpointId"]
    page = request.page("webhook deliveries", limit, cursor, endpoint_id, status)
    return Data(
        await queries.list_deliveries(request.work, request.actor, endpoint_id, page, status)
    )


@router.post(
    f"{ENDPOINT}/deliveries/{{deliveryId}}/redeliver", access=WRITE, errors=[ConflictError]
)
async def redeliver_webhook(request: ApiRequest) -> Data[WebhookDeliveryBody]:
    """Redeliver an event to an endpoint, with the same `webhook-id`."""
    endpoint_id, delivery_id = request.ids["endpointId"], request.ids["deliveryId"]
    return Data(
        await commands.redeliver(
            request.work, request.actor, request.new_id, endpoint_id, delivery_id
        )
    )
