"""The formats of COPY (PostgreSQL's manual, "COPY", "File Formats").

In the binary format PostgreSQL takes ids, times and numbers as they are, and does not search texts
for escapes. Where ids and times are texts already, the text format takes less.
"""

import struct
from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID

HEADER = b"PGCOPY\n\xff\r\n\x00" + bytes(8)
TRAILER = b"\xff\xff"

LENGTH = struct.Struct(">i")
"""The length of a value, which precedes it."""
LENGTH_OF_JSON = struct.Struct(">ib")
"""The length of JSON for JSONB, which is one more than that of its text, and its version."""

NULL = "\\N"
_ESCAPES = str.maketrans({"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"})

_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)


def columns(count: int) -> bytes:
    """The beginning of a row with this number of columns."""
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


def text_column(values: Sequence[bool | int | str | None]) -> Sequence[str]:
    """The values of a column as the lines of the text format have them."""
    texts = [one if type(one) is str else str(one) for one in values]
    together = "".join(texts)
    if any(one in together for one in "\\\n\r\t"):
        texts = [one.translate(_ESCAPES) for one in texts]
    if None in values:
        return [NULL if one is None else text for one, text in zip(values, texts, strict=True)]
    return texts
