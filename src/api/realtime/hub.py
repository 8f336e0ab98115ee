"""The hub of a process: reads the logs that the feeds of its clients follow, and sends presence."""

import asyncio
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from enum import IntEnum
from functools import cached_property
from uuid import UUID

import structlog
from fastapi.sse import format_sse_event
from pydantic_core import to_json

from models.core.access.rules import Principal, PrincipalType, Role
from models.core.base import Id, JsonObject
from models.messages.realtime import REPORT_SECONDS, present_in, report_presence
from models.messages.workspace_events.log import EventRow, event_body, grown_since, head, heads
from models.messages.workspace_events.rules import MEMBERSHIP, EventType, types_read_with
from models.people.members import roles_in
from models.workspace.feeds import Part, Viewer, read_part
from runtime.clock import utc_now, wait_until_set
from runtime.database import Database, UnitOfWork
from runtime.errors import RateLimitedError, UnavailableError
from runtime.ids import new_id
from runtime.observability.logs import describe

_FINAL_TEXT = 0x81


class Message:
    """One message; `seq` is the place in the log of one that is an event of it."""

    def __init__(self, content: bytes, seq: int | None = None) -> None:
        self.content = content
        self.seq = seq

    @classmethod
    def of(cls, body: JsonObject) -> "Message":
        """A message that is no event of the log."""
        return cls(to_json(body))

    @classmethod
    def event(cls, row: EventRow) -> "Message":
        """An event, as the list of events shows it."""
        return cls(event_body(row).model_dump_json(by_alias=True).encode(), row.seq)

    @cached_property
    def frame(self) -> bytes:
        """A whole frame of a WebSocket (RFC 6455, 5.2); what a server sends is not masked."""
        length = len(self.content)
        if length < 126:
            head = bytes((_FINAL_TEXT, length))
        elif length < 65536:
            head = bytes((_FINAL_TEXT, 126)) + length.to_bytes(2, "big")
        else:
            head = bytes((_FINAL_TEXT, 127)) + length.to_bytes(8, "big")
        return head + self.content

    @cached_property
    def server_sent(self) -> bytes:
        """A server-sent event, whose id is the place in the log."""
        id_ = None if self.seq is None else str(self.seq)
        return format_sse_event(id=id_, data_str=self.content.decode())


class End(IntEnum):
    """The reason a feed ends: status codes of RFC 6455, 7.4."""

    RESTART = 1012
    """The process ends; the client creates a ticket and continues after its last `seq`."""
    WITHDRAWN = 1008
    """The member left the workspace, or the session has ended."""
    TOO_SLOW = 1013
    """More is unread than is kept; the client continues after its last `seq`."""


class Feed(ABC):
    """One connection. The hub offers it messages; how they are sent, the connection knows."""

    def __init__(self, workspace_id: Id, user_id: Id, role: Role, until: datetime) -> None:
        self.workspace_id = workspace_id
        self.until = until
        """The end of the session that opened it, and so of the feed."""
        self.viewer = viewer(user_id, role)
        self.position = 0
        """The number up to which it has been sent what its reader sees of the log."""
        self.live = False
        """It has caught up: the hub sends what follows."""
        self.knows_presence = False
        """The presence of other members was sent."""
        self.over: End | None = None
        """The reason it has ended; then nothing more is sent."""

    def lasts(self) -> bool:
        """True until it has ended."""
        return self.over is None

    def has_role(self, role: Role) -> None:
        """The member has another role now."""
        if role is not self.viewer.role:
            self.viewer = viewer(self.viewer.user_id, role)

    @abstractmethod
    def offer(self, messages: Iterable[Message]) -> None:
        """Send these, without waiting; a client that leaves too much unread loses its feed."""

    @abstractmethod
    async def send(self, messages: Iterable[Message]) -> None:
        """Send these as fast as the client reads them: what it catches up on."""

    def end(self, why: End) -> None:
        """End the feed and its connection."""
        if self.over is None:
            self.over, self.live = why, False
            self.close(why)

    @abstractmethod
    def close(self, why: End) -> None:
        """Begin to end the connection."""


