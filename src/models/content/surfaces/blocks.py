"""Adding, changing, moving and deleting blocks of a surface."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

import sqlalchemy as sa

from models.content.surfaces import changes, queries, shapes
from models.content.surfaces.rules import tree
from models.content.surfaces.rules.contents import SurfaceKind, may_hold
from models.core.access.rules import Actor, Scope
from models.core.base import Id
from models.core.problems import refuse
from models.core.values import next_updated_at
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, Detail, NotFoundError, ValidationError
from runtime.ids import new_id


async def add_blocks(
    work: UnitOfWork,
    actor: Actor,
    surface_id: Id,
    body: shapes.AddBlocks,
    expected_version: int | None = None,
) -> shapes.AddedBlocks:
    """Add blocks at the top or in another block: after one that is there, or after all of them.

    Raises `NotFoundError`, also for the parent and for what contents name, `ValidationError` below
    `blocks`, and `ConflictError` for a surface changed since and for an id in use.
    """
    surface_row = await changes.hold_surface(work, actor, surface_id, Scope.BLOCKS_WRITE)
    place = await _place(work, actor, surface_id, body.parent_block_id)
    if "after_block_id" in body.model_fields_set:
        place = await _behind(work, actor, surface_id, place, body.after_block_id, len(body.blocks))
    blocks = tree.plan_blocks(
        SurfaceKind(surface_row.kind), body.blocks, place, new_id, most=shapes.MAX_ADDED
    )
    own = [entry.id for entry in blocks]
    await changes.check_references(
        work, actor, surface_id, [entry.content for entry in blocks], own
    )
    changes.check_version(surface_row, expected_version)
    conditions = (
        queries.block.c.workspace_id == actor.workspace_id,
        queries.block.c.surface_id == surface_id,
        queries.block.c.id == sa.func.any(own),
    )
    duplicate = await work.first(sa.select(queries.block.c.id).where(*conditions).limit(1))
    if duplicate is not None:
        raise ConflictError(f"The surface already has a block with the id {duplicate.id}.")
    await changes.store_blocks(work, actor, surface_id, blocks)
    await changes.notify_mentioned(
        work, actor, changes.home_of(surface_row), {entry.id: entry.content for entry in blocks}
    )
    new_surface = await changes.close_change(work, actor, surface_row)
    rows = await work.rows(sa.select(queries.block).where(*conditions), of=queries.Block)
    return shapes.AddedBlocks(
        blocks=queries.nested(rows, body.parent_block_id), version=new_surface.version
    )


async def update_block(
    work: UnitOfWork,
    actor: Actor,
    surface_id: Id,
    block_id: Id,
    body: shapes.UpdateBlock,
    expected_version: int | None = None,
) -> shapes.ChangedBlock:
    """Change a block's kind, content or place, or move it with what is nested in it.

    Raises `NotFoundError`, also for the new parent and for what the content names,
    `ValidationError`, and `ConflictError` for a surface or a block changed since.
    """
    surface_row = await changes.hold_surface(work, actor, surface_id, Scope.BLOCKS_WRITE)
    surface = SurfaceKind(surface_row.kind)
    row = await queries.find_block(work, actor, surface_id, block_id)
    if body.expected_updated_at is not None and body.expected_updated_at != row.updated_at:
        raise ConflictError("The block was changed since. Read it again.")
    destination = await _destination(work, actor, row, body)
    await _check_nesting(work, actor, surface, row, body, destination)
    values = {
        **_moved(body, destination),
        **_framed(surface, row, body),
        **_rewritten(surface, row, body),
    }
    await changes.check_references(work, actor, surface_id, [values.get("content")])
    changes.check_version(surface_row, expected_version)
    await work.execute(
        sa.update(queries.block)
        .where(*queries.this_block(actor, surface_id, block_id))
        .values(**values, updated_at=next_updated_at(queries.block.c.updated_at, work.now))
    )
    await changes.notify_mentioned(
        work, actor, changes.home_of(surface_row), {block_id: values.get("content", {})}
    )
    new_surface = await changes.close_change(work, actor, surface_row)
    shown = queries.block_detail(await queries.find_block(work, actor, surface_id, block_id))
    return shapes.ChangedBlock(block=shown, version=new_surface.version)


async def delete_block(
    work: UnitOfWork,
    actor: Actor,
    surface_id: Id,
    block_id: Id,
    expected_version: int | None = None,
) -> shapes.DeletedBlock:
    """Delete a block with what is nested in it.

    Raises `NotFoundError`, and `ConflictError` for a surface changed since.
    """
    surface_row = await changes.hold_surface(work, actor, surface_id, Scope.BLOCKS_WRITE)
    await queries.find_block(work, actor, surface_id, block_id)
    changes.check_version(surface_row, expected_version)
    await work.execute(
        sa.delete(queries.block).where(*queries.this_block(actor, surface_id, block_id))
    )
    new_surface = await changes.close_change(work, actor, surface_row)
    return shapes.DeletedBlock(id=block_id, version=new_surface.version)


async def _place(work: UnitOfWork, actor: Actor, surface_id: Id, parent: Id | None) -> tree.Place:
    """The end of the blocks in `parent`, or at the top. Raises `NotFoundError`."""
    last = await work.scalar(
        sa.select(sa.func.coalesce(sa.func.max(queries.block.c.position), tree.TOP.last)).where(
            queries.block.c.workspace_id == actor.workspace_id,
            queries.block.c.surface_id == surface_id,
            queries.block.c.parent_block_id.is_not_distinct_from(parent),
        )
    )
    if parent is None:
        return tree.Place(last=last)
    way = await _way_up(work, actor, surface_id, parent)
    if not way:
        raise NotFoundError("block")
    return tree.Place(
        parent_block_id=parent,
        parent_kind=way[0].kind,
        way=tuple(row.id for row in way),
        last=last,
    )


_NARROWEST = 1e-3
"""The least distance between two positions; for a smaller one the following blocks move on."""


async def _behind(
    work: UnitOfWork, actor: Actor, surface_id: Id, end: tree.Place, after: Id | None, count: int
) -> tree.Place:
    """The place of `count` blocks behind a sibling, or before all blocks of a parent.

    `end` is the place after all of them. Raises `NotFoundError` for a sibling that is elsewhere.
    """
    siblings = (
        queries.block.c.workspace_id == actor.workspace_id,
        queries.block.c.surface_id == surface_id,
        queries.block.c.parent_block_id.is_not_distinct_from(end.parent_block_id),
    )
    order = sa.tuple_(queries.block.c.position, queries.block.c.id)
    following: tuple[sa.ColumnElement[bool], ...] = siblings
    last: float | None = None
    if after is not None:
        here = sa.select(queries.block.c.position).where(*siblings, queries.block.c.id == after)
        last = float((await work.one(here, "block")).position)
        following = (*siblings, order > sa.tuple_(last, after))
    first = await work.scalar(sa.select(sa.func.min(queries.block.c.position)).where(*following))
    if first is None:
        return end
    if last is None:
        return replace(end, last=first - count - 1)
    step = (first - last) / (count + 1)
    if step < _NARROWEST:
        step = 1
        moved = sa.update(queries.block).where(*following)
        await work.execute(moved.values(position=queries.block.c.position + count + 1))
    return replace(end, last=last, step=step)


class _BlockAbove(Protocol):
    id: Id
    kind: str


async def _way_up(
    work: UnitOfWork, actor: Actor, surface_id: Id, block_id: Id
) -> Sequence[_BlockAbove]:
    """A block, the one it is nested in, and so on to the top; nothing for no block."""
    way = (
        sa.select(
            queries.block.c.id,
            queries.block.c.kind,
            queries.block.c.parent_block_id,
            sa.literal(0, sa.Integer).label("up"),
        )
        .where(*queries.this_block(actor, surface_id, block_id))
        .cte("way", recursive=True)
    )
    way = way.union_all(
        sa.select(
            queries.block.c.id, queries.block.c.kind, queries.block.c.parent_block_id, way.c.up + 1
        ).where(*queries.this_block(actor, surface_id, way.c.parent_block_id))
    )
    return await work.rows(sa.select(way.c.id, way.c.kind).order_by(way.c.up), of=_BlockAbove)


async def _height(work: UnitOfWork, actor: Actor, row: queries.BlockRow) -> int:
    """The number of levels of a block with what is nested in it."""
    below = (
        sa.select(queries.block.c.id, sa.literal(1, sa.Integer).label("level"))
        .where(*queries.this_block(actor, row.surface_id, row.id))
        .cte("below", recursive=True)
    )
    below = below.union_all(
        sa.select(queries.block.c.id, below.c.level + 1).where(
            queries.block.c.workspace_id == actor.workspace_id,
            queries.block.c.surface_id == row.surface_id,
            queries.block.c.parent_block_id == below.c.id,
        )
    )
    return int(await work.scalar(sa.select(sa.func.max(below.c.level))))


async def _destination(
    work: UnitOfWork, actor: Actor, row: queries.BlockRow, body: shapes.UpdateBlock
) -> tree.Place | None:
    """The place a block is moved to, or None for one that stays where it is."""
    named, follows = body.model_fields_set, "after_block_id" in body.model_fields_set
    parent = body.parent_block_id if "parent_block_id" in named else row.parent_block_id
    if parent == row.parent_block_id and not follows:
        return None
    if body.after_block_id == row.id:
        raise ValidationError.at("afterBlockId", "is the block itself")
    place = await _place(work, actor, row.surface_id, parent)
    if follows:
        place = await _behind(work, actor, row.surface_id, place, body.after_block_id, 1)
    if row.id in place.way:
        raise ValidationError.at("parentBlockId", "is the block itself or nested in it")
    if place.depth + await _height(work, actor, row) > tree.MAX_DEPTH:
        raise ValidationError.at(
            "parentBlockId", f"would nest blocks more than {tree.MAX_DEPTH} levels deep"
        )
    return place


async def _check_nesting(
    work: UnitOfWork,
    actor: Actor,
    surface: SurfaceKind,
    row: queries.BlockRow,
    body: shapes.UpdateBlock,
    destination: tree.Place | None,
) -> None:
    """A block of this kind may stand where it is going, and hold what is nested in it."""
    kind = body.kind or row.kind
    if destination is None and kind == row.kind:
        return
    entries = await work.rows(
        sa.select(queries.block.c.kind, queries.block.c.id).where(
            queries.block.c.workspace_id == actor.workspace_id,
            queries.block.c.surface_id == row.surface_id,
            (queries.block.c.id == row.parent_block_id)
            | (queries.block.c.parent_block_id == row.id),
        )
    )
    parent = next((entry.kind for entry in entries if entry.id == row.parent_block_id), None)
    problem = tree.kind_problem(
        surface, parent if destination is None else destination.parent_kind, kind
    )
    if problem is not None:
        where = "parentBlockId" if kind == row.kind else "kind"
        raise ValidationError.at(where, problem)
    for inner in {entry.kind for entry in entries if entry.id != row.parent_block_id}:
        if not may_hold(surface, kind, inner):
            raise ValidationError.at("kind", f"cannot hold the {inner} that is nested in it")


def _moved(body: shapes.UpdateBlock, destination: tree.Place | None) -> dict[str, Any]:
    values: dict[str, Any] = {}
    if destination is not None:
        position = destination.last + destination.step
        values = {"parent_block_id": destination.parent_block_id, "position": position}
    if body.order is not None:
        values["position"] = body.order
    return values


_SIDES = ("x", "y", "w", "h")


def _framed(
    surface: SurfaceKind, row: queries.BlockRow, body: shapes.UpdateBlock
) -> dict[str, Any]:
    sides = {side: getattr(body if side in body.model_fields_set else row, side) for side in _SIDES}
    problems = tree.frame_problems(surface, body.kind or row.kind, tree.Frame(**sides))
    refuse([Detail(key, message) for key, message in problems])
    return sides


def _rewritten(
    surface: SurfaceKind, row: queries.BlockRow, body: shapes.UpdateBlock
) -> dict[str, Any]:
    """The new kind must take the content, whether that is new too or not."""
    kind = body.kind or row.kind
    if body.content is None and kind == row.kind:
        return {}
    raw = row.content if body.content is None else body.content
    content, size = tree.read_content(surface, kind, raw, "content")
    return {"kind": kind, "content": content, "byte_size": size}
