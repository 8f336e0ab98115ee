"""Reading surfaces and their blocks."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Row,
    Uuid,
    and_,
    any_,
    bindparam,
    func,
    or_,
    select,
    tuple_,
)

from models.content.items.queries import PlacementOf, placed_items
from models.content.items.tables import item
from models.content.surfaces.rules.kinds import SurfaceKind, scope_on
from models.content.surfaces.shapes import BlockDetail, BlockList, BlockTree, SurfaceDetail
from models.content.surfaces.tables import block, surface
from models.core.access.rules import Actor, Scope
from models.core.base import Id
from models.core.pagination import PageRequest
from models.data.databases.tables import database
from models.data.records.tables import record
from runtime.database import UnitOfWork
from runtime.errors import DeniedError, NotFoundError
from runtime.prepared_statement import PreparedStatement

_HOME = (
    select(func.coalesce(surface.c.item_id, database.c.item_id))
    .select_from(surface)
    .outerjoin(
        database,
        and_(
            database.c.workspace_id == surface.c.workspace_id,
            database.c.id == surface.c.database_id,
        ),
    )
    .outerjoin(
        record,
        and_(
            record.c.workspace_id == surface.c.workspace_id,
            record.c.id == surface.c.record_id,
            record.c.deleted_at.is_(None),
        ),
    )
    .where(
        surface.c.workspace_id == any_(bindparam("workspace_ids", type_=ARRAY(Uuid))),
        surface.c.id == bindparam("id", type_=Uuid),
        or_(surface.c.record_id.is_(None), record.c.id.is_not(None)),
    )
    .scalar_subquery()
)
"""The item a surface is seen with: its own, or that of its record's database."""

visible = PlacementOf(placed_items().where(item.c.id == _HOME))
"""Where a surface is placed, a record's with its database: `await visible(work, …)`."""

_NESTED = block.alias("nested")
_HAS_CHILDREN = (
    select(_NESTED.c.id)
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
    select(surface).where(
        surface.c.workspace_id == bindparam("workspace_id", type_=Uuid),
        surface.c.id == bindparam("surface_id", type_=Uuid),
    )
)


def this_block(actor: Actor, surface_id: Id, block_id: Any) -> tuple[ColumnElement[bool], ...]:
    """The conditions of one block of a surface."""
    return (
        block.c.workspace_id == actor.workspace_id,
        block.c.surface_id == surface_id,
        block.c.id == block_id,
    )


async def find_surface(work: UnitOfWork, actor: Actor, surface_id: Id, scope: Scope) -> Row[Any]:
    """The row of a surface, for an actor with the scope its kind asks for in place of `scope`.

    Raises `NotFoundError` and `DeniedError`.
    """
    parameters = {"workspace_id": actor.workspace_id, "surface_id": surface_id}
    found: Row[Any] | None = await _SURFACE.first(work, parameters)
    if found is None:
        raise NotFoundError("surface")
    require_scope(actor, found.kind, scope)
    return found


def require_scope(actor: Actor, kind: str, scope: Scope) -> None:
    """Raise `DeniedError` unless the actor has what stands for `scope` on that kind of surface."""
    needed = scope_on(SurfaceKind(kind), scope)
    if needed not in actor.scopes:
        raise DeniedError(f"The credential lacks the scope {needed}.")


async def get_surface(work: UnitOfWork, actor: Actor, surface_id: Id) -> SurfaceDetail:
    """A surface with its blocks, at most 8 MiB of content. Raises `NotFoundError`."""
    found = await find_surface(work, actor, surface_id, Scope.SURFACES_READ)
    return await detail(work, actor, found)


async def detail(work: UnitOfWork, actor: Actor, row: Row[Any]) -> SurfaceDetail:
    """The surface of a row with its blocks."""
    blocks = await work.rows(
        select(block).where(
            block.c.workspace_id == actor.workspace_id, block.c.surface_id == row.id
        )
    )
    return SurfaceDetail.model_construct(
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
) -> BlockList:
    """The blocks at the top, or those directly in another block, in order.

    Raises `NotFoundError` for a parent that is not on the surface.
    """
    await find_surface(work, actor, surface_id, Scope.BLOCKS_READ)
    if parent_block_id is not None:
        await find_block(work, actor, surface_id, parent_block_id)
    statement = (
        select(block, _HAS_CHILDREN)
        .where(
            block.c.workspace_id == actor.workspace_id,
            block.c.surface_id == surface_id,
            block.c.parent_block_id.is_(None)
            if parent_block_id is None
            else block.c.parent_block_id == parent_block_id,
        )
        .order_by(*_ORDER)
        .limit(page.fetch)
    )
    if page.after is not None:
        statement = statement.where(tuple_(*_ORDER) > tuple_(*page.after))
    shown = page.of(await work.rows(statement), lambda row: (row.position, row.id))
    return BlockList(blocks=[block_detail(row) for row in shown.items], cursor=shown.cursor)


async def get_block(work: UnitOfWork, actor: Actor, surface_id: Id, block_id: Id) -> BlockDetail:
    """One block of a surface. Raises `NotFoundError`."""
    await find_surface(work, actor, surface_id, Scope.BLOCKS_READ)
    return block_detail(await find_block(work, actor, surface_id, block_id))


async def find_block(work: UnitOfWork, actor: Actor, surface_id: Id, block_id: Id) -> Row[Any]:
    """The row of a block, with `has_children`. Raises `NotFoundError`."""
    found = await work.first(
        select(block, _HAS_CHILDREN).where(*this_block(actor, surface_id, block_id))
    )
    if found is None:
        raise NotFoundError("block")
    return found


def nested(rows: Sequence[Row[Any]], top: Id | None) -> list[BlockTree]:
    """The blocks directly in `top` with what is nested in them, in order.

    The rows come from our own typed columns, so the shapes are built without checking them again.
    """
    inner: dict[Id | None, list[Row[Any]]] = {}
    for row in rows:
        inner.setdefault(row.parent_block_id, []).append(row)

    def below(parent: Id | None) -> list[BlockTree]:
        ordered = sorted(inner.get(parent, ()), key=lambda row: (row.position, row.id))
        return [BlockTree.model_construct(**_body(row), children=below(row.id)) for row in ordered]

    return below(top)


def block_detail(row: Row[Any]) -> BlockDetail:
    """A block, of a row with `has_children`."""
    return BlockDetail.model_construct(**_body(row), has_children=row.has_children)


def _body(row: Row[Any]) -> dict[str, Any]:
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
