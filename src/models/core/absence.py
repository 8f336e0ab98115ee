"""Absent, not null: what a wire model leaves out when a field has no value (decisions C1).

A field that may be None is left out of the JSON when it is None, and the JSON Schema says so: the
field is not required and allows no null. Only a field declared as `Nullable` is written as null.
"""

from functools import partial
from operator import is_
from types import UnionType
from typing import Annotated, Any, Final, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.fields import FieldInfo
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema
from typing_extensions import override

T = TypeVar("T")

_NULLABLE: Final = object()

Nullable = Annotated[T | None, _NULLABLE]
"""A field that the interface marks nullable: it is written as null when it has no value."""

_is_none = partial(is_, None)
_NULL: Final = {"type": "null"}


class AbsentNotNull(BaseModel):
    """A model that leaves out fields without a value, except fields declared as `Nullable`."""

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
