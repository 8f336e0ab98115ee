"""The precondition a client may put on a change (decisions C1, Concurrency)."""

from datetime import datetime

from models.databases.rules.values import FieldValueError, moment
from runtime.clock import truncate
from runtime.errors import ValidationError


def read_if_match(header: str | None) -> datetime | None:
    """The `updatedAt` a client last read, bare or in quotes; None for no condition or `*`.

    Raises `ValidationError` for anything else: an unreadable condition must not be skipped.
    """
    if header is None or header.strip() == "*":
        return None
    return read_moment(header.strip().strip('"'), "If-Match")


def read_moment(written: str | None, path: str) -> datetime | None:
    """The `updatedAt` a client last read, None without one. Raises `ValidationError` at `path`."""
    if written is None:
        return None
    try:
        return truncate(moment(written))
    except FieldValueError as problem:
        raise ValidationError.at(path, "must be the updatedAt that was read") from problem