def viewer(user_id: Id, role: Role) -> Viewer:
    """A member in a session, as a reader of the log."""
    principal = Principal(type=PrincipalType.SESSION, id=user_id, user_id=user_id)
    return Viewer(user_id, role, types_read_with(principal.usable_scopes(role)))


log = structlog.get_logger()

POLL_SECONDS = 1.0
MOST_FEEDS = 5000
"""Connections that one process serves at once."""
MOST_OF_ONE_USER = 200
_ALL_TYPES = frozenset(one.value for one in EventType)


class WorkspaceFeeds:
    """The feeds of one workspace, and up to where its log was read for them."""

    def __init__(self, workspace_id: Id) -> None:
        self.workspace_id = workspace_id
        self.feeds: set[Feed] = set()
        self.position: int | None = None

    @property
    def user_ids(self) -> set[Id]:
        return {feed.viewer.user_id for feed in self.feeds}


class Hub:
    """All feeds of a process.

    Any number of processes have one side by side. NOTIFY names the log that grew. The hub also
    reads all logs once a second, because a notification may be lost. Every log is read once for all
    clients of its workspace, and the access to an item is queried once for all of them
    (docs/adr/0054).
    """

    PRESENCE = "presence:"
    """The prefix of a notification that names a workspace whose presence changed."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._workspaces: dict[Id, WorkspaceFeeds] = {}
        self._of_user: defaultdict[Id, int] = defaultdict(int)
        self._due: set[Id] = set()
        self._woken = asyncio.Event()
        self._all = False
        self.count = 0
        self.closing = False
        self.presence_due = asyncio.Event()
        """The presence in a workspace changed, in this or another process."""

    def grown(self, workspace_id: str) -> None:
        """The log of a workspace has grown, or its presence has changed."""
        if workspace_id.startswith(self.PRESENCE):
            self.presence_due.set()
            return
        with suppress(ValueError):
            self.wake([UUID(workspace_id)])

    def wake(self, workspace_ids: Iterable[Id]) -> None:
        """Read these logs, as far as they have readers."""
        due = [one for one in workspace_ids if one in self._workspaces]
        if due:
            self._due.update(due)
            self._woken.set()

    def wake_all(self) -> None:
        """Read every log that has readers."""
        self._all = True
        self._woken.set()

    def check(self, user_id: Id) -> None:
        """Raises UnavailableError and RateLimitedError when there is no room for another feed."""
        if self.closing or self.count >= MOST_FEEDS:
            raise UnavailableError("Too many open connections. Try again soon.")
        if self._of_user.get(user_id, 0) >= MOST_OF_ONE_USER:
            raise RateLimitedError("You have too many open connections. Close some.")

    def present(self) -> frozenset[tuple[Id, Id]]:
        """The workspaces and users of all feeds."""
        return frozenset(
            (id_, user_id)
            for id_, workspace in self._workspaces.items()
            for user_id in workspace.user_ids
        )

    def feeds_of(self, workspace_id: Id) -> Collection[Feed]:
        """The live feeds of a workspace."""
        workspace = self._workspaces.get(workspace_id)
        return [] if workspace is None else [feed for feed in workspace.feeds if feed.live]

    @contextmanager
    def serving(self, feed: Feed) -> Iterator[None]:
        """Count a feed among the feeds that are served. Raises the errors of `check`."""
        user_id = feed.viewer.user_id
        self.check(user_id)
        workspace = self._workspaces.setdefault(
            feed.workspace_id, WorkspaceFeeds(feed.workspace_id)
        )
        workspace.feeds.add(feed)
        self._of_user[user_id] += 1
        self.count += 1
        try:
            yield
        finally:
            self.presence_due.set()
            self.count -= 1
            self._of_user[user_id] -= 1
            if not self._of_user[user_id]:
                del self._of_user[user_id]
            workspace.feeds.discard(feed)
            if not workspace.feeds and self._workspaces.get(feed.workspace_id) is workspace:
                del self._workspaces[feed.workspace_id]

    async def catch_up(self, feed: Feed, since: int | None) -> None:
        """Send what the log holds behind `since`, then let the feed live; None begins now."""
        workspace = self._workspaces[feed.workspace_id]
        has_begun = False
        while not feed.live and feed.lasts():
            async with self._database.reading() as work:
                until = await head(work, feed.workspace_id)
                # Asked after the head: later changes of it are events behind the head.
                await self._refresh_roles(work, feed.workspace_id, [feed])
                if not feed.lasts():
                    return
                if not has_begun:
                    feed.position, has_begun = until if since is None else min(since, until), True
                    await feed.send([_ready(feed)])
                part = await self._behind(work, feed, until)
            await feed.send(Message.event(event) for event in part.seen_by(feed.viewer))
            feed.position = part.until
            if part.until == until:
                self._go_live(workspace, feed)

    def _go_live(self, workspace: WorkspaceFeeds, feed: Feed) -> None:
        """Let a feed live, unless the hub has come further than it; nothing is awaited here."""
        if workspace.position is None:
            workspace.position = feed.position
        feed.live = workspace.position <= feed.position
        if feed.live:
            self.wake([workspace.workspace_id])
            self.presence_due.set()

    async def _behind(self, work: UnitOfWork, feed: Feed, until: int) -> Part:
        if feed.position >= until:
            return Part((), {}, until)
        return await read_part(
            work,
            feed.workspace_id,
            feed.position,
            until,
            types=feed.viewer.types,
            user_ids=[feed.viewer.user_id],
        )

    async def _refresh_roles(
        self, work: UnitOfWork, workspace_id: Id, feeds: Collection[Feed]
    ) -> None:
        """Give feeds the roles their members have now, and end the feeds of members without one."""
        user_ids = {feed.viewer.user_id for feed in feeds}
        roles = await roles_in(work, workspace_id, user_ids)
        for feed in feeds:
            role = roles.get(feed.viewer.user_id)
            if role is None:
                feed.end(End.WITHDRAWN)
            else:
                feed.has_role(role)

    async def run(self) -> None:
        """Read and send for ever."""
        while True:
            woken = await wait_until_set(self._woken, POLL_SECONDS)
            everywhere = self._all or not woken
            self._woken.clear()
            self._all = False
            due, self._due = self._due & self._workspaces.keys(), set()
            self._end_expired_feeds(everywhere=everywhere)
            try:
                if self._workspaces and (due or everywhere):
                    await self._read_logs(None if everywhere else due)
            except Exception as error:  # noqa: BLE001  # the next look may go well
                log.warning("feeds_not_read", **describe(error))
                await asyncio.sleep(POLL_SECONDS)
                self.wake_all()

    def _end_expired_feeds(self, *, everywhere: bool) -> None:
        if not everywhere:
            return
        now = utc_now()
        for feed in [feed for workspace in self._workspaces.values() for feed in workspace.feeds]:
            if self.closing:
                feed.end(End.RESTART)
            elif feed.until <= now:
                feed.end(End.WITHDRAWN)

    async def _read_logs(self, due: Collection[Id] | None) -> None:
        """Read the logs of these workspaces, or of all that have grown, and send new events."""
        workspaces = {
            id_: workspace
            for id_, workspace in self._workspaces.items()
            if workspace.position is not None
        }
        async with self._database.reading() as work:
            wholes = await heads(work, workspaces if due is None else due & workspaces.keys())
            if due is None:
                due = await self._grown(work, workspaces, wholes)
            for id_, until in wholes.items():
                if id_ in due:
                    await self._advance(work, workspaces[id_], until)
                else:
                    workspaces[id_].position = max(workspaces[id_].position or 0, until)

    async def _grown(
        self, work: UnitOfWork, workspaces: Mapping[Id, WorkspaceFeeds], wholes: Mapping[Id, int]
    ) -> Collection[Id]:
        """The workspaces among these whose logs hold more than was read."""
        least = min((workspace.position or 0 for workspace in workspaces.values()), default=0)
        return await grown_since(work, workspaces, least, max(wholes.values(), default=0))

    async def _advance(self, work: UnitOfWork, workspace: WorkspaceFeeds, until: int) -> None:
        """Read the log of a workspace up to `until` and send it."""
        assert workspace.position is not None
        while workspace.position < until:
            part = await read_part(
                work,
                workspace.workspace_id,
                workspace.position,
                until,
                types=_ALL_TYPES,
                user_ids=workspace.user_ids,
            )
            if any(one.type in MEMBERSHIP for one in part.events):
                await self._refresh_roles(work, workspace.workspace_id, list(workspace.feeds))
            workspace.position = part.until
            _deliver(workspace, part)


def _deliver(workspace: WorkspaceFeeds, part: Part) -> None:
    """Send each live feed of a workspace what its reader sees; nothing is awaited here."""
    messages = {event.seq: Message.event(event) for event in part.events}
    decided: dict[tuple[Id, str], list[tuple[int, Message]]] = {}
    for feed in list(workspace.feeds):
        if not feed.live:
            continue
        viewer = feed.viewer
        key = viewer.user_id, viewer.role
        if key not in decided:
            decided[key] = [(event.seq, messages[event.seq]) for event in part.seen_by(viewer)]
        after, feed.position = feed.position, max(feed.position, part.until)
        seen = [message for seq, message in decided[key] if seq > after]
        if seen:
            feed.offer(seen)


def _ready(feed: Feed) -> Message:
    """The first message of a feed: the place from which it continues."""
    return Message.of({"type": "ready", "seq": feed.position})


PAUSE_SECONDS = 0.2
"""The pause in which arrivals and departures are gathered and published together."""
MOST_NAMED = 100


class Presence:
    """Publishes the presence of this process, and reads that of others."""

    def __init__(self, database: Database, hub: Hub) -> None:
        self._database = database
        self._hub = hub
        self._process_id = new_id()
        self._reported: frozenset[tuple[Id, Id]] = frozenset()
        self._published: Mapping[Id, frozenset[Id]] = {}

    async def run(self) -> None:
        """Report and publish until it is cancelled."""
        while True:
            try:
                await self._turn()
            except Exception as error:  # noqa: BLE001  # the next turn may go well
                log.warning("presence_not_published", **describe(error))
            await wait_until_set(self._hub.presence_due, REPORT_SECONDS)
            await asyncio.sleep(PAUSE_SECONDS)
            self._hub.presence_due.clear()

    async def _turn(self) -> None:
        here = self._hub.present()
        changed_places = {place for place, _ in here ^ self._reported}
        places = {place for place, _ in here}
        if here or self._reported:
            async with self._database.transaction() as work:
                await report_presence(work, self._process_id, here)
                present = await present_in(work, places)
            self._reported = here
            self._database.notify_readers(
                {f"{self._hub.PRESENCE}{place}" for place in changed_places}
            )
            self._publish(present)

    def _publish(self, present: Mapping[Id, Collection[Id]]) -> None:
        for place, users in present.items():
            now = frozenset(users)
            newcomers_only = now == self._published.get(place)
            message = _message(now)
            for feed in self._hub.feeds_of(place):
                may = EventType.MEMBER_ADDED in feed.viewer.types
                if may and not (newcomers_only and feed.knows_presence):
                    feed.knows_presence = True
                    feed.offer([message])
        self._published = {place: frozenset(users) for place, users in present.items()}


def _message(users: Collection[Id]) -> Message:
    named = [str(one) for one in sorted(users)[:MOST_NAMED]]
    return Message.of({"type": "presence", "count": len(users), "userIds": named})
