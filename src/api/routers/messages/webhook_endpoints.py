"""Webhook endpoints of a workspace, what was delivered to them, and the secret that signs it."""

from dataclasses import replace

from api.kernel.routing import Access, Router
from models.core.access.rules import Scope
from models.messages.webhook_endpoints import commands, queries
from models.messages.webhook_signing import show_signing_secret
from runtime.errors import ConflictError

router = Router(tags=["webhooks"])


@router.get(
    "/v1/workspaces/{workspaceId}/webhook-signing-secret",
    access=Access(scopes=[Scope.WEBHOOKS_WRITE], writes=True),
    calls=show_signing_secret,
)
async def get_webhook_signing_secret() -> None:
    """Get the secret that verifies events of `send_webhook` (Standard Webhooks).

    Needs webhooks:write, which owners and administrators have: the secret can sign in the name of
    the workspace. It is created when first needed.
    """


ENDPOINTS = "/v1/workspaces/{workspaceId}/webhook-endpoints"
ENDPOINT = f"{ENDPOINTS}/{{endpointId}}"

_WRITE = [Scope.WEBHOOKS_WRITE]
READ = Access(scopes=[Scope.WEBHOOKS_READ])
READ_ONE = Access(scopes=[Scope.WEBHOOKS_READ], resource="endpoint")
CREATE = Access(scopes=_WRITE, idempotent=True)
WRITE = Access(scopes=_WRITE, resource="endpoint", idempotent=True)


@router.post(
    ENDPOINTS,
    access=CREATE,
    status_code=201,
    errors=[ConflictError],
    calls=commands.create_endpoint,
)
async def create_webhook_endpoint() -> None:
    """Create an endpoint that receives the events of the workspace.

    Its `secret` is only returned once. A delivery is a POST of `type`, `timestamp`, `data` and
    more, with the headers of Standard Webhooks; `webhook-id` is the same for all attempts. Without
    a 2xx response within 15 seconds it is retried after 5 s, 5 min, 30 min, 2, 5, 10, 14, 20 and 24
    h. After five consecutive failures the `circuit` opens: events wait in order, and one is retried
    after 10 s, doubling up to one hour. A success closes it, and the others follow. A 410 response,
    or three days without a success, disables the endpoint. Events for one user only are not sent.
    """


@router.get(ENDPOINTS, access=replace(READ, cookie=True), calls=queries.list_endpoints)
async def list_webhook_endpoints() -> None:
    """List endpoints, newest first, without secrets, with the state of each circuit."""


@router.get(ENDPOINT, access=READ_ONE, calls=queries.get_endpoint)
async def get_webhook_endpoint() -> None:
    """Get an endpoint, without its secret."""


@router.patch(ENDPOINT, access=WRITE, calls=commands.update_endpoint)
async def update_webhook_endpoint() -> None:
    """Change an endpoint. Once enabled again, it receives new events only."""


@router.delete(ENDPOINT, access=WRITE, calls=commands.delete_endpoint)
async def delete_webhook_endpoint() -> None:
    """Delete an endpoint, and cancel its pending deliveries."""


@router.post(f"{ENDPOINT}/rotate-secret", access=WRITE, calls=commands.rotate_secret)
async def rotate_webhook_endpoint_secret() -> None:
    """Rotate the secret of an endpoint. The old one also signs for 24 more hours."""


@router.post(f"{ENDPOINT}/test", access=WRITE, errors=[ConflictError], calls=commands.send_test)
async def test_webhook_endpoint() -> None:
    """Send a test event to the endpoint: type `webhook.test`, without data."""


@router.get(f"{ENDPOINT}/deliveries", access=READ_ONE, calls=queries.list_deliveries)
async def list_webhook_deliveries() -> None:
    """List the deliveries to an endpoint, newest first, optionally by `status`.

    `circuit` says whether the endpoint is called now, and if not, when it is retried.
    """


@router.post(
    f"{ENDPOINT}/deliveries/{{deliveryId}}/redeliver",
    access=WRITE,
    errors=[ConflictError],
    calls=commands.redeliver,
)
async def redeliver_webhook() -> None:
    """Redeliver an event to an endpoint, with the same `webhook-id`."""
