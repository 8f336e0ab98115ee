"""Revisions of rows: the next `updatedAt`, and the `If-Match` that expects one."""

import re
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from models.core.values import InvalidValueError, moment
from runtime.clock import truncate
from runtime.errors import ValidationError


def next_updated_at(updated_at: sa.ColumnElement[Any], now: datetime) -> sa.ColumnElement[datetime]:
    """Now, or one millisecond after the last change if that is later: it never repeats."""
    return sa.func.greatest(
        sa.literal(now, updated_at.type), updated_at + timedelta(milliseconds=1)
    )


_VERSION = re.compile(r'"?([1-9][0-9]{0,8})"?')


def read_if_match(header: str | None) -> datetime | None:
    """The `updatedAt` a client last read, bare or in quotes; None for no condition or `*`.

    Raises `ValidationError` for anything else: an unreadable condition must not be skipped.
    """
    if header is None or header.strip() == "*":
        return None
    return read_moment(header.strip().strip('"'), "If-Match")


def read_moment(text: str | None, path: str) -> datetime | None:
    """The `updatedAt` a client last read, None without one. Raises `ValidationError` at `path`."""
    if text is None:
        return None
    try:
        return truncate(moment(text))
    except InvalidValueError as problem:
        raise ValidationError.at(path, "must be the last updatedAt that you read") from problem


def expected_version(header: str | None) -> int | None:
    """The version `If-Match` names, bare or in quotes; None for no condition or `*`.

    Raises `ValidationError` for anything else: an unreadable condition must not be skipped.
    """
    if header is None or header.strip() == "*":
        return None
    match = _VERSION.fullmatch(header.strip())
    if match is None:
        raise ValidationError.at("If-Match", "must be the last version that you read")
    return int(match[1])
