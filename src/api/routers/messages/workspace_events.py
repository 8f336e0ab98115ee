"""Operations on the log of a workspace, realtime connections, and endpoints of webhooks."""

from dataclasses import replace
from datetime import timedelta
from typing import Annotated

from pydantic import Field
from starlette.responses import Response

from api.kernel.routing import Access, ApiRequest, Data, Deletes, Router
from api.realtime import feeds
from models.core.access.rules import Scope
from models.core.references.rules import SubjectKind
from models.messages.realtime import Ticket, TicketStoreError, UnusableTicketError, mint
from models.messages.webhook_endpoints import store
from models.messages.webhook_signing import show_signing_secret
from models.workspace.feeds import list_events
from runtime.errors import ConflictError

router = Router(tags=["workspaces"])

Sequence = Annotated[int, Field(ge=0, le=2**63 - 1)]


@router.get(
    "/v1/workspaces/{workspaceId}/events",
    access=Access(scopes=[Scope.WORKSPACE_READ]),
    calls=list_events,
)
async def list_workspace_events(since: Sequence = 0) -> None:
    """List the events of a workspace after the event `since`, oldest first.

    Remember the last `seq` to miss nothing. Events of an item are visible with access to the item
    and the scope to read its kind; events for one user only, such as notifications, to that user.
    Events are kept for 30 days. Continue while there is a cursor, even if a page is short or empty.
    """


realtime_router = Router(tags=["realtime"])

_FOLLOWED_BY_PAGE = timedelta(minutes=15)
"""Then a page asks for another ticket, which a session that was signed out does not get."""

Since = Annotated[int, Field(ge=0, le=feeds.MOST_SINCE)]


@realtime_router.post(
    "/v1/workspaces/{workspaceId}/realtime/ticket",
    access=Access(
        credential="session", scopes=[Scope.WORKSPACE_READ], cookie=True, unattended=True, safe=True
    ),
    errors=[TicketStoreError],
)
async def create_realtime_ticket(request: ApiRequest) -> Data[Ticket]:
    """Create a ticket that opens one realtime connection within 30 seconds.

    `url` is for a WebSocket; over HTTP it is a stream of server-sent events. It is relative if the
    platform has no public URL. Needs a user session. Every call creates another ticket.
    """
    actor, until = request.actor, request.session_expires_at
    assert until is not None, "only a session comes in"
    if request.cookie is not None:
        until = min(until, request.work.now + _FOLLOWED_BY_PAGE)
    minted = await mint(request.work, actor.workspace_id, actor.user_id, until)
    url = feeds.connection_url(request.services.settings.public_url, minted.ticket)
    return Data(Ticket(ticket=minted.ticket, expires_at=minted.expires_at, url=url))


@realtime_router.get(
    feeds.PATH,
    # It uses the ticket.
    access=Access(credential="none", writes=True, transaction=False),
    media_type="text/event-stream",
    errors=[UnusableTicketError, TicketStoreError, feeds.TooManyStreamsError],
    headers=["Last-Event-ID"],
)
async def open_realtime_stream(
    request: ApiRequest, ticket: str, since: Since | None = None
) -> Response:
    """Follow a workspace with server-sent events, or a WebSocket at the same URL.

    The first message is `ready`, with the start of the feed in the log: `since` (or the header
    `Last-Event-ID`), else now. All others are events as in the list of events, in the same order,
    if visible to the member. The ticket can only be used once.
    """
    services = request.services
    after = feeds.resumed_at(request, since)
    services.streams.check(None)
    feed = await feeds.open_feed(services.database, services.hub, ticket, feeds.EventFeed)
    feed.cut_off = request.scope.get("extensions", {}).get(feeds.ABORT)
    events = feeds.with_keepalive(feed.events(services.hub, after))
    return feeds.EventStream(services.streams, feed.viewer.user_id, events)


endpoints_router = Router(tags=["webhooks"])


@endpoints_router.get(
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


@endpoints_router.post(
    ENDPOINTS,
    access=CREATE,
    status_code=201,
    errors=[ConflictError],
    calls=store.create_endpoint,
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


@endpoints_router.get(ENDPOINTS, access=replace(READ, cookie=True), calls=store.list_endpoints)
async def list_webhook_endpoints() -> None:
    """List endpoints, newest first, without secrets, with the state of each circuit."""


@endpoints_router.get(ENDPOINT, access=READ_ONE, calls=store.get_endpoint)
async def get_webhook_endpoint() -> None:
    """Get an endpoint, without its secret."""


@endpoints_router.patch(ENDPOINT, access=WRITE, calls=store.update_endpoint)
async def update_webhook_endpoint() -> None:
    """Change an endpoint. Once enabled again, it receives new events only."""


@endpoints_router.delete(
    ENDPOINT,
    access=WRITE,
    calls=store.delete_endpoint,
    deletes=Deletes(SubjectKind.WEBHOOK_ENDPOINT),
)
async def delete_webhook_endpoint() -> None:
    """Delete an endpoint, and cancel its pending deliveries."""


@endpoints_router.post(f"{ENDPOINT}/rotate-secret", access=WRITE, calls=store.rotate_secret)
async def rotate_webhook_endpoint_secret() -> None:
    """Rotate the secret of an endpoint. The old one also signs for 24 more hours."""


@endpoints_router.post(
    f"{ENDPOINT}/test", access=WRITE, errors=[ConflictError], calls=store.send_test
)
async def test_webhook_endpoint() -> None:
    """Send a test event to the endpoint: type `webhook.test`, without data."""


@endpoints_router.get(f"{ENDPOINT}/deliveries", access=READ_ONE, calls=store.list_deliveries)
async def list_webhook_deliveries() -> None:
    """List the deliveries to an endpoint, newest first, optionally by `status`.

    `circuit` says whether the endpoint is called now, and if not, when it is retried.
    """


@endpoints_router.post(
    f"{ENDPOINT}/deliveries/{{deliveryId}}/redeliver",
    access=WRITE,
    errors=[ConflictError],
    calls=store.redeliver,
)
async def redeliver_webhook() -> None:
    """Redeliver an event to an endpoint, with the same `webhook-id`."""
