"""Search: finding the items and records of a workspace by their titles."""

from enum import StrEnum
from typing import Annotated, Any

import sqlalchemy as sa
from pydantic import Field

from models.content.items.queries import closed_items, items_titled
from models.content.items.rules import ItemKind
from models.core.access.rules import Actor, Scope
from models.core.base import Id, Moment, Nullable, Shape
from models.core.pagination import PageRequest
from models.data.records.search import records_titled
from runtime.database import UnitOfWork

SearchText = Annotated[str, Field(min_length=1, max_length=200)]
"""The text to find in titles; `%` and `_` are ordinary characters."""


class HitKind(StrEnum):
    ITEM = "item"
    RECORD = "record"


class SearchHit(Shape):
    """An item, or a record with its database and the item that places it.

    `itemTitle` is the title of that item; of a hit that is an item, its own.
    """

    kind: HitKind
    id: Id
    title: str
    item_id: Id
    item_kind: ItemKind
    item_title: str
    database_id: Id | None
    icon: str | None
    updated_at: Moment


class SearchResults(Shape):
    results: list[SearchHit]
    cursor: Nullable[str]


async def search_titles(
    work: UnitOfWork, actor: Actor, text: str, page: PageRequest, kind: HitKind | None = None
) -> SearchResults:
    """The items and records that the actor sees and whose title has the text in it.

    Newest first, of one kind or both. Nothing archived, and records only for actors who may read
    them. Ids are made in the order of time, so items and records have one order.
    """
    closed = closed_items(actor)
    titled = {HitKind.ITEM: items_titled(actor, text, closed)}
    if Scope.RECORDS_READ in actor.scopes:
        titled[HitKind.RECORD] = records_titled(actor, text, closed)
    parts = [_part(one, hits, page) for one, hits in titled.items() if kind in (None, one)]
    if not parts:
        return SearchResults(results=[], cursor=None)
    hits = sa.union_all(*parts).subquery()
    rows = await work.rows(sa.select(hits).order_by(hits.c.id.desc()).limit(page.fetch))
    shown = page.of(rows, lambda row: (row.id,))
    return SearchResults(
        results=[SearchHit.model_validate(row) for row in shown.items], cursor=shown.cursor
    )


def _part(kind: HitKind, found: sa.Select[Any], page: PageRequest) -> sa.Select[Any]:
    """The newest hits of one kind: a page at most, so that no kind is read whole."""
    hit_id = found.selected_columns["id"]
    if page.after is not None:
        found = found.where(hit_id < page.after[0])
    newest = found.order_by(hit_id.desc()).limit(page.fetch)
    return sa.select(newest.add_columns(sa.literal(kind.value, sa.String).label("kind")).subquery())
