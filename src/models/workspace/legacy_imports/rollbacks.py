"""Rolling back the import of an entry: newest first, kind after kind, a batch at a time.

Rows that a member has changed since are kept, with the rows they depend on, unless they are removed
by force. Then a workspace that the import made goes as a whole.
"""

from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass

import sqlalchemy as sa

from models.core.base import Id
from models.core.bundles import BundleKind, Stage
from models.core.purging import MAX_ROWS, is_owned, purge
from models.messages.workspace_events.log import purge_events_of
from models.people.workspaces import purge_workspace
from models.workspace.bundles.references import forget_gone, forget_ids, newest_targets, targets_of
from models.workspace.bundles.registry import KINDS
from models.workspace.legacy_imports import rules
from models.workspace.legacy_imports.queries import LegacyImportWorkspace
from models.workspace.legacy_imports.stages import Held, record
from runtime.database import UnitOfWork

_REMOVED = tuple(kind for kind in reversed(KINDS) if kind.source_kind == kind.name)
"""The kinds whose rows are removed by their ids; other rows go with what they belong to."""
_TABLES = tuple(kind.table for kind in KINDS)
_BATCH = 2_500
"""Rows of a kind that one transaction removes, if little hangs on them."""
_NAMED = 5
"""Rows of a kind that a warning names."""


async def remove_batch(work: UnitOfWork, locked_entry: Held) -> int | None:
    """Remove some rows of a held entry; returns their number, None when nothing is left to do.

    The entry says how far it is, so a batch costs the same however many rows there were.
    """
    entry = locked_entry.entry
    if not _is_due(locked_entry):
        return None
    if entry.target_workspace_id is None:
        await _conclude(work, locked_entry, gone=True)
        return None
    place = _Place.of(entry)
    while place.kind < len(_REMOVED):
        count, following = await _remove_at(work, locked_entry, place)
        if count or following.below is not None:
            progress = {"stage": "rollback", **asdict(following)}
            await record(work, entry.id, progress=progress, **_running(locked_entry))
            return count
        place = following
    remaining = await _rows_left(work, locked_entry)
    if entry.creates and not any(remaining.values()):
        count = await purge_events_of(work, entry.target_workspace_id) or await purge_workspace(
            work, entry.target_workspace_id
        )
        if count:
            return count
    await _conclude(
        work,
        locked_entry,
        gone=not any(remaining.values()),
        kept=await _names(work, locked_entry, remaining),
    )
    return None


@dataclass(frozen=True, slots=True)
class _Place:
    """The place of a rollback: a kind, the id it is below, and whether it is gone through again.

    A row that others hang on is kept until they are gone, which may be later in the same kind.
    """

    kind: int = 0
    below: str | None = None
    again: bool = False

    @classmethod
    def of(cls, entry: LegacyImportWorkspace) -> "_Place":
        progress = entry.progress if entry.progress.get("stage") == "rollback" else {}
        return cls(int(progress.get("kind", 0)), progress.get("below"), bool(progress.get("again")))


async def _remove_at(work: UnitOfWork, locked_entry: Held, place: _Place) -> tuple[int, _Place]:
    """Remove the rows of a batch of one kind that may be removed; returns their number, and where
    to continue.
    """
    entry, kind = locked_entry.entry, _REMOVED[place.kind]
    below = None if place.below is None else Id(place.below)
    batch = await newest_targets(work, entry.id, kind.name, below, _BATCH)
    if not batch:
        if place.again:
            return 0, _Place(place.kind)
        if entry.creates and _by_force(locked_entry):
            # What others added to a workspace that goes as a whole.
            others = sa.select(kind.table.c.id).where(*_can_go(locked_entry, kind))
            count = await purge(work, kind.table, others.order_by(kind.table.c.id.desc()))
            return count, _Place(place.kind if count else place.kind + 1)
        return 0, _Place(place.kind + 1)
    some = kind.table.c.id == sa.any_(sa.literal(batch, sa.ARRAY(sa.Uuid)))
    rows = sa.select(kind.table.c.id).where(some, *_can_go(locked_entry, kind))
    newest_first = rows.order_by(kind.table.c.id.desc())
    count = await purge(work, kind.table, newest_first, MAX_ROWS, _BATCH)
    if count:
        await forget_gone(work, entry.id, kind, batch)
    if count >= MAX_ROWS:
        # There was too much of it for one transaction.
        return count, place
    return count, _Place(place.kind, str(batch[-1]), place.again or count > 0)


def _is_due(locked_entry: Held) -> bool:
    if locked_entry.run.status == rules.LegacyImportStatus.CANCELLING:
        return locked_entry.stage not in {rules.ImportStage.DONE, rules.ImportStage.CANCELLED}
    return locked_entry.entry.rollback_state in {
        rules.RollbackState.REQUESTED,
        rules.RollbackState.RUNNING,
    }


def _by_force(locked_entry: Held) -> bool:
    """True when no member can have changed anything, or it is removed all the same."""
    hidden = locked_entry.entry.lifecycle_state != rules.LifecycleState.LIVE
    return (
        locked_entry.run.status == rules.LegacyImportStatus.CANCELLING
        or locked_entry.run.rollback_force
        or hidden
    )


def _running(locked_entry: Held) -> dict[str, str]:
    rolling = locked_entry.run.status == rules.LegacyImportStatus.ROLLING_BACK
    return {"rollback_state": rules.RollbackState.RUNNING.value} if rolling else {}


