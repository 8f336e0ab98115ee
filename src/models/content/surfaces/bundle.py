"""Surfaces with their blocks and comments in a bundle."""

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, or_, select

from models.content.items.joins import ITEM, live_items
from models.content.surfaces.rules.kinds import BLOCKS
from models.content.surfaces.rules.tree import MAX_CONTENT_BYTES, json_size
from models.content.surfaces.tables import block, surface, surface_comment
from models.core.base import Id
from models.core.bundles.kinds import BundleKind, ImportTarget, Row
from models.core.bundles.rules import USER, Stage
from runtime.database import UnitOfWork

LiveContent = Callable[[Any], ColumnElement[bool]]
"""Takes the columns of surfaces; whether what they are the content of is outside the trash."""

_HOME = ("item_id", "database_id", "record_id")


def surface_kinds(live_content: LiveContent) -> tuple[BundleKind, BundleKind, BundleKind]:
    """Surfaces of items, records and templates, and what stands on them."""

    def live(workspace_id: Id) -> ColumnElement[bool]:
        own = surface.c.item_id.in_(live_items(workspace_id, ITEM.id))
        content = and_(surface.c.item_id.is_(None), live_content(surface.c))
        return and_(surface.c.workspace_id == workspace_id, or_(own, content))

    def surfaces(workspace_id: Id) -> Select[Any]:
        return select(surface).where(live(workspace_id))

    def blocks(workspace_id: Id) -> Select[Any]:
        return select(block).join(surface, _on(block)).where(live(workspace_id))

    def comments(workspace_id: Id) -> Select[Any]:
        return select(surface_comment).join(surface, _on(surface_comment)).where(live(workspace_id))

    return (
        BundleKind(
            name="surface",
            stage=Stage.CONTENT,
            file="surfaces.ndjson",
            table=surface,
            rows=surfaces,
            references={"item_id": "item", "database_id": "database", "record_id": "record"},
            needed=_HOME,
            contents=("settings",),
        ),
        BundleKind(
            name="block",
            stage=Stage.CONTENT,
            file="surfaces.ndjson",
            table=block,
            rows=blocks,
            references={"surface_id": "surface"},
            contents=("content",),
            left_out={"byte_size": "follows from the content"},
            order=("surface_id", "id"),
            whole="surface_id",
            parent="parent_block_id",
            check=_block_problem,
            prepare=_measured,
        ),
        BundleKind(
            name="surface_comment",
            stage=Stage.CONTENT,
            file="surfaces.ndjson",
            table=surface_comment,
            rows=comments,
            references={
                "surface_id": "surface",
                "parent_comment_id": "surface_comment",
                "author_user_id": USER,
                "resolved_by_user_id": USER,
            },
            parent="parent_comment_id",
        ),
    )


def _on(table: Any) -> ColumnElement[bool]:
    return and_(surface.c.workspace_id == table.c.workspace_id, surface.c.id == table.c.surface_id)


_BLOCKS = frozenset(kind for of in BLOCKS.values() for kind in of)


def _block_problem(row: Row) -> str | None:
    if row["kind"] not in _BLOCKS:
        return f"nothing is known of a block of the kind {row['kind'][:50]}"
    return "a content is too large" if json_size(row["content"]) > MAX_CONTENT_BYTES else None


async def _measured(work: UnitOfWork, target: ImportTarget, rows: Sequence[Row]) -> Sequence[Row]:
    del work, target
    return [{**row, "byte_size": json_size(row["content"])} for row in rows]
