"""Identifiers: UUIDv7 for new entities, UUIDv5 for those derived from a business key."""

import os
import time
import uuid
from datetime import datetime

# The namespace of every derived id; changing it would orphan deduplication keys.
_NAMESPACE = uuid.UUID("6f6a9f0e-52a5-5cb4-9f5e-0d2c6f3b7a11")


def new_id() -> uuid.UUID:
    """A fresh UUIDv7 (RFC 9562 sections 5.7 and 6.2, method 3).

    48 bits of milliseconds, 12 of their fraction, so that ids of one process sort as they were
    made, and 62 random bits.
    """
    milliseconds, nanoseconds = divmod(time.time_ns(), 1_000_000)
    value = milliseconds << 80
    value |= 0x7 << 76
    value |= (nanoseconds * 4096 // 1_000_000) << 64
    value |= 0b10 << 62
    value |= int.from_bytes(os.urandom(8), "big") & ((1 << 62) - 1)
    return uuid.UUID(int=value)


def least_id(moment: datetime) -> uuid.UUID:
    """The least id of a moment's millisecond: `new_id` gave smaller ones before it."""
    return uuid.UUID(int=int(moment.timestamp() * 1000) << 80)


def derived_id(*parts: object) -> uuid.UUID:
    """The UUIDv5 that the same parts always give, so that a repeated request makes one entity."""
    return uuid.uuid5(_NAMESPACE, "\x1f".join(str(part) for part in parts))


def parse_id(text: str) -> uuid.UUID | None:
    """The id a client wrote in canonical form, or None; odd spellings name nothing."""
    try:
        value = uuid.UUID(text)
    except ValueError:
        return None
    return value if str(value) == text.lower() else None