def _can_go(locked_entry: Held, kind: BundleKind) -> list[sa.ColumnElement[bool]]:
    """That a row of a kind is in the workspace of an entry and can go now."""
    table = kind.table
    own = table.c.workspace_id == locked_entry.entry.target_workspace_id
    conditions = [own, *_holding(kind, by_force=_by_force(locked_entry))]
    if not _by_force(locked_entry):
        conditions.append(~_is_kept(locked_entry, table, table))
    return conditions


def _is_kept(locked_entry: Held, table: sa.Table, rows: sa.FromClause) -> sa.ColumnElement[bool]:
    """True when a row was changed, or belongs to one that was."""
    conditions = [_is_changed(locked_entry, rows)]
    for key in _keys_of(table):
        above = key.referred_table.alias()
        named = (
            above.c[element.column.name] == rows.c[column.name]
            for column, element in zip(key.columns, key.elements, strict=True)
        )
        conditions.append(
            sa.exists().where(*named, _is_kept(locked_entry, key.referred_table, above))
        )
    return sa.or_(*conditions)


def _keys_of(table: sa.Table) -> Iterator[sa.ForeignKeyConstraint]:
    """The keys by which a row belongs to another that was imported."""
    for key in table.foreign_key_constraints:
        if key.referred_table is not table and key.referred_table in _TABLES and is_owned(key):
            yield key


def _is_changed(locked_entry: Held, table: sa.FromClause) -> sa.ColumnElement[bool]:
    if "updated_at" not in table.c:
        return sa.false()
    changed = table.c.updated_at > locked_entry.entry.imported_at
    return sa.and_(changed, table.c.deleted_at.is_(None)) if "deleted_at" in table.c else changed


def _holding(kind: BundleKind, *, by_force: bool) -> Iterator[sa.ColumnElement[bool]]:
    """That no row is left which hangs on a row of this kind and might have been kept."""
    later = {one.table.name for one in _REMOVED[: _REMOVED.index(kind)]}
    for table, key in _keys_to(kind.table):
        if table is kind.table or (table.name in later and not by_force):
            other = table.alias("hanging")
            yield ~sa.exists().where(
                *(
                    other.c[column.name] == element.column
                    for column, element in zip(key.columns, key.elements, strict=True)
                )
            )
    if kind.stage == Stage.SCHEMA and not by_force:
        # Fields and views say what the rows of a database mean: they stay as long as one of them.
        for key in _keys_of(kind.table):
            yield from _without_others(kind.table, key, later)


def _without_others(
    table: sa.Table, key: sa.ForeignKeyConstraint, later: Collection[str]
) -> Iterator[sa.ColumnElement[bool]]:
    """That no row of another table is left which belongs to the same."""
    for other, others in _keys_to(key.referred_table):
        if other is not table and other.name in later and is_owned(others):
            beside = other.alias("beside")
            pairs = zip(others.columns, key.columns, strict=True)
            yield ~sa.exists().where(
                *(beside.c[one.name] == table.c[two.name] for one, two in pairs)
            )


def _keys_to(table: sa.Table) -> Iterator[tuple[sa.Table, sa.ForeignKeyConstraint]]:
    for one in KINDS:
        for key in one.table.foreign_key_constraints:
            if key.referred_table is table:
                yield one.table, key


async def _rows_left(work: UnitOfWork, locked_entry: Held) -> dict[str, int]:
    """The rows of each kind still there, counted; in a workspace of its own, by any creator."""
    counts = {}
    for kind in _REMOVED:
        count = (
            sa.select(sa.func.count()).select_from(kind.table).where(_is_left(locked_entry, kind))
        )
        counts[kind.name] = await work.scalar(count)
    return counts


def _is_left(locked_entry: Held, kind: BundleKind) -> sa.ColumnElement[bool]:
    own = kind.table.c.workspace_id == locked_entry.entry.target_workspace_id
    if locked_entry.entry.creates:
        return own
    return sa.and_(own, kind.table.c.id.in_(targets_of(locked_entry.entry.id, kind.name)))


async def _names(work: UnitOfWork, locked_entry: Held, left: dict[str, int]) -> list[str]:
    """The rows that were kept, in words."""
    remarks = []
    for kind in _REMOVED:
        if not left[kind.name]:
            continue
        rows = await work.rows(
            sa.select(kind.table.c.id)
            .where(_is_left(locked_entry, kind))
            .order_by(kind.table.c.id.desc())
            .limit(_NAMED)
        )
        ids = ", ".join(str(row.id) for row in rows)
        remarks.append(
            "Kept because edited since the import, or linked to edited data:"
            f" {left[kind.name]:,} {kind.name}: {ids}."
        )
    return remarks


async def _conclude(
    work: UnitOfWork, locked_entry: Held, *, gone: bool, kept: list[str] | None = None
) -> None:
    """Say what became of an entry whose rows can go no further."""
    entry = locked_entry.entry
    state = (
        {} if not gone else {"lifecycle_state": rules.LifecycleState.REMOVED.value, "counts": {}}
    )
    if gone:
        await forget_ids(work, entry.id)
    if locked_entry.run.status == rules.LegacyImportStatus.CANCELLING:
        await record(work, entry.id, stage=rules.ImportStage.CANCELLED.value, progress={}, **state)
        return
    end = rules.RollbackState.COMPLETED if gone else rules.RollbackState.PARTIAL
    await record(
        work,
        entry.id,
        rollback_state=end.value,
        warnings=[*entry.warnings, *(kept or [])],
        progress={},
        **state,
    )
