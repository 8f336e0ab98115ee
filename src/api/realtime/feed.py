"""The feed of one client: its reader, the place it has come to, and the messages it gets."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from datetime import datetime
from enum import IntEnum
from functools import cached_property

from fastapi.sse import format_sse_event
from pydantic_core import to_json

from models.core.access.rules import Principal, PrincipalType, Role
from models.core.base import Id, JsonObject
from models.messages.workspace_events.log import EventRow, event_body
from models.messages.workspace_events.rules import types_read_with
from models.workspace.feeds import Viewer

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
