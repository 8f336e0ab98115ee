"""Parts of tables and wire shapes that every resource shares; absent fields in place of null."""

import uuid
from datetime import datetime
from functools import partial
from operator import is_
from types import UnionType
from typing import Annotated, Any, Final, TypeVar, Union, get_args, get_origin

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PlainSerializer,
    TypeAdapter,
    WithJsonSchema,
)
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema
from typing_extensions import TypeForm, override

from runtime.clock import wire_timestamp
from runtime.postgresql.schema import Timestamp, metadata

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

_NULLABLE: Final = object()

Nullable = Annotated[T | None, _NULLABLE]
"""A field that the interface marks nullable: it is written as null when it has no value."""

_is_none = partial(is_, None)
_NULL: Final = {"type": "null"}


class AbsentNotNull(BaseModel):
    """A model that leaves out fields without a value, except fields declared as `Nullable`.

    A field that may be None is left out of the JSON when it is None, and the JSON Schema says so:
    the field is not required and allows no null. Only a field declared as `Nullable` is written as
    null (interface.md#absent-and-null).
    """

    # Of hundreds of shapes that a process declares it uses a few: each is built at its first use.
    model_config = ConfigDict(defer_build=True)

    @classmethod
    @override
    def __get_pydantic_core_schema__(
        cls, source: type[BaseModel], handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        schema = handler(source)
        declared: Any = handler.resolve_ref_schema(schema)
        while declared["type"] != "model-fields":
            declared = declared["schema"]
        for name, field in declared["fields"].items():
            if _is_left_out(cls.__pydantic_fields__[name]):
                field["serialization_exclude_if"] = _is_none
        return schema

    @classmethod
    @override
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        schema = handler(core_schema)
        if handler.mode == "serialization":
            properties = handler.resolve_ref_schema(schema).get("properties", {})
            for name, field in cls.__pydantic_fields__.items():
                if _is_left_out(field):
                    key = field.serialization_alias or name
                    properties[key] = _without_null(properties[key])
        return schema


def _is_left_out(field: FieldInfo) -> bool:
    """True when the field may be None and is not declared as `Nullable`."""
    if _NULLABLE in field.metadata or get_origin(field.annotation) not in {Union, UnionType}:
        return False
    return type(None) in get_args(field.annotation)


def _without_null(schema: JsonSchemaValue) -> JsonSchemaValue:
    """The schema of the values that are no null."""
    described = {key: value for key, value in schema.items() if key not in {"anyOf", "default"}}
    branches = [branch for branch in schema["anyOf"] if branch != _NULL]
    return {**branches[0], **described} if len(branches) == 1 else {"anyOf": branches, **described}


Moment = Annotated[
    datetime,
    PlainSerializer(wire_timestamp, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
"""A timestamp on the wire: ISO 8601 UTC with milliseconds (interface.md#timestamps)."""

Id = uuid.UUID

InputId = Annotated[uuid.UUID, Field(strict=False)]
"""An id inside a body: JSON has only strings for it, so strictness stops here."""

LONGEST_LABEL = 200
Label = Annotated[str, Field(min_length=1, max_length=LONGEST_LABEL)]
"""Labels and names are 1 to 200 characters (interface.md#limits)."""

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


class Deleted(Shape):
    """The id of a deleted resource."""

    id: Id


class Input(BaseModel):
    """A body a client sends: strict types, camelCase keys only, unknown keys refused.

    See interface.md#bodies.
    """

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
