"""Replacing the ids of a bundle by ids of the workspace it goes to; the table remembers both."""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlmodel import Field, SQLModel

from models.core.base import Id
from models.core.bundles import USER, BundleKind, Findings, ImportTarget, Row, ids_in, rewritten
from runtime.database import UnitOfWork, columns_of
from runtime.postgresql.schema import table_of


class ImportId(SQLModel, table=True):
    """The id that a row of a bundle gets, or has got.

    `entry_id` is the workspace of the import run. Checking writes the rows, applying and rolling
    back read them. A person has the kind `user`, and the id of the user who stands for them.
    """

    __tablename__ = "import_id_map"
    __table_args__ = (
        sa.Index("ix_import_id_map_run_id", "run_id"),
        sa.Index(
            "ix_import_id_map_entry_id_source_kind_target_id",
            *("entry_id", "source_kind", "target_id"),
        ),
    )

    run_id: Id
    entry_id: Id = Field(primary_key=True)
    source_id: Id = Field(primary_key=True)
    source_kind: str = Field(primary_key=True)
    target_id: Id


import_id_map = table_of(ImportId)


Ids = Mapping[str, Mapping[str, str]]
"""Source id → target id, by kind."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """Rows as they go into the table, and the source ids of the rows left out."""

    rows: list[Row]
    left_out: list[str]


async def resolve(
    work: UnitOfWork,
    target: ImportTarget,
    kind: BundleKind,
    rows: Sequence[Row],
    findings: Findings,
) -> Resolved:
    """The rows as they go into the table; what is left out or changed is a warning."""
    named = await asyncio.to_thread(_named, kind, rows)
    ids = await target_ids(work, target, named)
    return await asyncio.to_thread(_resolved, target, kind, rows, ids, findings)


async def place_below_parents(
    work: UnitOfWork,
    target: ImportTarget,
    kind: BundleKind,
    rows: Sequence[Row],
    findings: Findings,
) -> Sequence[Row]:
    """The rows, without a parent where that is neither in the table nor before them."""
    return in_order(kind, rows, await _there(work, target, kind, rows), findings)


def in_order(
    kind: BundleKind, rows: Sequence[Row], there: set[Any] | None, findings: Findings
) -> Sequence[Row]:
    """The rows, without a parent where that does not come before.

    `there` are the places of those in the table; None: all that are not among the rows are.
    """
    if kind.parent is None:
        return rows
    inside = {_place(kind, row, "id") for row in rows}
    earlier_places: set[Any] = set()
    for row in rows:
        if row.get(kind.parent):
            above = _place(kind, row, kind.parent)
            known = above in earlier_places or (
                above not in inside and (there is None or above in there)
            )
            if not known:
                findings.warn("parent_order", f"{kind.name}: a parent comes after its child.")
                row[kind.parent] = None
        earlier_places.add(_place(kind, row, "id"))
    return rows


def _resolved(
    target: ImportTarget,
    kind: BundleKind,
    rows: Sequence[Row],
    ids: Ids,
    findings: Findings,
) -> Resolved:
    anything = {source: found for of_kind in ids.values() for source, found in of_kind.items()}
    resolver = _Resolver(target, kind, {**ids, "*": anything}, findings)
    resolved_rows, left_out = [], []
    for row in rows:
        made = resolver.row(row)
        if made is not None:
            resolved_rows.append(made)
        elif kind.source_kind == kind.name:
            left_out.append(row[kind.identity].lower())
    return Resolved(resolved_rows, left_out)


def _named(kind: BundleKind, rows: Sequence[Row]) -> set[str]:
    """All ids that rows name, their own included."""
    ids: set[str] = set()
    for name in {*kind.references, *([kind.identity] if kind.source_kind else [])}:
        for row in rows:
            value = row.get(name)
            if isinstance(value, str):
                ids.add(value.lower())
            elif value is not None:
                ids.update(ids_in(value))
    for name in kind.contents:
        for row in rows:
            ids.update(ids_in(row.get(name)))
    return ids


class _Resolver:
    """Resolves rows of a kind, very many: what they have in common is looked up once."""

    def __init__(
        self, target: ImportTarget, kind: BundleKind, ids: Ids, findings: Findings
    ) -> None:
        self._target, self._kind, self._ids, self._findings = target, kind, ids, findings
        self._common = {"workspace_id": str(target.workspace_id), **kind.imported_as}
        self._own = ids.get(kind.name, {}) if kind.source_kind == kind.name else None

    def row(self, source: Row) -> Row | None:
        """The row with the ids of the target; None when it is left out."""
        kind = self._kind
        row = {**source, **self._common}
        if self._own is not None:
            own = self._own.get(source[kind.identity].lower())
            if own is None:
                self._findings.warn("not_planned", f"{kind.name}: a row was added after planning.")
                return None
            row[kind.identity] = own
        for name, named in kind.references.items():
            if source.get(name) is not None:
                row[name] = self._reference(name, named, source[name])
                if row[name] is None and (name in kind.required or not kind.table.c[name].nullable):
                    return None
        for name in kind.contents:
            if name in source:
                row[name] = rewritten(source[name], self._ids["*"])
        return row

    def _reference(self, name: str, named: str, value: str | list[str]) -> str | list[str] | None:
        known = self._ids.get(named, {})
        if isinstance(value, list):
            return [known[one.lower()] for one in value if one.lower() in known]
        found = known.get(value.lower())
        if found is not None:
            return found
        kind = self._kind
        replaced = named == USER and name not in kind.required and not kind.table.c[name].nullable
        what = "was replaced by the importing user" if replaced else "is not in the bundle"
        self._findings.warn("missing_reference", f"{kind.name}: {name} {what}.")
        return str(self._target.user_id) if replaced else None


async def _there(
    work: UnitOfWork, target: ImportTarget, kind: BundleKind, rows: Sequence[Row]
) -> set[Any]:
    """The places of the rows in the table that these rows name as their parents."""
    if kind.parent is None:
        return set()
    parents = {row[kind.parent] for row in rows if row.get(kind.parent)}
    if not parents:
        return set()
    wanted = sa.any_(sa.literal([Id(one) for one in parents], sa.ARRAY(sa.Uuid)))
    found = await work.rows(
        sa.select(kind.table).where(
            kind.table.c.workspace_id == target.workspace_id, kind.table.c.id == wanted
        )
    )
    return {_place(kind, columns_of(row), "id") for row in found}


def _place(kind: BundleKind, row: Mapping[str, Any], name: str) -> tuple[str, ...]:
    whole = () if kind.group is None else (str(row[kind.group]),)
    return (*whole, str(row[name]))


async def plan_ids(
    work: UnitOfWork, target: ImportTarget, source_kind: str, ids: Mapping[str, str]
) -> int:
    """Record the ids that rows will have; returns the number of those not recorded before."""
    if not ids:
        return 0
    sources, targets = (_ids(side) for side in (ids.keys(), ids.values()))
    statement = upsert(import_id_map).from_select(
        ["run_id", "entry_id", "source_kind", "source_id", "target_id"],
        sa.select(
            sa.literal(target.run_id),
            sa.literal(target.entry_id),
            sa.literal(source_kind),
            sa.func.unnest(sources),
            sa.func.unnest(targets),
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
    ids = sa.func.json_object_agg(import_id_map.c.source_id, import_id_map.c.target_id)
    rows = await work.rows(
        sa.select(import_id_map.c.source_kind, ids.label("ids"))
        .where(
            import_id_map.c.entry_id == target.entry_id,
            import_id_map.c.source_id == sa.any_(_ids(source_ids)),
        )
        .group_by(import_id_map.c.source_kind)
    )
    return {row.source_kind: row.ids for row in rows}


def _ids(ids: Iterable[str]) -> sa.ColumnElement[Any]:
    """An array of ids, which are one text on the way: there are very many.

    Its elements are cast one by one, which the planner does beforehand: only an array that it
    knows is looked up by a hash.
    """
    return sa.cast(
        sa.func.string_to_array(sa.literal(",".join(ids)), ",", type_=sa.ARRAY(sa.Text)),
        sa.ARRAY(sa.Uuid),
    )


async def forget_run(work: UnitOfWork, run_id: Id) -> None:
    """Forget what every entry of a run became."""
    await work.execute(sa.delete(import_id_map).where(import_id_map.c.run_id == run_id))


async def forget_ids(work: UnitOfWork, entry_id: Id) -> None:
    """Forget what was planned for an entry."""
    await work.execute(sa.delete(import_id_map).where(import_id_map.c.entry_id == entry_id))


async def forget_sources(
    work: UnitOfWork, entry_id: Id, source_kind: str, source_ids: Collection[str]
) -> None:
    """Forget what was planned for rows of a kind that are left out."""
    if source_ids:
        await work.execute(
            sa.delete(import_id_map).where(
                import_id_map.c.entry_id == entry_id,
                import_id_map.c.source_kind == source_kind,
                import_id_map.c.source_id == sa.any_(_ids(source_ids)),
            )
        )


def targets_of(entry_id: Id, source_kind: str) -> sa.Select[Any]:
    """The ids that rows of a kind have got."""
    return sa.select(import_id_map.c.target_id).where(
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
        sa.delete(import_id_map).where(
            import_id_map.c.entry_id == entry_id,
            import_id_map.c.source_kind == kind.name,
            import_id_map.c.target_id == sa.any_(sa.literal(ids, sa.ARRAY(sa.Uuid))),
            ~sa.exists().where(kind.table.c.id == import_id_map.c.target_id),
        )
    )


async def found_count(work: UnitOfWork, entry_id: Id, kind: BundleKind) -> int:
    """The number of rows of a kind, brought in by an entry, that are in their table."""
    count: int = await work.scalar(
        sa.select(sa.func.count())
        .select_from(kind.table)
        .where(kind.table.c.id.in_(targets_of(entry_id, kind.name)))
    )
    return count
