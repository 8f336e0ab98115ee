"""Parameters that several operations share, read without any guessing (decisions C1)."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Annotated, Any
from uuid import UUID

from fastapi import Header
from pydantic import BeforeValidator, WithJsonSchema

from models.core.pagination import DEFAULT_LIMIT, MAX_LIMIT, WHOLE_LIMIT
from models.core.preconditions import expected_version, read_if_match
from runtime.ids import parse_id

_COUNT = re.compile(r"0*([1-9][0-9]*)")
_SECONDS = re.compile(r'("?)([0-9]+)\1')
_PREFERENCE = re.compile(r'(?:[^,"]|"(?:\\.|[^"\\])*")+')
WAIT_SECONDS = 60
"""The longest that a caller may wait for work."""


def _limit(value: object, most: int = MAX_LIMIT) -> object:
    if not isinstance(value, str):
        return value
    count = _COUNT.fullmatch(value)
    if count is None:
        raise ValueError("The limit must be a whole number from 1.")
    # Python refuses to read a number of thousands of digits.
    return min(int(count[1][:9]), most)


def _flag(value: object) -> object:
    if not isinstance(value, str):
        return value
    if value not in {"true", "false"}:
        raise ValueError("A flag is either true or false.")
    return value == "true"


def _wait(value: object) -> object:
    if not isinstance(value, str):
        return value
    seconds = _SECONDS.fullmatch(value)
    if seconds is None or seconds[1]:
        raise ValueError("The wait must be a whole number of seconds.")
    return min(int(seconds[2].lstrip("0")[:9] or 0), WAIT_SECONDS)


def _id(value: object) -> object:
    if not isinstance(value, str):
        return value
    parsed = parse_id(value)
    if parsed is None:
        raise ValueError("An id is a UUID such as 0198c5c2-7a3b-7c1d-9e4f-2b6a8d1c0e5f.")
    return parsed


Limit = Annotated[
    int,
    BeforeValidator(_limit),
    WithJsonSchema({"type": "integer", "minimum": 1, "default": DEFAULT_LIMIT}),
]
"""The number of rows to show: default 30, more than 100 is read as 100."""

WholeLimit = Annotated[
    int,
    BeforeValidator(partial(_limit, most=WHOLE_LIMIT)),
    WithJsonSchema({"type": "integer", "minimum": 1, "default": WHOLE_LIMIT}),
]
"""The number of rows to show of a list that is answered whole by default, up to 1000 rows."""

Cursor = Annotated[str | None, WithJsonSchema({"type": "string"})]
"""The end of the previous page."""

Flag = Annotated[bool, BeforeValidator(_flag), WithJsonSchema({"type": "boolean"})]
"""`true` or `false`, nothing else."""

QueryId = Annotated[
    UUID, BeforeValidator(_id), WithJsonSchema({"type": "string", "format": "uuid"})
]
"""An id given in the query."""


WaitSeconds = Annotated[
    int,
    BeforeValidator(_wait),
    WithJsonSchema({"type": "integer", "minimum": 0, "default": 0}),
]
"""The seconds to wait until the work has ended; more than 60 is read as 60."""


def preferred_wait(headers: Sequence[bytes]) -> int | None:
    """The seconds of `Prefer: wait=30` (RFC 7240), at most `WAIT_SECONDS`; None without a wait.

    The first `wait` counts. What cannot be read is no preference.
    """
    for preference in _PREFERENCE.findall(b",".join(headers).decode("latin-1")):
        name, _, value = preference.partition(";")[0].partition("=")
        if name.strip().lower() == "wait":
            seconds = _SECONDS.fullmatch(value.strip())
            return (seconds and min(int(seconds[2].lstrip("0")[:9] or 0), WAIT_SECONDS)) or None
    return None


@dataclass(frozen=True, slots=True)
class Precondition:
    """Marks the parameter of an endpoint that is read from the header `If-Match`."""

    read: Callable[[str | None], Any]


IfUnchanged = Annotated[
    datetime | None,
    Precondition(read_if_match),
    Header(
        alias="If-Match",
        description="The `updatedAt` that was read: what was changed since is left as it is.",
    ),
    WithJsonSchema({"type": "string"}),
]
"""The `updatedAt` that the caller knows, None for any."""

IfVersion = Annotated[
    int | None,
    Precondition(expected_version),
    Header(
        alias="If-Match",
        description="The version that was read: what was changed since is left as it is.",
    ),
    WithJsonSchema({"type": "string"}),
]
"""The version that the caller knows, None for any."""
