"""The log of a workspace, and the realtime connections that follow it."""

from typing import Annotated

from pydantic import Field
from starlette.responses import Response

from api.kernel.routing import Access, ApiRequest, Data, Router
from api.realtime.event_streams import (
    ABORT,
    EventFeed,
    EventStream,
    TooManyStreamsError,
    with_keepalive,
)
from api.realtime.sockets import MOST_SINCE, PATH, connection_url, open_feed, resumed_at
from models.core.access.rules import Scope
from models.messages.realtime import Ticket, TicketStoreError, UnusableTicketError, mint
from models.workspace.feeds import list_events

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

Since = Annotated[int, Field(ge=0, le=MOST_SINCE)]


@realtime_router.post(
    "/v1/workspaces/{workspaceId}/realtime/ticket",
    access=Access(credential="session", scopes=[Scope.WORKSPACE_READ]),
    errors=[TicketStoreError],
)
async def create_realtime_ticket(request: ApiRequest) -> Data[Ticket]:
    """Create a ticket that opens one realtime connection within 30 seconds.

    `url` is for a WebSocket; over HTTP it is a stream of server-sent events. It is relative if the
    platform has no public URL. Needs a user session. Every call creates another ticket.
    """
    actor, until = request.actor, request.session_expires_at
    assert until is not None, "only a session comes in"
    minted = await mint(request.work, actor.workspace_id, actor.user_id, until)
    url = connection_url(request.services.settings.public_url, minted.ticket)
    return Data(Ticket(ticket=minted.ticket, expires_at=minted.expires_at, url=url))


@realtime_router.get(
    PATH,
    access=Access(credential="none", transaction=False),
    media_type="text/event-stream",
    errors=[UnusableTicketError, TicketStoreError, TooManyStreamsError],
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
    after = resumed_at(request, since)
    services.streams.check(None)
    feed = await open_feed(services.database, services.hub, ticket, EventFeed)
    feed.cut_off = request.scope.get("extensions", {}).get(ABORT)
    events = with_keepalive(feed.events(services.hub, after))
    return EventStream(services.streams, feed.viewer.user_id, events)
