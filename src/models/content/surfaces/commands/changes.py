"""Steps of every change of a surface: lock it, check its version, store blocks, count them."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    Float,
    Integer,
    Text,
    Uuid,
    bindparam,
    column,
    func,
    literal,
    select,
    tuple_,
    update,
)
from sqlalchemy.dialects.postgresql import JSONB, insert
from sqlalchemy.types import TypeEngine

from models.content.surfaces.queries import require_scope
from models.content.surfaces.rules.kinds import SurfaceKind
from models.content.surfaces.rules.tree import PlannedBlock, json_size
from models.content.surfaces.shapes import MAX_BLOCKS
from models.content.surfaces.tables import Surface, block, surface
from models.core.access.rules import Actor, Scope
from models.core.base import Id, JsonObject
from models.core.problems import an
from models.core.values import InvalidValueError, check_storable
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, NotFoundError, ValidationError
from runtime.schema import Timestamp

MAX_BYTES = 8 << 20
"""Of the contents of all blocks: what one request can bring, one answer can show."""

MAX_WIDGETS = 50
MAX_SETTINGS_BYTES = 64 << 10
MAX_SETTINGS_DEPTH = 16


def most_blocks(kind: SurfaceKind) -> int:
    """The most blocks that a surface of this kind holds."""
    return MAX_WIDGETS if kind is SurfaceKind.DASHBOARD else MAX_BLOCKS


async def hold_surface(work: UnitOfWork, actor: Actor, surface_id: Id, scope: Scope) -> Surface:
    """The surface, locked until the transaction ends.

    Raises `NotFoundError`, `DeniedError` for an actor without the scope.
    """
    row = await work.first(
        select(surface)
        .where(surface.c.workspace_id == actor.workspace_id, surface.c.id == surface_id)
        .with_for_update(key_share=True),
        of=Surface,
    )
    if row is None:
        raise NotFoundError("surface")
    require_scope(actor, row.kind, scope)
    return row


def check_version(surface_row: Surface, expected_version: int | None) -> None:
    """Raise `ConflictError` when the surface is no longer the one that was read."""
    if expected_version is not None and expected_version != surface_row.version:
        raise ConflictError(
            f"The surface was changed since: its version is {surface_row.version}. Read it again."
        )


def check_settings(settings: JsonObject, path: str) -> None:
    """Settings are free-form, of bounded size and depth (decisions C1)."""
    try:
        check_storable(settings, MAX_SETTINGS_DEPTH)
    except InvalidValueError as problem:
        raise ValidationError.at(path, str(problem)) from problem
    if json_size(settings) > MAX_SETTINGS_BYTES:
        raise ValidationError.at(path, f"is larger than {MAX_SETTINGS_BYTES >> 10} KiB")


async def close_change(
    work: UnitOfWork, actor: Actor, surface_row: Surface, settings: JsonObject | None = None
) -> Surface:
    """Count the blocks, and give the surface its next version and, if given, these settings.

    Raises `ValidationError` at `blocks` for more than a surface holds.
    """
    sizes = await work.first(
        select(func.count().label("blocks"), func.sum(block.c.byte_size).label("bytes")).where(
            block.c.workspace_id == actor.workspace_id, block.c.surface_id == surface_row.id
        )
    )
    assert sizes is not None
    limit = most_blocks(SurfaceKind(surface_row.kind))
    if sizes.blocks > limit:
        raise ValidationError.at("blocks", f"{an(surface_row.kind)} holds at most {limit} blocks")
    if (sizes.bytes or 0) > MAX_BYTES:
        raise ValidationError.at("blocks", f"hold more than {MAX_BYTES >> 20} MiB in all")
    new_surface = await work.first(
        update(surface)
        .where(surface.c.workspace_id == actor.workspace_id, surface.c.id == surface_row.id)
        .values(
            version=surface.c.version + 1,
            settings=surface.c.settings if settings is None else settings,
            updated_at=func.greatest(literal(work.now, Timestamp), surface.c.updated_at),
        )
        .returning(surface),
        of=Surface,
    )
    assert new_surface is not None
    return new_surface


_COLUMNS: dict[str, TypeEngine[Any]] = {
    "id": Uuid(),
    "parent_block_id": Uuid(),
    "kind": Text(),
    "position": Float(53),
    "content": JSONB(),
    "byte_size": Integer(),
    "x": Float(53),
    "y": Float(53),
    "w": Float(53),
    "h": Float(53),
}
_PLANNED = (
    func.jsonb_to_recordset(bindparam("planned", type_=JSONB))
    .table_valued(*(column(name, sql_type) for name, sql_type in _COLUMNS.items()))
    .render_derived(name="planned", with_types=True)
)
_INSERT = insert(block).from_select(
    ["workspace_id", "surface_id", "created_at", "updated_at", *_COLUMNS],
    select(
        bindparam("workspace_id", type_=Uuid),
        bindparam("surface_id", type_=Uuid),
        bindparam("now", type_=Timestamp),
        bindparam("now", type_=Timestamp),
        *_PLANNED.c,
    ),
)
_CHANGING = [name for name in _COLUMNS if name not in {"id", "byte_size"}]
_STORE = _INSERT.on_conflict_do_update(
    index_elements=["surface_id", "id"],
    set_={
        **{name: _INSERT.excluded[name] for name in _COLUMNS if name != "id"},
        "updated_at": _INSERT.excluded.updated_at,
    },
    # What stays as it is keeps its time, and costs no new row version.
    where=tuple_(*(block.c[name] for name in _CHANGING)).is_distinct_from(
        tuple_(*(_INSERT.excluded[name] for name in _CHANGING))
    ),
)


async def store_blocks(
    work: UnitOfWork, actor: Actor, surface_id: Id, blocks: Sequence[PlannedBlock]
) -> None:
    """Write blocks in one statement, over the blocks of these ids that are there already."""
    if blocks:
        parameters = {
            "workspace_id": actor.workspace_id,
            "surface_id": surface_id,
            "now": work.now,
            "planned": [one.row() for one in blocks],
        }
        await work.execute(_STORE, parameters)
