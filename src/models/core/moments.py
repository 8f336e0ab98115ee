"""Points in time that clients send."""

from datetime import datetime
from typing import Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema

from models.core.values import InvalidValueError, moment
from runtime.timestamps import truncate


def _moment(value: object) -> datetime | None:
    try:
        return None if value is None else truncate(moment(value))
    except InvalidValueError as problem:
        raise ValueError(str(problem)) from problem


InputMoment = Annotated[
    datetime,
    BeforeValidator(_moment),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
"""A date and time with its offset from UTC (RFC 3339)."""

MomentText = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
"""The same as text, which the command reads."""
