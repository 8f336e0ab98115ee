"""Identifiers of new entities: UUIDv7."""

import os
import time
import uuid
from datetime import datetime


def new_id() -> uuid.UUID:
    """A fresh UUIDv7 (RFC 9562 sections 5.7 and 6.2, method 3).

    48 bits of milliseconds, 12 of their fraction, so that ids of one process sort as they were
    made, and 62 random bits.
    """
    milliseconds, nanoseconds = divmod(time.time_ns(), 1_000_000)
    moment = milliseconds << 80 | nanoseconds * 4096 // 1_000_000 << 64
    random = int.from_bytes(os.urandom(8), "big") >> 2
    return uuid.UUID(int=moment | 0x7 << 76 | 0b10 << 62 | random)


def least_id(moment: datetime) -> uuid.UUID:
    """The least id of a moment's millisecond: `new_id` gave smaller ones before it."""
    return uuid.UUID(int=int(moment.timestamp() * 1000) << 80)


def parse_id(text: str) -> uuid.UUID | None:
    """The id a client wrote in canonical form, or None; odd spellings name nothing."""
    try:
        value = uuid.UUID(text)
    except ValueError:
        return None
    return value if str(value) == text.lower() else None
