"""References: what an operation names that another before it makes. Pure.

Anywhere in an input, the object `{"ref": "tasks"}` stands for the id of what the operation with
that `ref` makes; `{"ref": "tasks.views.board"}` for the id of one of its parts.
"""

import re
from collections.abc import Iterator, Mapping
from typing import TypeGuard

from pydantic import JsonValue

from models.core.base import EXAMPLE_ID, Id, JsonObject
from runtime.errors import ValidationError

_REF = "ref"
NAME = r"^[a-z][a-z0-9_]{0,62}$"
NAMED = r"[a-z][a-z0-9_]{0,62}(\.[a-z0-9_]{1,63}){0,2}"

Names = Mapping[str, Id]
"""The ids of what was made, by name."""


def is_reference(value: object) -> TypeGuard[dict[str, str]]:
    """True when a value stands for the id of something that is made."""
    if not (isinstance(value, dict) and value.keys() == {_REF}):
        return False
    named = value[_REF]
    return isinstance(named, str) and re.fullmatch(NAMED, named) is not None


def named_in(value: object) -> Iterator[str]:
    """Every name that a value refers to, at any depth."""
    if is_reference(value):
        yield value[_REF]
    elif isinstance(value, dict):
        for part in value.values():
            yield from named_in(part)
    elif isinstance(value, list):
        for part in value:
            yield from named_in(part)


def refs_in(value: object) -> set[str]:
    """The refs of the operations that a value refers to."""
    return {name.partition(".")[0] for name in named_in(value)}


def resolved(parameters: JsonObject, names: Names) -> JsonObject:
    """The input with ids in the place of references. Raises `ValidationError` for an unknown."""
    return {key: _resolved(part, names) for key, part in parameters.items()}


def _resolved(value: JsonValue, names: Names) -> JsonValue:
    if is_reference(value):
        found = names.get(value[_REF])
        if found is None:
            raise ValidationError(f"Nothing of the name {value[_REF]} was made.")
        return str(found)
    if isinstance(value, dict):
        return {key: _resolved(part, names) for key, part in value.items()}
    if isinstance(value, list):
        return [_resolved(part, names) for part in value]
    return value


def with_placeholders(parameters: JsonObject) -> JsonObject:
    """The input with some id in the place of every reference, so that its shape can be read."""
    return {key: _placeholder(part) for key, part in parameters.items()}


def _placeholder(value: JsonValue) -> JsonValue:
    if is_reference(value):
        return EXAMPLE_ID
    if isinstance(value, dict):
        return {key: _placeholder(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_placeholder(part) for part in value]
    return value
