"""Reading `If-Match` and `expectedUpdatedAt` of a request (decisions C1, Concurrency)."""

import re
from datetime import datetime

from models.core.values import InvalidValueError, moment
from runtime.errors import ValidationError
from runtime.timestamps import truncate

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
        raise ValidationError.at(path, "must be the updatedAt that was read") from problem


def expected_version(header: str | None) -> int | None:
    """The version `If-Match` names, bare or in quotes; None for no condition or `*`.

    Raises `ValidationError` for anything else: an unreadable condition must not be skipped.
    """
    if header is None or header.strip() == "*":
        return None
    match = _VERSION.fullmatch(header.strip())
    if match is None:
        raise ValidationError.at("If-Match", "must be the version that was read")
    return int(match[1])
