"""Searching the titles of items and records."""

from typing import Any

from sqlalchemy import Select, String, literal, select, union_all

from models.content.items.queries import closed_items
from models.content.items.search import items_titled
from models.core.access.rules import Actor, Scope
from models.core.pagination import PageRequest
from models.data.records.queries.search import records_titled
from models.workspace.search.shapes import HitKind, SearchHit, SearchResults
from runtime.database import UnitOfWork


async def search(work: UnitOfWork, actor: Actor, text: str, page: PageRequest) -> SearchResults:
    """The items and records that the actor sees and whose title has the text in it.

    Newest first. Nothing archived, and records only for actors who may read them. Ids are made in
    the order of time, so items and records have one order.
    """
    closed = closed_items(actor)
    parts = [_part(HitKind.ITEM, items_titled(actor, text, closed), page)]
    if Scope.RECORDS_READ in actor.scopes:
        parts.append(_part(HitKind.RECORD, records_titled(actor, text, closed), page))
    hits = union_all(*parts).subquery()
    rows = await work.rows(select(hits).order_by(hits.c.id.desc()).limit(page.fetch))
    shown = page.of(rows, lambda row: (row.id,))
    return SearchResults(
        results=[SearchHit.model_validate(row) for row in shown.items], cursor=shown.cursor
    )


def _part(kind: HitKind, found: Select[Any], page: PageRequest) -> Select[Any]:
    """The newest hits of one kind: a page at most, so that no kind is read whole."""
    hit_id = found.selected_columns["id"]
    if page.after is not None:
        found = found.where(hit_id < page.after[0])
    newest = found.order_by(hit_id.desc()).limit(page.fetch)
    return select(newest.add_columns(literal(kind.value, String).label("kind")).subquery())
