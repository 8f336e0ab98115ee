"""Comparing what was imported with the bundle: numbers of rows, and samples of contents."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_core import to_json
from sqlalchemy import JSON, ColumnElement, Text, cast, column, func, literal, select

from models.core.base import JsonObject
from models.core.bundles.findings import Findings
from models.core.bundles.kinds import BundleKind, ImportTarget, Row
from models.workspace.bundles.applying import prepare_rows
from models.workspace.bundles.id_map import found_count
from models.workspace.bundles.inserting import or_default
from models.workspace.bundles.lines import read_rows
from models.workspace.bundles.references import resolve
from models.workspace.bundles.registry import KINDS
from models.workspace.legacy_imports.commands.entries import Held, record
from models.workspace.legacy_imports.commands.importing import kinds_for
from models.workspace.legacy_imports.rules import ImportStage, Outcome, is_within_tolerance
from runtime.database import UnitOfWork

SAMPLE = 50
"""Rows of one kind whose contents are compared."""

_OF_THEIR_OWN = frozenset({"key", "created_at", "updated_at", "computed"})
"""Columns that may differ: a key that was taken is numbered, no moment lies ahead, and what is
computed comes later."""


@dataclass(frozen=True, slots=True)
class Sample:
    """`equal` of `rows` rows have the contents that the bundle says; `hash` is of what is there."""

    kind: str
    rows: int
    equal: int
    hash: str


async def verify_sample(
    work: UnitOfWork, target: ImportTarget, kinds: Sequence[BundleKind], lines: Sequence[bytes]
) -> list[Sample]:
    """Compare contents of rows of a chunk with the tables, by their hashes."""
    by_kind = read_rows(lines, kinds, Findings())
    samples = []
    for kind in kinds:
        if kind.source_kind != kind.name:
            continue
        resolved = await resolve(work, target, kind, by_kind[kind.name][-SAMPLE:], Findings())
        source_rows = resolved.rows
        if not source_rows:
            continue
        names = {name for row in source_rows for name in row}
        rows = await prepare_rows(work, target, kind, source_rows)
        if kind.store is not None:
            rows = await kind.store(work, target, rows)
        samples.append(await _compared(work, kind, names, rows))
    return samples


async def _compared(
    work: UnitOfWork, kind: BundleKind, expected_names: Collection[str], rows: Sequence[Row]
) -> Sample:
    table = kind.table
    own = {*_OF_THEIR_OWN, *kind.imported_as, kind.parent, "id"}
    names = sorted(name for name in set(expected_names) & set(table.c.keys()) if name not in own)
    typed = [column(name, table.c[name].type) for name in ["id", *names]]
    given = cast(literal(to_json(rows).decode(), Text), JSON)
    source = func.json_to_recordset(given).table_valued(*typed).render_derived(with_types=True)

    def digest(columns: Iterable[ColumnElement[Any]]) -> ColumnElement[str]:
        named = zip(names, columns, strict=True)
        pairs = [part for name, value in named for part in (literal(name, Text), value)]
        return func.md5(cast(func.jsonb_strip_nulls(func.jsonb_build_object(*pairs)), Text))

    meant = digest(or_default(table.c[name], source.c[name]) for name in names)
    there = digest(table.c[name] for name in names)
    pairs = await work.rows(
        select(meant.label("expected"), there.label("there"), table.c.id)
        .select_from(source.outerjoin(table, table.c.id == source.c.id))
        .order_by(source.c.id)
    )
    equal = sum(one.id is not None and one.expected == one.there for one in pairs)
    whole = select(func.md5(literal("".join(one.there for one in pairs), Text)))
    return Sample(kind.name, len(pairs), equal, await work.scalar(whole))


async def verify_counts(work: UnitOfWork, locked_entry: Held, samples: Sequence[Sample]) -> None:
    """Count what is there, and say how the import of a workspace has ended."""
    entry = locked_entry.entry
    counts: dict[str, JsonObject] = {}
    for kind in kinds_for(entry, KINDS):
        imported = entry.counts.get(kind.name, 0)
        source = entry.source_counts.get(kind.name)
        if not imported and not source:
            continue
        counts[kind.name] = {"imported": imported}
        if source is not None:
            counts[kind.name]["source"] = source
        if kind.source_kind == kind.name:
            counts[kind.name]["found"] = await found_count(work, entry.id, kind)
    outcome = _outcome(counts, samples)
    verification = {
        "outcome": outcome.value,
        "counts": counts,
        "samples": {
            one.kind: {"rows": one.rows, "equal": one.equal, "hash": one.hash} for one in samples
        },
    }
    if outcome is Outcome.DIFFERENT:
        await record(
            work,
            entry.id,
            stage=ImportStage.FAILED.value,
            last_error="What was imported is not what the bundle has; see the verification.",
            verification=verification,
        )
    else:
        await record(
            work, entry.id, stage=ImportStage.DONE.value, verification=verification, progress={}
        )


def _outcome(counts: dict[str, JsonObject], samples: Sequence[Sample]) -> Outcome:
    if any(one.get("found", one["imported"]) != one["imported"] for one in counts.values()):
        return Outcome.DIFFERENT
    rows, equal = sum(one.rows for one in samples), sum(one.equal for one in samples)
    if not is_within_tolerance(rows, equal):
        return Outcome.DIFFERENT
    whole = all(one.get("source", one["imported"]) == one["imported"] for one in counts.values())
    return Outcome.EQUAL if whole and rows == equal else Outcome.WITHIN_TOLERANCE
