"""The ids a content names."""

from collections.abc import Iterator
from typing import NamedTuple

from models.core.base import Id
from runtime.ids import parse_id

NOUNS = {
    "fileId": "file",
    "viewId": "view",
    "recordId": "record",
    "databaseId": "database",
    "itemId": "item",
    "userId": "user",
    "blockId": "block",
}
"""The key an id stands under, and what it names."""


class Reference(NamedTuple):
    noun: str
    id: Id


def references(content: object) -> set[Reference]:
    """Everything named anywhere in a JSON value; what is no id names nothing."""
    return set(_named(content))


def _named(value: object) -> Iterator[Reference]:
    if isinstance(value, list):
        for entry in value:
            yield from _named(entry)
    elif isinstance(value, dict):
        for key, entry in value.items():
            if key in NOUNS and isinstance(entry, str):
                found = parse_id(entry)
                if found is not None:
                    yield Reference(NOUNS[key], found)
            else:
                yield from _named(entry)
