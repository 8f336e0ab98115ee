"""Tickets of realtime connections, and the connection of clients that use server-sent events."""

from typing import Annotated

from pydantic import Field
from starlette.responses import Response

from api.kernel.event_streams import EventStream, TooManyStreamsError, with_keepalive
from api.kernel.routing import Access, ApiRequest, Data, Router
from api.realtime.opening import MOST_SINCE, PATH, connection_url, open_feed, resumed_at
from api.realtime.sse import ABORT, EventFeed
from models.core.access.rules import Scope
from models.messages.realtime_tickets.commands import mint
from models.messages.realtime_tickets.errors import TicketStoreError, UnusableTicketError
from models.messages.realtime_tickets.shapes import Ticket

router = Router(tags=["realtime"])

Sequence = Annotated[int, Field(ge=0, le=MOST_SINCE)]


@router.post(
    "/v1/workspaces/{workspaceId}/realtime/ticket",
    access=Access(credential="session", scopes=[Scope.WORKSPACE_READ]),
    errors=[TicketStoreError],
)
async def create_realtime_ticket(request: ApiRequest) -> Data[Ticket]:
    """Mint a ticket that opens one realtime connection within 30 seconds.

    `url` is that of a WebSocket; opened by http instead, it is a stream of server-sent events.
    Where the platform does not know its public URL, it is relative to this one. Only a user's
    session gets a ticket. Every call mints another.
    """
    actor, until = request.actor, request.session_expires_at
    assert until is not None, "only a session comes in"
    minted = await mint(request.work, actor.workspace_id, actor.user_id, until)
    url = connection_url(request.services.settings.public_url, minted.ticket)
    return Data(Ticket(ticket=minted.ticket, expires_at=minted.expires_at, url=url))


@router.get(
    PATH,
    access=Access(credential="none", transaction=False),
    media_type="text/event-stream",
    errors=[UnusableTicketError, TicketStoreError, TooManyStreamsError],
    headers=["Last-Event-ID"],
)
async def open_realtime_stream(
    request: ApiRequest, ticket: str, since: Sequence | None = None
) -> Response:
    """Follow a workspace by server-sent events, or by a WebSocket at the same URL.

    The first message is `ready`, with the place in the log from which the feed goes on: `since`
    (or the header `Last-Event-ID`), else now. Every further one is an event as the list of events
    shows it, in the same order, as far as the member may see it. The ticket is used up.
    """
    services = request.services
    after = resumed_at(request, since)
    services.streams.check(None)
    feed = await open_feed(services.database, services.hub, ticket, EventFeed)
    feed.cut_off = request.scope.get("extensions", {}).get(ABORT)
    events = with_keepalive(feed.events(services.hub, after))
    return EventStream(services.streams, feed.viewer.user_id, events)
