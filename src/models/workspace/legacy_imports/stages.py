"""The stages of one workspace: its dry run, its making and filling, and the verification."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_core import to_json
from sqlalchemy import JSON, ColumnElement, Text, cast, column, func, literal, select

from models.core.base import Id, JsonObject
from models.core.bundles import BundleKind, Findings, ImportTarget, Row
from models.people.workspaces import create_hidden_workspace, is_open_workspace
from models.workspace.bundles.applying import or_default, plan_workspace, prepare_rows
from models.workspace.bundles.lines import read_rows
from models.workspace.bundles.references import forget_ids, found_count, resolve
from models.workspace.bundles.registry import KINDS
from models.workspace.legacy_imports.entries import (
    EntryMovedError,
    Held,
    described,
    enter_stage,
    findings_of,
    hold,
    record,
    target_workspace,
    without_none,
)
from models.workspace.legacy_imports.queries import find_entry_by_id
from models.workspace.legacy_imports.rules import (
    CHECKED,
    IMPORT_STAGES,
    ImportStage,
    LegacyImportStatus,
    LifecycleState,
    Outcome,
    is_within_tolerance,
)
from models.workspace.legacy_imports.tables import LegacyImportWorkspace
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork
from runtime.errors import ConflictError

_SHOWN = 20


async def begin_dry_run(work: UnitOfWork, entry_id: Id, keys: KeyRing) -> ImportStage:
    """Begin a dry run anew: what an earlier one had planned is forgotten."""
    locked_entry = await hold(work, entry_id, LegacyImportStatus.DRY_RUNNING)
    if locked_entry.stage in CHECKED:
        raise EntryMovedError
    await forget_ids(work, entry_id)
    await plan_workspace(
        work, locked_entry.target(keys), Id(locked_entry.entry.source_workspace_id)
    )
    await enter_stage(
        work, locked_entry, ImportStage.VALIDATING, keeps=False, counts={}, warnings=[], errors=[]
    )
    return ImportStage.VALIDATING


async def conclude_planning(work: UnitOfWork, locked_entry: Held, unread: Sequence[str]) -> None:
    """All rows have their ids: compare their number with what the bundle says of itself."""
    findings = findings_of(locked_entry.entry)
    for kind, count in sorted(locked_entry.entry.source_counts.items()):
        if findings.rows[kind] != count:
            findings.refuse(
                "counts",
                f"The manifest lists {count:,} {kind[:50]}, but the bundle has"
                f" {findings.rows[kind]:,}.",
            )
    for path in unread[:_SHOWN]:
        findings.warn("unknown_file", f"The file {path} has an unknown kind and is skipped.")
    findings.rows.clear()
    progress = {"stage": ImportStage.DRY_RUN.value, "done": 0, "findings": findings.to_json()}
    await record(work, locked_entry.entry.id, stage=ImportStage.DRY_RUN.value, progress=progress)


async def is_clean(work: UnitOfWork, entry_id: Id) -> bool:
    """True when the lines of an entry are clean, as far as it is planned and checked."""
    entry = await find_entry_by_id(work, entry_id)
    return entry is not None and not findings_of(entry).errors


async def conclude_dry_run(work: UnitOfWork, locked_entry: Held) -> None:
    """The workspace is checked: it is ready, or blocked by its errors."""
    findings = findings_of(locked_entry.entry)
    coming = kinds_for(locked_entry.entry, KINDS)
    for kind in KINDS:
        rows = locked_entry.entry.source_counts.get(kind.name)
        if rows and kind not in coming:
            message = f"{kind.name}: those of the existing workspace are kept."
            findings.warn("of_members", message, rows)
    target = locked_entry.entry.target_workspace_id
    if target is not None and not await is_open_workspace(work, target):
        findings.refuse("target", "The target workspace no longer exists.")
    errors = described(findings.errors)
    await record(
        work,
        locked_entry.entry.id,
        stage=(ImportStage.BLOCKED if errors else ImportStage.READY).value,
        counts=without_none(findings.rows),
        warnings=described(findings.warnings),
        errors=errors,
        progress={},
    )


async def make_workspace(work: UnitOfWork, locked_entry: Held) -> None:
    """Have the workspace that an entry goes to. Raises ConflictError when it was deleted."""
    entry = locked_entry.entry
    workspace_id = target_workspace(entry)
    if entry.creates:
        await create_hidden_workspace(
            work, workspace_id, entry.source_name, locked_entry.run.created_by_user_id
        )
    elif not await is_open_workspace(work, workspace_id):
        raise ConflictError("The target workspace no longer exists.")
    await record(
        work,
        entry.id,
        target_workspace_id=workspace_id,
        lifecycle_state=LifecycleState.HIDDEN.value,
        last_error=None,
    )


def kinds_for(entry: LegacyImportWorkspace, kinds: Sequence[BundleKind]) -> list[BundleKind]:
    """The imported kinds among these; imports change no members of an existing workspace."""
    return [kind for kind in kinds if entry.creates or not kind.of_members]


async def end_stage(
    work: UnitOfWork, locked_entry: Held, filled_stages: Collection[str]
) -> ImportStage:
    """All of a stage is applied; the next of the `filled_stages` follows, or verification."""
    behind = IMPORT_STAGES[IMPORT_STAGES.index(locked_entry.stage) + 1 :]
    following = next((one for one in behind if one in filled_stages), ImportStage.VERIFYING)
    if following != ImportStage.VERIFYING:
        await enter_stage(work, locked_entry, following)
        return following
    found = described(findings_of(locked_entry.entry).warnings)
    warnings = list(dict.fromkeys([*locked_entry.entry.warnings, *found]))
    await enter_stage(work, locked_entry, following, warnings=warnings, imported_at=work.now)
    return following


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
            last_error="The imported data does not match the bundle. See the verification.",
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
