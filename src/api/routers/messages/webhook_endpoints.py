"""Webhook endpoints of a workspace, what was delivered to them, and the secret that signs it."""

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
    """Get the secret that verifies what `send_webhook` sends, by Standard Webhooks.

    Reading it needs webhooks:write, which owners and administrators have: whoever holds it can
    sign in the workspace's name. It is made when it is first needed.
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
    """Create an endpoint that is told of the events in the log of the workspace.

    Its `secret` is shown in this answer only. A call is a POST of `type`, `timestamp`, `data` and
    some facts beside them, with the headers of Standard Webhooks; `webhook-id` is the same for all
    attempts. What is not answered with 2xx within 15 seconds is tried again after 5 s, 5 min,
    30 min, 2, 5, 10, 14, 20 and 24 h. After five failures in a row the `circuit` opens: the events
    wait in order, and one is tried after 10 s, then after twice as long each time, an hour at most.
    The first that arrives closes it, and the others follow. An answer 410 disables the endpoint,
    and so do three days without a success. Events that concern one user alone are not sent.
    """
    keys = request.services.keys
    return Data(await commands.create_endpoint(request.work, request.actor, keys, body))


@router.get(ENDPOINTS, access=READ)
async def list_webhook_endpoints(
    request: ApiRequest, limit: Limit = 30, cursor: Cursor = None
) -> Data[WebhookEndpointList]:
    """List endpoints, newest first, without their secrets, and whether each is called now."""
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
    """Change an endpoint; one that is enabled again is told of what happens from then on."""
    endpoint_id = request.ids["endpointId"]
    return Data(await commands.update_endpoint(request.work, request.actor, endpoint_id, body))


@router.delete(ENDPOINT, access=WRITE)
async def delete_webhook_endpoint(request: ApiRequest) -> Data[Deleted]:
    """Delete an endpoint; what is on its way to it is cancelled."""
    endpoint_id = request.ids["endpointId"]
    return Data(await commands.delete_endpoint(request.work, request.actor, endpoint_id))


@router.post(f"{ENDPOINT}/rotate-secret", access=WRITE)
async def rotate_webhook_endpoint_secret(request: ApiRequest) -> Data[IssuedWebhookEndpoint]:
    """Give an endpoint a new secret; the one it had signs too for 24 hours more."""
    keys, endpoint_id = request.services.keys, request.ids["endpointId"]
    return Data(await commands.rotate_secret(request.work, request.actor, keys, endpoint_id))


@router.post(f"{ENDPOINT}/test", access=WRITE, errors=[ConflictError])
async def test_webhook_endpoint(request: ApiRequest) -> Data[WebhookDeliveryBody]:
    """Send the endpoint a test: an event of the type `webhook.test` without data."""
    endpoint_id = request.ids["endpointId"]
    return Data(await commands.send_test(request.work, request.actor, request.new_id, endpoint_id))


@router.get(f"{ENDPOINT}/deliveries", access=READ_ONE)
async def list_webhook_deliveries(
    request: ApiRequest,
    limit: Limit = 30,
    cursor: Cursor = None,
    status: DeliveryStatus | None = None,
) -> Data[WebhookDeliveryList]:
    """List what goes and went to an endpoint, newest first, of one `status` if asked for.

    `circuit` says whether the endpoint is called now, and if not, when it is tried again.
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
    """Deliver an event to an endpoint once more; it keeps its `webhook-id`."""
    endpoint_id, delivery_id = request.ids["endpointId"], request.ids["deliveryId"]
    return Data(
        await commands.redeliver(
            request.work, request.actor, request.new_id, endpoint_id, delivery_id
        )
    )
