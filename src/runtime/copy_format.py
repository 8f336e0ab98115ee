"""The binary format of COPY (PostgreSQL's manual, "COPY", "Binary Format").

PostgreSQL takes ids, moments and numbers in it as they are, and does not look for escapes in texts.
"""

import struct
from datetime import UTC, datetime
from uuid import UUID

HEADER = b"PGCOPY\n\xff\r\n\x00" + bytes(8)
TRAILER = b"\xff\xff"

LENGTH = struct.Struct(">i")
"""The length of a value, which stands before it."""
LENGTH_OF_JSON = struct.Struct(">ib")
"""The length of JSON for JSONB, which is one more than that of its text, and its version."""

_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)


def columns(count: int) -> bytes:
    """The beginning of a row of so many columns."""
    return struct.pack(">h", count)


def value(content: UUID | datetime | bool | int | str | None) -> bytes:
    """A value of a column: UUID, TIMESTAMPTZ, BOOLEAN, BIGINT or TEXT, by its type."""
    match content:
        case None:
            return LENGTH.pack(-1)
        case UUID():
            raw = content.bytes
        case datetime():
            since = content - _EPOCH
            raw = struct.pack(
                ">q", since.days * 86_400_000_000 + since.seconds * 1_000_000 + since.microseconds
            )
        case bool():
            raw = bytes([content])
        case int():
            raw = struct.pack(">q", content)
        case str():
            raw = content.encode()
    return LENGTH.pack(len(raw)) + raw
