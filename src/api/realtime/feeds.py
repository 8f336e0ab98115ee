"""Feeds as streams of server-sent events (HTML Living Standard, 9.2), and as WebSockets (RFC 6455).

FastAPI encodes the events and Starlette sends them. This module adds what they lack: limits for the
streams of a process and of a caller, an end of all of them at shutdown, and no transaction while
one is open. A WebSocket opens with a ticket.
"""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, TypeVar
from urllib.parse import parse_qsl, urlsplit

from fastapi.sse import KEEPALIVE_COMMENT, EventSourceResponse
from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive, Scope, Send
from typing_extensions import override

from api.kernel.responses import as_refusal, error_response
from api.realtime.hub import End, Feed, Hub, Message
from models.core.access.rules import Role
from models.core.base import Id
from models.messages.realtime import UnusableTicketError, redeem
from models.people.members import roles_in
from runtime import errors
from runtime.clock import wait_until_set
from runtime.database import Database

MOST_STREAMS = 100
"""Streams that one process serves at once."""
MOST_OF_ONE_CALLER = 25
KEEPALIVE_SECONDS = 10.0
"""The time a stream may be silent before a comment shows that it is open."""

_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
"""The second one tells a proxy in front not to buffer events."""


class TooManyStreamsError(errors.RateLimitedError):
    """One caller holds as many streams as it may."""

    def __init__(self) -> None:
        super().__init__(f"Limit of {MOST_OF_ONE_CALLER} open streams. Close one first.")


@dataclass(slots=True)
class Streams:
    """Streams of this process; once it is `closing`, each ends and its client reconnects."""

    open: Counter[Hashable] = field(default_factory=Counter)
    """Streams by their caller."""
    closing: bool = False

    def check(self, caller: Hashable) -> None:
        """Raises UnavailableError without room for another, TooManyStreamsError for one caller."""
        if self.open.total() >= MOST_STREAMS or self.closing:
            raise errors.UnavailableError("Too many open streams. Try again soon.")
        if self.open[caller] >= MOST_OF_ONE_CALLER:
            raise TooManyStreamsError

    @contextmanager
    def held(self, caller: Hashable) -> Iterator[None]:
        """Hold the place of one stream. Raises as `check` does."""
        self.check(caller)
        self.open[caller] += 1
        try:
            yield
        finally:
            self.open[caller] -= 1
            if not self.open[caller]:
                del self.open[caller]


class EventStream(EventSourceResponse):
    """Sends events as they come; the request's transaction has ended before the first."""

    def __init__(self, streams: Streams, caller: Hashable, events: AsyncIterator[bytes]) -> None:
        streams.check(caller)
        super().__init__(events, headers=_HEADERS)
        self._streams = streams
        self._caller = caller

    @override
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with AsyncExitStack() as stack:
            try:
                # Other streams may have opened while this request's transaction ended.
                stack.enter_context(self._streams.held(self._caller))
            except errors.PlatformError as error:
                await error_response(error)(scope, receive, send)
                return
            with suppress(ClientDisconnect):
                await super().__call__(scope, receive, send)


async def with_keepalive(events: AsyncIterator[bytes | None]) -> AsyncIterator[bytes]:
    """The events, with a comment whenever there was none for a while; None says "nothing new"."""
    loop = asyncio.get_running_loop()
    last = loop.time()
    async for one in events:
        if one is None and loop.time() - last < KEEPALIVE_SECONDS:
            continue
        last = loop.time()
        yield KEEPALIVE_COMMENT if one is None else one


ABORT = "workspace.abort"
"""Key of the extension by which a connection offers to be cut off."""
LIFETIME_SECONDS = 3600.0
"""Then the client comes back with another ticket."""
MOST_UNSENT = 1 << 20
"""Bytes that may wait for a client which does not read."""


class EventFeed(Feed):
    """A feed that a response takes its events from."""

    cut_off: Callable[[], object] | None = None
    """Ends the connection, whose response cannot end while its client reads nothing."""

    def __init__(self, workspace_id: Id, user_id: Id, role: Role, until: datetime) -> None:
        super().__init__(workspace_id, user_id, role, until)
        self._waiting: deque[bytes] = deque()
        self._size = 0
        self._given = asyncio.Event()
        self._taken = asyncio.Event()

    @override
    def offer(self, messages: Iterable[Message]) -> None:
        if self._size > MOST_UNSENT:
            self.end(End.TOO_SLOW)
            return
        for one in messages:
            self._put(one.server_sent)

    @override
    async def send(self, messages: Iterable[Message]) -> None:
        for one in messages:
            while self._size > MOST_UNSENT // 4 and self.over is None:
                self._taken.clear()
                await self._taken.wait()
            self._put(one.server_sent)

    @override
    def close(self, why: End) -> None:
        self._given.set()
        self._taken.set()
        if why is End.TOO_SLOW and self.cut_off is not None:
            self.cut_off()

    def _put(self, event: bytes) -> None:
        self._waiting.append(event)
        self._size += len(event)
        self._given.set()

    async def events(self, hub: Hub, since: int | None) -> AsyncIterator[bytes | None]:
        """The events for the client until the feed ends; None each time there was nothing."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + LIFETIME_SECONDS
        with hub.serving(self):
            catching_up = asyncio.create_task(hub.catch_up(self, since))
            try:
                while self.lasts() and not _failed(catching_up):
                    if self._waiting:
                        event = self._waiting.popleft()
                        self._size -= len(event)
                        self._taken.set()
                        yield event
                        continue
                    if loop.time() >= deadline:
                        return
                    self._given.clear()
                    pause = min(KEEPALIVE_SECONDS, max(0.0, deadline - loop.time()))
                    await wait_until_set(self._given, pause)
                    yield None
            finally:
                catching_up.cancel()


def _failed(task: "asyncio.Task[None]") -> bool:
    if not task.done() or task.cancelled() or task.exception() is None:
        return False
    error = task.exception()
    assert isinstance(error, Exception)
    as_refusal(error)
    return True


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
    services = scope["app"].state.services
    hub: Hub = services.hub
    try:
        ticket, since = _asked(scope)
        feed = await open_feed(services.database, hub, ticket, SocketFeed)
    except Exception as error:  # noqa: BLE001  # the client receives every error
        await refuse(as_refusal(error), scope, receive, send)
        return
    await serve(feed, hub, since, scope, receive, send)


def _asked(scope: Scope) -> tuple[str, int | None]:
    """The ticket, and the event after which the feed continues.

    Raises `NotFoundError`, `ValidationError` and `UnusableTicketError`.
    """
    if scope["path"] != PATH:
        raise errors.NotFoundError("path")
    given = _query(scope["query_string"])
    if "ticket" not in given:
        raise UnusableTicketError
    return given["ticket"], _since(given)


def _query(query: bytes) -> Mapping[str, str]:
    """The parameters. Raises `ValidationError` for one that is unknown or there twice."""
    given: dict[str, str] = {}
    for name, value in parse_qsl(query.decode("ascii", "replace"), keep_blank_values=True):
        if name not in _PARAMETERS or name in given:
            raise errors.ValidationError.at(name, "is unknown or was sent twice")
        given[name] = value
    return given


def _since(given: Mapping[str, str]) -> int | None:
    value = given.get("since")
    if value is None:
        return None
    if not value.isascii() or not value.isdigit() or len(value) > 19 or int(value) > MOST_SINCE:
        raise errors.ValidationError.at("since", "must be the seq of an event")
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


async def refuse(error: errors.PlatformError, scope: Scope, receive: Receive, send: Send) -> None:
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
