"""Surfaces with their blocks and comments in a bundle."""

from collections.abc import Callable, Sequence

import sqlalchemy as sa
from pydantic import ValidationError as ShapeError

from models.content.items.joins import ITEM, live_items
from models.content.surfaces.rules.contents import BLOCKS
from models.content.surfaces.rules.tree import MAX_CONTENT_BYTES, json_size
from models.content.surfaces.tables import block, surface, surface_comment
from models.core.base import Id
from models.core.bundles import USER, BundleKind, ImportTarget, Row, Stage
from models.core.problems import sentence
from runtime.database import UnitOfWork

LiveContent = Callable[[sa.FromClause], sa.ColumnElement[bool]]
"""Takes the columns of surfaces; whether what they are the content of is outside the trash."""

_Live = Callable[[Id], sa.ColumnElement[bool]]
_FILE = "surfaces.ndjson"


def surface_kinds(live_content: LiveContent) -> tuple[BundleKind, BundleKind, BundleKind]:
    """Surfaces of items, records and templates, and the blocks and comments on them."""

    def live(workspace_id: Id) -> sa.ColumnElement[bool]:
        own = surface.c.item_id.in_(live_items(workspace_id, ITEM.id))
        content = sa.and_(surface.c.item_id.is_(None), live_content(surface))
        return sa.and_(surface.c.workspace_id == workspace_id, sa.or_(own, content))

    return _surfaces(live), _blocks(live), _comments(live)


def _surfaces(live: _Live) -> BundleKind:
    return BundleKind(
        name="surface",
        stage=Stage.CONTENT,
        file=_FILE,
        table=surface,
        rows=lambda workspace_id: sa.select(surface).where(live(workspace_id)),
        references={"item_id": "item", "database_id": "database", "record_id": "record"},
        required=("item_id", "database_id", "record_id"),
        contents=("settings",),
    )


def _blocks(live: _Live) -> BundleKind:
    on = sa.select(block).join(surface, _on(block))
    return BundleKind(
        name="block",
        stage=Stage.CONTENT,
        file=_FILE,
        table=block,
        rows=lambda workspace_id: on.where(live(workspace_id)),
        references={"surface_id": "surface"},
        contents=("content",),
        left_out={"byte_size": "follows from the content"},
        order=("surface_id", "id"),
        group="surface_id",
        parent="parent_block_id",
        check=_block_problem,
        prepare=_measured,
    )


def _comments(live: _Live) -> BundleKind:
    on = sa.select(surface_comment).join(surface, _on(surface_comment))
    return BundleKind(
        name="surface_comment",
        stage=Stage.CONTENT,
        file=_FILE,
        table=surface_comment,
        rows=lambda workspace_id: on.where(live(workspace_id)),
        references={
            "surface_id": "surface",
            "parent_comment_id": "surface_comment",
            "author_user_id": USER,
            "resolved_by_user_id": USER,
        },
        parent="parent_comment_id",
    )


def _on(table: sa.FromClause) -> sa.ColumnElement[bool]:
    return sa.and_(
        surface.c.workspace_id == table.c.workspace_id, surface.c.id == table.c.surface_id
    )


def _block_problem(row: Row) -> str | None:
    """The problem with a block, whichever kind of surface it stands on."""
    rules = [kinds[row["kind"]] for kinds in BLOCKS.values() if row["kind"] in kinds]
    if not rules:
        return f"unknown kind of block: {row['kind'][:50]}"
    if json_size(row["content"]) > MAX_CONTENT_BYTES:
        return "the content is too large"
    problem = None
    for rule in rules:
        try:
            rule.content.model_validate(row["content"])
        except ShapeError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            problem = f"content.{'.'.join(map(str, first['loc']))}: {sentence(first)}"
        else:
            return None
    return problem


async def _measured(_work: UnitOfWork, _target: ImportTarget, rows: Sequence[Row]) -> Sequence[Row]:
    return [{**row, "byte_size": json_size(row["content"])} for row in rows]
