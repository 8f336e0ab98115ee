"""Messages of a feed: made once, whatever the number of clients and however they listen."""

from functools import cached_property

from fastapi.sse import format_sse_event
from pydantic_core import to_json

from models.core.base import JsonObject
from models.messages.workspace_events.rows import EventRow
from models.messages.workspace_events.shapes import event_body

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
