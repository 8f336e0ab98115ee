"""Marks for the OpenAPI document: schemas of free values, and deprecated parts."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import Any, get_args

from pydantic import BaseModel, GetJsonSchemaHandler, WithJsonSchema
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema

from models.core.base import JsonObject

REFERENCE = "x-documented-as"
"""The place where the document refers to a component; the writer of the document resolves it."""


def documented_as(*components: str) -> WithJsonSchema:
    """Say that a free JSON value is one of these components; it is validated elsewhere."""
    references = [{REFERENCE: name} for name in components]
    return WithJsonSchema(references[0] if len(references) == 1 else {"anyOf": references})


ID: JsonObject = {"type": "string", "format": "uuid"}
MOMENT: JsonObject = {"type": "string", "format": "date-time"}
TEXT: JsonObject = {"type": "string"}
COUNT: JsonObject = {"type": "integer"}
FLAG: JsonObject = {"type": "boolean"}


def object_of(always: str, /, **properties: JsonObject) -> JsonObject:
    """The schema of an object with these properties; `always` names the required ones."""
    return {"type": "object", "required": always.split(), "properties": properties}


def array_of(items: JsonObject) -> JsonObject:
    return {"type": "array", "items": items}


TEMPORAL = object_of("workflowId", workflowId=TEXT, uiUrl=TEXT)
"""The execution that carries something out."""


@dataclass(frozen=True, slots=True)
class Deprecated:
    """Deprecated since a day, and served until the day of its sunset at least.

    An operation is declared with `deprecated=Deprecated(...)`. A parameter of the query, or a field
    of a body or an answer, has one among the marks of its type: `Annotated[str, Deprecated(...)]`.
    The API tells the users of such parts (docs/compatibility.md).
    """

    since: date
    sunset: date

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {**handler(schema), **self.document()}

    def document(self) -> dict[str, Any]:
        """The keys of its description in the document."""
        return {"deprecated": True, "x-sunset": self.sunset.isoformat()}


def marks_of(annotation: object) -> list[Deprecated]:
    """The marks of a type itself."""
    marks = getattr(annotation, "__metadata__", ())
    return [mark for mark in marks if isinstance(mark, Deprecated)]


@cache
def deprecated_in_answer(endpoint: Callable[..., Any]) -> Sequence[Deprecated]:
    """The marks of all fields that the answer of an endpoint may have."""
    return list(_within(inspect.signature(endpoint, eval_str=True).return_annotation, set()))


@cache
def may_use_deprecated(shape: object) -> bool:
    """True for a body in which some field is deprecated, at any depth."""
    return any(True for _ in _within(shape, set()))


def deprecated_in_body(value: object) -> Iterator[Deprecated]:
    """The marks of the fields that a body was sent with."""
    if isinstance(value, BaseModel):
        for name in value.model_fields_set:
            yield from _marks(type(value).model_fields[name])
            yield from deprecated_in_body(getattr(value, name))
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from deprecated_in_body(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from deprecated_in_body(one)


def _within(annotation: object, seen: set[object]) -> Iterator[Deprecated]:
    yield from marks_of(annotation)
    if inspect.isclass(annotation) and issubclass(annotation, BaseModel):
        if annotation in seen:
            return
        seen.add(annotation)
        for field in annotation.model_fields.values():
            yield from _marks(field)
            yield from _within(field.annotation, seen)
    for argument in get_args(annotation):
        yield from _within(argument, seen)


def _marks(field: FieldInfo) -> Iterator[Deprecated]:
    return (mark for mark in field.metadata if isinstance(mark, Deprecated))
