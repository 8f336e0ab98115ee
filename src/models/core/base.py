"""Parts that the tables and wire shapes of every noun share."""

import uuid
from datetime import datetime
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, TypeAdapter, WithJsonSchema
from pydantic.alias_generators import to_camel
from typing_extensions import TypeForm

from models.core.absence import AbsentNotNull, Nullable
from runtime.schema import Timestamp, metadata
from runtime.timestamps import wire_timestamp

__all__ = [
    "EXAMPLE_ID",
    "Color",
    "Icon",
    "Id",
    "Input",
    "InputId",
    "JsonObject",
    "Label",
    "Moment",
    "Nullable",
    "Order",
    "Shape",
    "Timestamp",
    "deferred_adapter",
    "example",
    "metadata",
]

T = TypeVar("T")

Moment = Annotated[
    datetime,
    PlainSerializer(wire_timestamp, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
"""A timestamp on the wire: ISO 8601 UTC with milliseconds (interface, general rule 4)."""

Id = uuid.UUID

InputId = Annotated[uuid.UUID, Field(strict=False)]
"""An id inside a body: JSON has only strings for it, so strictness stops here."""

Label = Annotated[str, Field(min_length=1, max_length=200)]
"""Labels and names are 1 to 200 characters (decisions C3)."""

Icon = Annotated[str, Field(min_length=1, max_length=100)]
Color = Annotated[str, Field(min_length=1, max_length=32)]
Order = Annotated[float, Field(allow_inf_nan=False, ge=-1e15, le=1e15)]
"""The position of something among its siblings; the lowest comes first."""

JsonObject = dict[str, Any]


class Shape(AbsentNotNull):
    """A body on the wire: camelCase keys, absent without a value; read from rows by attribute."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        from_attributes=True,
    )


class Input(BaseModel):
    """A body a client sends: strict types, camelCase keys only, unknown keys refused (C1)."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_name=False,
        validate_by_alias=True,
        extra="forbid",
        strict=True,
        defer_build=True,
    )


_DEFERRED = ConfigDict(defer_build=True)


def deferred_adapter(shape: TypeForm[T]) -> TypeAdapter[T]:
    """Reads and writes values of a shape; it is built when the first of them comes."""
    is_model = isinstance(shape, type) and issubclass(shape, BaseModel)
    return TypeAdapter(shape, config=None if is_model else _DEFERRED)


EXAMPLE_ID = "0198c5c2-7a3b-7c1d-9e4f-2b6a8d1c0e5f"
"""The id that examples in the documentation show."""


def example(body: JsonObject) -> ConfigDict:
    """The configuration of a body that documentation shows filled in, valid as it stands."""
    return ConfigDict(json_schema_extra={"examples": [body]})
