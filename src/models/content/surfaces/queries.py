"""Surfaces, their blocks and comments: their tables, and reading them."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any, Protocol

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from models.content.items.joins import ITEM, live_item_of
from models.content.items.queries import PlacementOf, placed_items
from models.content.surfaces import shapes
from models.content.surfaces.rules.contents import SurfaceKind, scope_on
from models.core.access.rules import Actor, Scope
from models.core.base import Id, JsonObject
from models.core.pagination import PageRequest
from models.core.references import rules as reference_rules
from runtime.database import UnitOfWork
from runtime.errors import DeniedError, NotFoundError
from runtime.postgresql.schema import Timestamp, one_of, same_workspace, table_of
from runtime.postgresql.statements import PreparedStatement


class Surface(SQLModel, table=True):
    """The ground that blocks stand on: an item's, or the content of a record or a record template.

    `version` counts the writes, so that a client can say which content it means to change.
    """

    __tablename__ = "surface"
    __table_args__ = (
        sa.UniqueConstraint("workspace_id", "id"),
        same_workspace("item_id", "item.id", ondelete="CASCADE"),
        same_workspace("database_id", "database.id", ondelete="CASCADE"),
        same_workspace("record_id", "record.id", ondelete="CASCADE"),
        one_of("kind", SurfaceKind),
        sa.CheckConstraint(
            "num_nonnulls(item_id, database_id) = 1 AND (kind = 'record') = (item_id IS NULL)"
            " AND (record_id IS NULL OR database_id IS NOT NULL)",
            name="placed_once",
        ),
        sa.Index("uq_surface_item_id", "item_id", unique=True),
        sa.Index("uq_surface_record_id", "record_id", unique=True),
        sa.Index("ix_surface_workspace_id_database_id", "workspace_id", "database_id"),
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id
    item_id: Id | None = None
    database_id: Id | None = None
    record_id: Id | None = None
    kind: str
    version: int = Field(default=1, sa_column_kwargs={"server_default": sa.text("1")})
    settings: dict[str, Any] = Field(
        sa_type=JSONB, sa_column_kwargs={"server_default": sa.text("'{}'::jsonb")}
    )
    created_at: datetime = Field(sa_type=Timestamp)
    updated_at: datetime = Field(sa_type=Timestamp)


class Block(SQLModel, table=True):
    """One block. Its id is unique on its surface alone, so a client may choose it, and a copy of
    a surface keeps it: what refers to a block by id then refers to the copy.

    `position` is the interface's `order`; `byte_size` is the size of `content` as JSON.
    """

    __tablename__ = "block"
    __table_args__ = (
        same_workspace("surface_id", "surface.id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["surface_id", "parent_block_id"],
            ["block.surface_id", "block.id"],
            ondelete="CASCADE",
        ),
        sa.CheckConstraint("parent_block_id <> id", name="not_its_own_parent"),
        sa.Index(
            "ix_block_surface_id_parent_block_id_position_id",
            "surface_id",
            "parent_block_id",
            "position",
            "id",
        ),
    )

    surface_id: Id = Field(primary_key=True)
    id: Id = Field(primary_key=True)
    workspace_id: Id
    parent_block_id: Id | None = None
    kind: str
    position: float
    content: dict[str, Any] = Field(sa_type=JSONB)
    x: float | None = None
    y: float | None = None
    w: float | None = None
    h: float | None = None
    byte_size: int
    created_at: datetime = Field(sa_type=Timestamp)
    updated_at: datetime = Field(sa_type=Timestamp)


class SurfaceComment(SQLModel, table=True):
    """A comment; one without `parent_comment_id` begins a thread, the others answer it.

    `block_id` is what it is about and refers to nothing: words outlive the block, and are there
    again when an undo brings the block back.
    """

    __tablename__ = "surface_comment"
    __table_args__ = (
        sa.UniqueConstraint("surface_id", "id"),
        same_workspace("surface_id", "surface.id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["surface_id", "parent_comment_id"],
            ["surface_comment.surface_id", "surface_comment.id"],
            ondelete="CASCADE",
        ),
        sa.Index("ix_surface_comment_surface_id_created_at_id", "surface_id", "created_at", "id"),
        sa.Index(
            "ix_surface_comment_surface_id_parent_comment_id", "surface_id", "parent_comment_id"
        ),
    )

    id: Id = Field(primary_key=True)
    workspace_id: Id
    surface_id: Id
    block_id: Id | None = None
    parent_comment_id: Id | None = None
    author_user_id: Id
    body: str
    resolved_at: datetime | None = Field(default=None, sa_type=Timestamp)
    resolved_by_user_id: Id | None = None
    created_at: datetime = Field(sa_type=Timestamp)
    updated_at: datetime = Field(sa_type=Timestamp)


surface = table_of(Surface)
block = table_of(Block)
surface_comment = table_of(SurfaceComment)


def placement_of_surfaces(
    item_of_content: Callable[[sa.FromClause], sa.ColumnElement[Any]],
) -> PlacementOf:
    """Finds where surfaces are placed: with their own item, or with that of what they describe.

    `item_of_content` takes a surface and gives the item with which the content of
    a record or of a template is seen, null for one that is not.
    """
    home = sa.select(sa.func.coalesce(surface.c.item_id, item_of_content(surface))).where(
        surface.c.workspace_id == sa.any_(sa.bindparam("workspace_ids", type_=sa.ARRAY(sa.Uuid))),
        surface.c.id == sa.bindparam("id", type_=sa.Uuid),
    )
    return PlacementOf(placed_items().where(ITEM.id == home.scalar_subquery()))


_NESTED = block.alias("nested")
_HAS_CHILDREN = (
    sa.select(_NESTED.c.id)
    .where(
        _NESTED.c.workspace_id == block.c.workspace_id,
        _NESTED.c.surface_id == block.c.surface_id,
        _NESTED.c.parent_block_id == block.c.id,
    )
    .exists()
    .label("has_children")
)
_ORDER = (block.c.position, block.c.id)

_SURFACE = PreparedStatement(
    sa.select(surface).where(
        surface.c.workspace_id == sa.bindparam("workspace_id", type_=sa.Uuid),
        surface.c.id == sa.bindparam("surface_id", type_=sa.Uuid),
    ),
    Surface,
)


class BlockRow(Protocol):
    """A block, and whether others are nested in it."""

    id: Id
    surface_id: Id
    parent_block_id: Id | None
    kind: str
    position: float
    content: JsonObject
    x: float | None
    y: float | None
    w: float | None
    h: float | None
    created_at: datetime
    updated_at: datetime
    has_children: bool


def this_block(
    actor: Actor, surface_id: Id, block_id: Id | sa.ColumnElement[Id]
) -> tuple[sa.ColumnElement[bool], ...]:
    """The conditions of one block of a surface."""
    return (
        block.c.workspace_id == actor.workspace_id,
        block.c.surface_id == surface_id,
        block.c.id == block_id,
    )


async def find_surface(work: UnitOfWork, actor: Actor, surface_id: Id, scope: Scope) -> Surface:
    """The row of a surface, for an actor with the scope its kind asks for in place of `scope`.

    Raises `NotFoundError` and `DeniedError`.
    """
    parameters = {"workspace_id": actor.workspace_id, "surface_id": surface_id}
    found = await _SURFACE.first(work, parameters)
    if found is None:
        raise NotFoundError("surface")
    require_scope(actor, found.kind, scope)
    return found


def require_scope(actor: Actor, kind: str, scope: Scope) -> None:
    """Raise `DeniedError` unless the actor has what stands for `scope` on that kind of surface."""
    needed = scope_on(SurfaceKind(kind), scope)
    if needed not in actor.scopes:
        raise DeniedError(f"The credential lacks the scope {needed}.")


async def get_surface(work: UnitOfWork, actor: Actor, surface_id: Id) -> shapes.SurfaceDetail:
    """A surface with its blocks, at most 8 MiB of content. Raises `NotFoundError`."""
    found = await find_surface(work, actor, surface_id, Scope.SURFACES_READ)
    return await detail(work, actor, found)


async def blocks_of(work: UnitOfWork, workspace_id: Id, surface_id: Id) -> Sequence[Block]:
    """All blocks of a surface, in no order."""
    return await work.rows(
        sa.select(block).where(
            block.c.workspace_id == workspace_id, block.c.surface_id == surface_id
        ),
        of=Block,
    )


def surface_id_of(
    workspace_id: sa.ColumnElement[Any], item_id: sa.ColumnElement[Any]
) -> sa.ScalarSelect[Any]:
    """The id of the surface that stands on the item which columns name."""
    own = surface.c.workspace_id == workspace_id, surface.c.item_id == item_id
    return sa.select(surface.c.id).where(*own).scalar_subquery()


def has_blocks(workspace_id: sa.ColumnElement[Any], surface_id: sa.ColumnElement[Any]) -> sa.Exists:
    """True when the surface that columns name has any block."""
    return sa.exists().where(block.c.workspace_id == workspace_id, block.c.surface_id == surface_id)


async def detail(work: UnitOfWork, actor: Actor, row: Surface) -> shapes.SurfaceDetail:
    """The surface of a row with its blocks."""
    blocks = await blocks_of(work, actor.workspace_id, row.id)
    return shapes.SurfaceDetail.model_construct(
        id=row.id,
        workspace_id=row.workspace_id,
        item_id=row.item_id,
        record_id=row.record_id,
        kind=SurfaceKind(row.kind),
        version=row.version,
        settings=row.settings,
        blocks=nested(blocks, None),
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


async def list_blocks(
    work: UnitOfWork, actor: Actor, surface_id: Id, parent_block_id: Id | None, page: PageRequest
) -> shapes.BlockList:
    """The blocks at the top, or those directly in another block, in order.

    Raises `NotFoundError` for a parent that is not on the surface.
    """
    await find_surface(work, actor, surface_id, Scope.BLOCKS_READ)
    if parent_block_id is not None:
        await find_block(work, actor, surface_id, parent_block_id)
    statement = sa.select(block, _HAS_CHILDREN).where(
        block.c.workspace_id == actor.workspace_id,
        block.c.surface_id == surface_id,
        block.c.parent_block_id.is_(None)
        if parent_block_id is None
        else block.c.parent_block_id == parent_block_id,
    )
    shown = await page.ascending(work, statement, *_ORDER, of=BlockRow)
    return shapes.BlockList.of(shown, block_detail)


async def get_block(
    work: UnitOfWork, actor: Actor, surface_id: Id, block_id: Id
) -> shapes.BlockDetail:
    """One block of a surface. Raises `NotFoundError`."""
    await find_surface(work, actor, surface_id, Scope.BLOCKS_READ)
    return block_detail(await find_block(work, actor, surface_id, block_id))


async def find_block(work: UnitOfWork, actor: Actor, surface_id: Id, block_id: Id) -> BlockRow:
    """The row of a block, with `has_children`. Raises `NotFoundError`."""
    return await work.one(
        sa.select(block, _HAS_CHILDREN).where(*this_block(actor, surface_id, block_id)),
        "block",
        of=BlockRow,
    )


def nested(rows: Sequence[Block], top: Id | None) -> list[shapes.BlockTree]:
    """The blocks directly in `top` with what is nested in them, in order.

    The rows come from our own typed columns, so the shapes are built without checking them again.
    """
    inner: dict[Id | None, list[Block]] = {}
    for row in rows:
        inner.setdefault(row.parent_block_id, []).append(row)

    def below(parent: Id | None) -> list[shapes.BlockTree]:
        ordered = sorted(inner.get(parent, ()), key=lambda row: (row.position, row.id))
        return [
            shapes.BlockTree.model_construct(**_body(row), children=below(row.id))
            for row in ordered
        ]

    return below(top)


def block_detail(row: BlockRow) -> shapes.BlockDetail:
    """A block, of a row with `has_children`."""
    return shapes.BlockDetail.model_construct(**_body(row), has_children=row.has_children)


def _body(row: Block | BlockRow) -> dict[str, Any]:
    return {
        "id": row.id,
        "parent_block_id": row.parent_block_id,
        "kind": row.kind,
        "content": row.content,
        "order": row.position,
        "x": row.x,
        "y": row.y,
        "w": row.w,
        "h": row.h,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
    }


async def list_comments(
    work: UnitOfWork,
    actor: Actor,
    surface_id: Id,
    page: PageRequest,
    block_id: Id | None = None,
    parent_comment_id: Id | None = None,
) -> shapes.CommentList:
    """Comments in the order they were made; of one block, or of one thread with its beginning."""
    await find_surface(work, actor, surface_id, Scope.BLOCKS_READ)
    order = (surface_comment.c.created_at, surface_comment.c.id)
    statement = sa.select(surface_comment).where(
        surface_comment.c.workspace_id == actor.workspace_id,
        surface_comment.c.surface_id == surface_id,
    )
    if block_id is not None:
        statement = statement.where(surface_comment.c.block_id == block_id)
    if parent_comment_id is not None:
        statement = statement.where(
            (surface_comment.c.id == parent_comment_id)
            | (surface_comment.c.parent_comment_id == parent_comment_id)
        )
    shown = await page.ascending(work, statement, *order, of=SurfaceComment)
    return shapes.CommentList.of(shown)


_CHARTS = ("chart", "number")
_BY_ID = ("view", "database_view", "shortcut", "item_link")


async def block_definitions(
    work: UnitOfWork, actor: Actor, sought: reference_rules.Sought
) -> Sequence[reference_rules.Definition]:
    """The blocks of pages and dashboards that name a thing, each as its surface."""
    if (
        sought.database_id is None
        and sought.kind is not reference_rules.SubjectKind.VIEW
        and not sought.item_ids
    ):
        return []
    by_key = sought.kind in (reference_rules.SubjectKind.FIELD, reference_rules.SubjectKind.OPTION)
    ids = sa.any_(sa.literal(sought.ids, sa.ARRAY(sa.Text)))
    conditions = [block.c.content[name].astext == ids for name in _NAMING]
    rows = await work.rows(
        sa.select(
            surface.c.item_id,
            block.c.surface_id,
            ITEM.title.label("label"),
            ITEM.kind,
            block.c.id,
            block.c.content,
        )
        .join(*live_item_of(surface))
        .join(block, block.c.surface_id == surface.c.id)
        .where(
            surface.c.workspace_id == actor.workspace_id,
            block.c.kind.in_(_CHARTS if by_key else [*_CHARTS, *_BY_ID]),
            sa.or_(*conditions),
        )
        .order_by(ITEM.title, surface.c.id, block.c.position, block.c.id)
    )
    return [
        reference_rules.Definition(
            kind=row.kind,
            id=row.item_id,
            label=row.label,
            scope=Scope.SURFACES_READ,
            item_id=row.item_id,
            document={"blocks": {str(row.id): row.content}, "surfaceId": str(row.surface_id)},
            references=list(
                reference_rules.below(content_references(row.content), "blocks", str(row.id))
            ),
        )
        for row in rows
    ]


_NAMING = {
    "databaseId": reference_rules.SubjectKind.DATABASE,
    "viewId": reference_rules.SubjectKind.VIEW,
    "itemId": reference_rules.SubjectKind.ITEM,
}
"""The keys under which contents of blocks name things, and what these are."""


def content_references(content: JsonObject) -> Iterator[reference_rules.Reference]:
    """The things that the content of a block names, and the fields of a chart or a number."""
    for key, kind in _NAMING.items():
        yield from reference_rules.named_at(kind, content.get(key), key)
    database = content.get("databaseId")
    if isinstance(database, str):
        yield from reference_rules.key_at(database, content.get("xFieldKey"), "xFieldKey")
        aggregate = content.get("aggregate") or {}
        yield from reference_rules.key_at(database, aggregate.get("field"), "aggregate", "field")
        yield from reference_rules.filter_references(database, content.get("filter"), "filter")
