"""Reading and writing what became of the rows of a bundle."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Select,
    Text,
    Uuid,
    any_,
    cast,
    delete,
    exists,
    func,
    literal,
    select,
)
from sqlalchemy.dialects.postgresql import insert as upsert

from models.core.base import Id
from models.core.bundles.kinds import BundleKind, ImportTarget
from models.workspace.bundles.tables import import_id_map
from runtime.database import UnitOfWork


async def plan_ids(
    work: UnitOfWork, target: ImportTarget, source_kind: str, ids: Mapping[str, str]
) -> int:
    """Record the ids that rows will have; gives how many were not recorded before."""
    if not ids:
        return 0
    sources, targets = (_ids(side) for side in (ids.keys(), ids.values()))
    statement = upsert(import_id_map).from_select(
        ["run_id", "entry_id", "source_kind", "source_id", "target_id"],
        select(
            literal(target.run_id),
            literal(target.entry_id),
            literal(source_kind),
            func.unnest(sources),
            func.unnest(targets),
        ),
    )
    counted = statement.on_conflict_do_nothing().execution_options(preserve_rowcount=True)
    return (await work.execute(counted)).rowcount


async def target_ids(
    work: UnitOfWork, target: ImportTarget, source_ids: Collection[str]
) -> dict[str, dict[str, str]]:
    """The target ids of the source ids that the bundle has among these, by kind and source id."""
    if not source_ids:
        return {}
    ids = func.json_object_agg(import_id_map.c.source_id, import_id_map.c.target_id)
    rows = await work.rows(
        select(import_id_map.c.source_kind, ids.label("ids"))
        .where(
            import_id_map.c.entry_id == target.entry_id,
            import_id_map.c.source_id == any_(_ids(source_ids)),
        )
        .group_by(import_id_map.c.source_kind)
    )
    return {row.source_kind: row.ids for row in rows}


def _ids(ids: Iterable[str]) -> ColumnElement[Any]:
    """An array of ids, which are one text on the way: there are very many.

    Its elements are cast one by one, which the planner does beforehand: only an array that it
    knows is looked up by a hash.
    """
    return cast(func.string_to_array(literal(",".join(ids)), ",", type_=ARRAY(Text)), ARRAY(Uuid))


async def forget_run(work: UnitOfWork, run_id: Id) -> None:
    """Forget what every entry of a run became."""
    await work.execute(delete(import_id_map).where(import_id_map.c.run_id == run_id))


async def forget_ids(work: UnitOfWork, entry_id: Id) -> None:
    """Forget what was planned for an entry."""
    await work.execute(delete(import_id_map).where(import_id_map.c.entry_id == entry_id))


async def forget_sources(
    work: UnitOfWork, entry_id: Id, source_kind: str, source_ids: Collection[str]
) -> None:
    """Forget what was planned for rows of a kind that are left out."""
    if source_ids:
        await work.execute(
            delete(import_id_map).where(
                import_id_map.c.entry_id == entry_id,
                import_id_map.c.source_kind == source_kind,
                import_id_map.c.source_id == any_(_ids(source_ids)),
            )
        )


def targets_of(entry_id: Id, source_kind: str) -> Select[Any]:
    """The ids that rows of a kind have got."""
    return select(import_id_map.c.target_id).where(
        import_id_map.c.entry_id == entry_id, import_id_map.c.source_kind == source_kind
    )


async def newest_targets(
    work: UnitOfWork, entry_id: Id, source_kind: str, below: Id | None, limit: int
) -> list[Id]:
    """The ids that rows of a kind have got, the newest first, from below an id on."""
    ids = targets_of(entry_id, source_kind)
    if below is not None:
        ids = ids.where(import_id_map.c.target_id < below)
    rows = await work.rows(ids.order_by(import_id_map.c.target_id.desc()).limit(limit))
    return [row.target_id for row in rows]


async def forget_gone(work: UnitOfWork, entry_id: Id, kind: BundleKind, ids: Sequence[Id]) -> None:
    """Forget the target ids among these whose rows are no longer in their table."""
    await work.execute(
        delete(import_id_map).where(
            import_id_map.c.entry_id == entry_id,
            import_id_map.c.source_kind == kind.name,
            import_id_map.c.target_id == any_(literal(ids, ARRAY(Uuid))),
            ~exists().where(kind.table.c.id == import_id_map.c.target_id),
        )
    )


async def found_count(work: UnitOfWork, entry_id: Id, kind: BundleKind) -> int:
    """The number of rows of a kind, brought in by an entry, that are in their table."""
    count: int = await work.scalar(
        select(func.count())
        .select_from(kind.table)
        .where(kind.table.c.id.in_(targets_of(entry_id, kind.name)))
    )
    return count
