"""Stages of an import, and the ids that imported rows get. Pure."""

import hashlib
import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any
from uuid import UUID

from pydantic import JsonValue, TypeAdapter
from pydantic import ValidationError as ShapeError

from models.core.base import Id
from models.core.problems import sentence

USER = "user"
"""The kind that references to people name."""


class Stage(StrEnum):
    """A part of a bundle that is applied together, in this order (decisions C14)."""

    CREATING = "creating"
    SCHEMA = "schema"
    RECORDS = "records"
    RELATIONS = "relations"
    FILES = "files"
    CONTENT = "content"
    AUTOMATIONS = "automations"


_ID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def imported_id(entry_id: Id, source_id: Id) -> Id:
    """The id that an import gives to what has `source_id` in its bundle.

    Repeating an import gives the same. The timestamp of the source's id is kept, so that rows sort
    by id as they did.
    """
    return UUID(imported_text(entry_id.hex, str(source_id)))


def imported_text(entry_hex: str, source_id: str) -> str:
    """`imported_id` as text from text, for very many; `entry_hex` are the digits of the entry."""
    own = source_id.replace("-", "")
    rest = hashlib.md5((entry_hex + own).encode(), usedforsecurity=False).hexdigest()
    return f"{source_id[:18]}-8{rest[:3]}-{rest[3:15]}"


def shape_problem(shape: TypeAdapter[Any], value: object, name: str) -> str | None:
    """The first thing of a value that its shape does not allow, as the end of a sentence."""
    try:
        shape.validate_python(value)
    except ShapeError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        return f"{'.'.join(map(str, (name, *first['loc'])))}: {sentence(first)}"
    return None


def ids_in(value: JsonValue) -> Iterator[str]:
    """The strings inside a JSON value that have the form of an id, keys of objects included."""
    if isinstance(value, str):
        if len(value) == 36 and _ID.fullmatch(value):
            yield value.lower()
    elif isinstance(value, list):
        for item in value:
            yield from ids_in(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from ids_in(key)
            yield from ids_in(item)


def rewritten(value: JsonValue, ids: Mapping[str, str]) -> JsonValue:
    """A JSON value in which each string that is a key of `ids` is replaced by what it maps to."""
    if isinstance(value, str):
        return ids.get(value.lower(), value) if len(value) == 36 else value
    if isinstance(value, list):
        return [rewritten(item, ids) for item in value]
    if isinstance(value, dict):
        # Keys have no call of their own: there are very many.
        return {
            (ids.get(key.lower(), key) if len(key) == 36 else key): rewritten(item, ids)
            for key, item in value.items()
        }
    return value
