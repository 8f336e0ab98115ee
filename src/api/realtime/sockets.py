"""Opening a feed with a ticket, and serving it as a WebSocket (RFC 6455)."""

import asyncio
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Protocol, TypeVar
from urllib.parse import parse_qsl, urlsplit

from starlette.requests import Request
from starlette.types import Receive, Scope, Send
from typing_extensions import override

from api.kernel.responses import as_refusal, error_response
from api.realtime.hub import End, Feed, Hub, Message
from models.messages.realtime import UnusableTicketError, redeem
from models.people.members import roles_in
from runtime.database import Database
from runtime.errors import NotFoundError, PlatformError, ValidationError

if TYPE_CHECKING:
    from api.kernel.services import Services


PATH = "/v1/realtime"
MOST_SINCE = 2**63 - 1
_PARAMETERS = frozenset({"ticket", "since"})

F = TypeVar("F", bound=Feed)


async def open_feed(database: Database, hub: Hub, ticket: str, kind: type[F]) -> F:
    """The feed of a ticket, which is thereby used.

    Raises `UnusableTicketError`, also for a member who has left since, `TicketStoreError`, and what
    `Hub.check` raises.
    """
    async with database.transaction() as work:
        connection = await redeem(work, ticket)
        roles = await roles_in(work, connection.workspace_id, [connection.user_id])
        now: datetime = work.now
    role = roles.get(connection.user_id)
    if role is None or connection.session_expires_at <= now:
        raise UnusableTicketError
    hub.check(connection.user_id)
    return kind(connection.workspace_id, connection.user_id, role, connection.session_expires_at)


async def serve_socket(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a WebSocket's handshake, and serve the connection."""
    services: Services = scope["app"].state.services
    try:
        ticket, since = _asked(scope)
        feed = await open_feed(services.database, services.hub, ticket, SocketFeed)
    except Exception as error:  # noqa: BLE001  # the client receives every error
        await refuse(as_refusal(error), scope, receive, send)
        return
    await serve(feed, services.hub, since, scope, receive, send)


def _asked(scope: Scope) -> tuple[str, int | None]:
    """The ticket, and the event after which the feed continues.

    Raises `NotFoundError`, `ValidationError` and `UnusableTicketError`.
    """
    if scope["path"] != PATH:
        raise NotFoundError("path")
    given = _query(scope["query_string"])
    if "ticket" not in given:
        raise UnusableTicketError
    return given["ticket"], _since(given)


def _query(query: bytes) -> Mapping[str, str]:
    """The parameters. Raises `ValidationError` for one that is unknown or there twice."""
    given: dict[str, str] = {}
    for name, value in parse_qsl(query.decode("ascii", "replace"), keep_blank_values=True):
        if name not in _PARAMETERS or name in given:
            raise ValidationError.at(name, "is unknown or was sent twice")
        given[name] = value
    return given


def _since(given: Mapping[str, str]) -> int | None:
    value = given.get("since")
    if value is None:
        return None
    if not value.isascii() or not value.isdigit() or len(value) > 19 or int(value) > MOST_SINCE:
        raise ValidationError.at("since", "must be the seq of an event")
    return int(value)


def resumed_at(request: Request, since: int | None) -> int | None:
    """The event after which a stream continues: from the query, or from the browser's
    Last-Event-ID.
    """
    last = request.headers.get("last-event-id")
    return since if last is None or since is not None else _since({"since": last})


def connection_url(public_url: str | None, ticket: str) -> str:
    """The URL of the WebSocket that a ticket opens; relative where no public URL is set.

    The host of the request is not asked: a client may name any.
    """
    relative = f"{PATH}?ticket={ticket}"
    if public_url is None:
        return relative
    public = urlsplit(public_url)
    scheme = "wss" if public.scheme == "https" else "ws"
    return f"{scheme}://{public.netloc}{public.path}{relative}"


WRITER = "workspace.writer"
"""Key of the extension by which a connection offers its `Writer`."""


class Writer(Protocol):
    """The connection below a feed."""

    def write_frames(self, frames: bytes) -> None:
        """Write without waiting; a client that leaves too much unread is cut off."""

    def close_with(self, code: int) -> None:
        """Begin to end the connection with a status code."""


class SocketFeed(Feed):
    """A feed that writes to its connection."""

    writer: Writer
    asgi: Send

    @override
    def offer(self, messages: Iterable[Message]) -> None:
        self.writer.write_frames(b"".join(one.frame for one in messages))

    @override
    async def send(self, messages: Iterable[Message]) -> None:
        for one in messages:
            # The server waits here until the client has read.
            await self.asgi({"type": "websocket.send", "text": one.content.decode()})

    @override
    def close(self, why: End) -> None:
        self.writer.close_with(why)


async def refuse(error: PlatformError, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a handshake with a refusal, as any request is answered."""
    await receive()
    await error_response(error)(scope, receive, send)


async def serve(
    feed: SocketFeed, hub: Hub, since: int | None, scope: Scope, receive: Receive, send: Send
) -> None:
    """Serve an opened connection until one of its sides ends it."""
    await receive()
    feed.writer, feed.asgi = scope["extensions"][WRITER], send
    with hub.serving(feed):
        await send({"type": "websocket.accept"})
        catching_up = asyncio.create_task(_catching_up(feed, hub, since))
        try:
            # Clients have nothing to say; what they send ends the connection.
            if (await receive())["type"] == "websocket.receive":
                feed.end(End.WITHDRAWN)
        finally:
            catching_up.cancel()


async def _catching_up(feed: SocketFeed, hub: Hub, since: int | None) -> None:
    try:
        await hub.catch_up(feed, since)
    except Exception as error:  # noqa: BLE001  # the handshake is over, so it can only end
        as_refusal(error)
        feed.end(End.RESTART)
