"""Planning, checking and applying rows of a bundle, a chunk in one transaction."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import ARRAY, Uuid, func, literal, select, update

from models.core.base import Id
from models.core.bundles.findings import Findings
from models.core.bundles.kinds import BundleKind, ImportTarget, Row
from models.core.bundles.rules import imported_text
from models.core.keys import first_free
from models.workspace.bundles.id_map import forget_sources, plan_ids, targets_of
from models.workspace.bundles.inserting import insert_rows
from models.workspace.bundles.lines import read_rows
from models.workspace.bundles.references import in_order, place_below_parents, resolve
from models.workspace.bundles.registry import KINDS
from runtime.database import UnitOfWork


async def plan_workspace(work: UnitOfWork, target: ImportTarget, source_id: Id) -> None:
    """Record which workspace of a bundle an entry is; rows may name it."""
    ids = {str(source_id): str(target.workspace_id)}
    await plan_ids(work, target, "workspace", ids)


async def plan_chunk(
    work: UnitOfWork, target: ImportTarget, kinds: Sequence[BundleKind], lines: Sequence[bytes]
) -> Findings:
    """Read rows and give them their ids: what later chunks refer to. Nothing else is written.

    An id that was planned before is an error, so a check that begins anew forgets the ids first.
    """
    findings = Findings()
    found = read_rows(lines, kinds, findings)
    for kind in kinds:
        rows = found[kind.name]
        findings.rows[kind.name] += len(rows)
        if kind.source_kind is not None and rows:
            ids = [row[kind.identity].lower() for row in rows]
            planned = await _identified(work, target, kind, rows)
            recorded = await plan_ids(work, target, kind.source_kind, planned)
            twice = len(ids) - len(set(ids)) + len(planned) - recorded
            if twice:
                findings.refuse("duplicate_id", f"{kind.name}: an id is there twice.", twice)
            if unknown := len(set(ids) - planned.keys()):
                findings.warn(
                    "unknown_person",
                    f"{kind.name}: nobody there is known by that address.",
                    unknown,
                )
    return findings


async def check_chunk(
    work: UnitOfWork,
    target: ImportTarget,
    kinds: Sequence[BundleKind],
    lines: Sequence[bytes],
    context_rows: Mapping[str, Sequence[Row]],
    *,
    checked: bool,
) -> Findings:
    """The findings of applying the lines, once all ids are planned: rows left out or changed.

    The ids of rows that are left out are forgotten; nothing else is written.

    `context_rows` are the rows that others are checked against, by kind. Where planning found no
    error, all lines are `checked`; else the refused lines are passed over.
    """
    findings = Findings()
    # What is wrong with lines has been told by planning.
    found = read_rows(lines, kinds, Findings(), checked=checked)
    for kind in kinds:
        if kind.judge is not None:
            kind.judge(found[kind.name], context_rows.get(kind.beside or "", ()), findings)
        resolved = await resolve(work, target, kind, found[kind.name], findings)
        in_order(kind, resolved.rows, None, findings)
        # What names a row that is left out is left out as well, or loses it.
        await forget_sources(work, target.entry_id, kind.name, resolved.left_out)
        findings.rows[kind.name] += len(resolved.rows)
    return findings


@dataclass(frozen=True, slots=True)
class ReadChunk:
    """Rows of a chunk as they go into their tables, by kind, with the findings of reading them."""

    rows: Mapping[str, Sequence[Row]]
    findings: Findings


async def read_chunk(
    work: UnitOfWork, target: ImportTarget, kinds: Sequence[BundleKind], lines: Sequence[bytes]
) -> ReadChunk:
    """Read rows whose ids are planned. Nothing is written.

    It may run ahead: what it asks for does not change while rows are applied.
    """
    findings = Findings()
    found = await asyncio.to_thread(read_rows, lines, kinds, findings)
    rows: dict[str, Sequence[Row]] = {}
    for kind in kinds:
        resolved = await resolve(work, target, kind, found[kind.name], findings)
        rows[kind.name] = await prepare_rows(work, target, kind, resolved.rows)
    return ReadChunk(rows, findings)


async def prepare_rows(
    work: UnitOfWork, target: ImportTarget, kind: BundleKind, rows: Sequence[Row]
) -> Sequence[Row]:
    """Rows whose ids are ids of the target, with the last word of their noun."""
    return rows if kind.prepare is None else await kind.prepare(work, target, rows)


async def apply_chunk(
    work: UnitOfWork, target: ImportTarget, kinds: Sequence[BundleKind], chunk: ReadChunk
) -> Findings:
    """Insert rows under their planned ids.

    Rows that are there already stay as they are; of a kind that is copied there are none.
    `findings.rows` counts the rows that are there afterwards.
    """
    findings = chunk.findings
    for kind in kinds:
        rows: Sequence[Row] = await place_below_parents(
            work, target, kind, chunk.rows[kind.name], findings
        )
        if kind.unique_key:
            rows = await _with_free_keys(work, target, kind, rows)
        if kind.store is not None:
            rows = await kind.store(work, target, rows)
        if kind.hides and target.hidden:
            rows = [{**row, "deleted_at": work.now} for row in rows]
        if rows:
            await insert_rows(work, kind, rows)
        findings.rows[kind.name] += len(rows)
    return findings


async def show(work: UnitOfWork, target: ImportTarget) -> None:
    """Let people see the rows that were applied out of their sight."""
    for kind in KINDS:
        if kind.hides:
            table = kind.table
            own = table.c.id.in_(targets_of(target.entry_id, kind.name))
            hidden = table.c.workspace_id == target.workspace_id, table.c.deleted_at.is_not(None)
            await work.execute(update(table).where(own, *hidden).values(deleted_at=None))


async def conclude(work: UnitOfWork, target: ImportTarget) -> None:
    """Ask for what follows from all rows together, once everything is applied."""
    for kind in KINDS:
        if kind.conclude is not None:
            await kind.conclude(work, target)


async def _identified(
    work: UnitOfWork, target: ImportTarget, kind: BundleKind, rows: Sequence[Row]
) -> Mapping[str, str]:
    if kind.identify is not None:
        return await kind.identify(work, target, rows)
    entry = target.entry_id.hex
    ids = (row[kind.identity].lower() for row in rows)
    return {one: imported_text(entry, one) for one in ids}


async def _with_free_keys(
    work: UnitOfWork, target: ImportTarget, kind: BundleKind, rows: Sequence[Row]
) -> list[Row]:
    """The rows with keys that nothing else in the workspace has."""
    own = literal([Id(row["id"]) for row in rows], ARRAY(Uuid))
    others = await work.rows(
        select(kind.table.c.key).where(
            kind.table.c.workspace_id == target.workspace_id, kind.table.c.id != func.all(own)
        )
    )
    taken = {row.key for row in others}
    keyed = []
    for row in rows:
        key = first_free(row["key"], taken)
        taken.add(key)
        keyed.append({**row, "key": key})
    return keyed
