"""Search on the wire."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from models.content.items.rules import ItemKind
from models.core.base import Id, Moment, Nullable, Shape

SearchText = Annotated[str, Field(min_length=1, max_length=200)]
"""The text to find in titles; `%` and `_` are ordinary characters."""


class HitKind(StrEnum):
    ITEM = "item"
    RECORD = "record"


class SearchHit(Shape):
    """An item, or a record with its database and the item that places it."""

    kind: HitKind
    id: Id
    title: str
    item_id: Id
    item_kind: ItemKind
    database_id: Id | None
    icon: str | None
    updated_at: Moment


class SearchResults(Shape):
    results: list[SearchHit]
    cursor: Nullable[str]
