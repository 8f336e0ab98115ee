"""The stages of one workspace of a run: its dry run, its making and filling, and the verification.

Each chunk is written under the lock of its entry.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from pydantic_core import to_json

from models.core.base import Id, JsonObject
from models.core.bundles import BundleKind, Findings, ImportTarget, Row, imported_id
from models.core.lifecycle import commands as lifecycle
from models.people.workspaces import create_hidden_workspace, is_open_workspace
from models.workspace.bundles.applying import or_default, plan_workspace, prepare_rows
from models.workspace.bundles.lines import read_rows
from models.workspace.bundles.references import forget_ids, found_count, resolve
from models.workspace.bundles.registry import KINDS
from models.workspace.bundles.rules import Manifest
from models.workspace.legacy_imports import queries, rules
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork
from runtime.errors import ConflictError
from runtime.ids import new_id

_run = queries.legacy_import_run.c
_entry = queries.legacy_import_workspace.c


class EntryMovedError(Exception):
    """The run has been cancelled, or another execution works on the entry: nothing is to do."""

    retryable = True


@dataclass(frozen=True, slots=True)
class Held:
    """An entry and its run; the entry is locked until the transaction ends."""

    run: queries.LegacyImportRun
    entry: queries.LegacyImportWorkspace

    @property
    def stage(self) -> rules.ImportStage:
        return rules.ImportStage(self.entry.stage)

    @property
    def done(self) -> int:
        """The number of chunks of the stage that are done."""
        return int(self.entry.progress.get("done", 0))

    def target(self, keys: KeyRing) -> ImportTarget:
        """The target that the rows of the entry go to."""
        return ImportTarget(
            run_id=self.run.id,
            entry_id=self.entry.id,
            workspace_id=target_workspace(self.entry),
            user_id=self.run.created_by_user_id,
            keys=keys,
            hidden=not self.entry.creates,
        )


def target_workspace(entry: queries.LegacyImportWorkspace) -> Id:
    """The workspace that an entry makes or fills."""
    return entry.target_workspace_id or imported_id(entry.id, Id(entry.source_workspace_id))


async def hold(work: UnitOfWork, entry_id: Id, *statuses: rules.LegacyImportStatus) -> Held:
    """The gate of a chunk: an entry whose run is in one of the statuses.

    The run is locked as well, against decisions. Raises EntryMovedError.
    """
    own = sa.select(_entry.run_id).where(_entry.id == entry_id).scalar_subquery()
    run = await work.first(
        # Shared, so that workspaces of a run are worked on side by side.
        sa.select(queries.legacy_import_run).where(_run.id == own).with_for_update(read=True),
        of=queries.LegacyImportRun,
    )
    if run is None or run.status not in statuses:
        raise EntryMovedError
    entry = await work.first(
        sa.select(queries.legacy_import_workspace).where(_entry.id == entry_id).with_for_update(),
        of=queries.LegacyImportWorkspace,
    )
    if entry is None:
        raise EntryMovedError
    return Held(run, entry)


async def hold_chunk(
    work: UnitOfWork,
    entry_id: Id,
    status: rules.LegacyImportStatus,
    stage: rules.ImportStage,
    done: int,
) -> Held:
    """As `hold`, for an execution that has done this number of chunks. Raises EntryMovedError."""
    locked_entry = await hold(work, entry_id, status)
    if (locked_entry.stage, locked_entry.done) != (stage, done):
        raise EntryMovedError
    return locked_entry


async def record(work: UnitOfWork, entry_id: Id, **values: object) -> None:
    """Write values of a held entry."""
    await work.execute(
        sa.update(queries.legacy_import_workspace)
        .where(_entry.id == entry_id)
        .values(**values, updated_at=work.now)
    )


async def record_chunk(
    work: UnitOfWork, locked_entry: Held, chunk_findings: Findings, *, total: int, counted: bool
) -> None:
    """One more chunk of the stage is done; `counted` ones add to the counts of the entry."""
    findings = findings_of(locked_entry.entry)
    findings.add(chunk_findings)
    counts: Counter[str] = Counter(locked_entry.entry.counts)
    if counted:
        counts.update(chunk_findings.rows)
    await record(
        work,
        locked_entry.entry.id,
        counts=without_none(counts),
        progress=_progress(locked_entry.stage, locked_entry.done + 1, total, findings),
    )


def without_none(counts: Mapping[str, int]) -> dict[str, int]:
    """The kinds of which there are some."""
    return {kind: rows for kind, rows in sorted(counts.items()) if rows}


async def enter_stage(
    work: UnitOfWork,
    locked_entry: Held,
    stage: rules.ImportStage,
    *,
    keeps: bool = True,
    **values: object,
) -> None:
    """Go to another stage; what was found so far is kept, unless it says otherwise."""
    findings = findings_of(locked_entry.entry) if keeps else Findings()
    progress = _progress(stage, 0, 0, findings)
    await record(work, locked_entry.entry.id, stage=stage.value, **{"progress": progress, **values})


def _progress(stage: rules.ImportStage, done: int, total: int, findings: Findings) -> JsonObject:
    return {
        "stage": stage.value,
        "done": done,
        "total": total,
        "findings": findings.to_json(),
    }


def findings_of(entry: queries.LegacyImportWorkspace) -> Findings:
    """The findings of an entry in the phase it is in."""
    stored = entry.progress.get("findings")
    return Findings() if stored is None else Findings.from_json(stored)


def described(notes: Mapping[tuple[str, str], int]) -> list[str]:
    """Notes in words."""
    return [
        message if times == 1 else f"{message} ({times:,} times)"
        for (_, message), times in notes.items()
    ]


async def fail_entry(work: UnitOfWork, entry_id: Id, reason: str) -> None:
    """The work on an entry ended otherwise than planned: it can be retried, or rolled back."""
    statement = (
        sa.select(queries.legacy_import_workspace).where(_entry.id == entry_id).with_for_update()
    )
    entry = await work.first(statement, of=queries.LegacyImportWorkspace)
    if entry is None:
        return
    if entry.rollback_state in {rules.RollbackState.REQUESTED, rules.RollbackState.RUNNING}:
        state = rules.RollbackState.FAILED.value
        await record(work, entry_id, rollback_state=state, last_error=reason)
        return
    checked = entry.stage in {
        rules.ImportStage.QUEUED,
        rules.ImportStage.VALIDATING,
        rules.ImportStage.DRY_RUN,
    }
    if checked and not entry.attempt:
        await record(
            work,
            entry_id,
            stage=rules.ImportStage.BLOCKED.value,
            errors=[reason],
            last_error=reason,
        )
    elif entry.stage not in {rules.ImportStage.DONE, rules.ImportStage.FAILED}:
        progress = {**entry.progress, "stage": entry.stage}
        await record(
            work,
            entry_id,
            stage=rules.ImportStage.FAILED.value,
            last_error=reason,
            progress=progress,
        )


async def record_manifest(work: UnitOfWork, run_id: Id, manifest: Manifest) -> bool:
    """Record what a bundle says of itself, and an entry for each of its workspaces.

    False when the run is over, or was validated before.
    """
    counts: Counter[str] = Counter()
    for workspace in manifest.workspaces:
        counts.update(workspace.counts)
    has_moved = await lifecycle.move(
        work,
        queries.LEGACY_IMPORTS,
        run_id,
        rules.LegacyImportStatus.DRY_RUNNING,
        source_snapshot_timestamp=manifest.snapshot_at,
        source_version=manifest.source_version,
        converter_version=manifest.converter_version,
        source_counts=dict(counts),
        updated_at=work.now,
    )
    if not has_moved:
        return False
    rows = [
        {
            "id": new_id(),
            "run_id": run_id,
            "position": position,
            "source_workspace_id": str(workspace.id),
            "source_name": workspace.name,
            "source_counts": workspace.counts,
            "creates": True,
            "selected": True,
            "stage": rules.ImportStage.QUEUED.value,
            "lifecycle_state": rules.LifecycleState.PENDING.value,
            "rollback_state": rules.RollbackState.NONE.value,
            "created_at": work.now,
            "updated_at": work.now,
        }
        for position, workspace in enumerate(manifest.workspaces)
    ]
    await work.execute(sa.insert(queries.legacy_import_workspace), rows)
    return True


async def record_comparison(work: UnitOfWork, run_id: Id) -> None:
    """The bundle is still the one that was approved: its workspaces may be made."""
    await work.execute(
        sa.update(queries.legacy_import_workspace)
        .where(
            _entry.run_id == run_id, _entry.selected, _entry.stage == rules.ImportStage.QUEUED.value
        )
        .values(stage=rules.ImportStage.CREATING.value, updated_at=work.now)
    )


_SHOWN = 20


async def begin_dry_run(work: UnitOfWork, entry_id: Id, keys: KeyRing) -> rules.ImportStage:
    """Begin a dry run anew: what an earlier one had planned is forgotten."""
    locked_entry = await hold(work, entry_id, rules.LegacyImportStatus.DRY_RUNNING)
    if locked_entry.stage in rules.CHECKED:
        raise EntryMovedError
    await forget_ids(work, entry_id)
    await plan_workspace(
        work, locked_entry.target(keys), Id(locked_entry.entry.source_workspace_id)
    )
    await enter_stage(
        work,
        locked_entry,
        rules.ImportStage.VALIDATING,
        keeps=False,
        counts={},
        warnings=[],
        errors=[],
    )
    return rules.ImportStage.VALIDATING


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
    progress = {"stage": rules.ImportStage.DRY_RUN.value, "done": 0, "findings": findings.to_json()}
    await record(
        work, locked_entry.entry.id, stage=rules.ImportStage.DRY_RUN.value, progress=progress
    )


async def is_clean(work: UnitOfWork, entry_id: Id) -> bool:
    """True when the lines of an entry are clean, as far as it is planned and checked."""
    entry = await queries.find_entry_by_id(work, entry_id)
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
        stage=(rules.ImportStage.BLOCKED if errors else rules.ImportStage.READY).value,
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
        lifecycle_state=rules.LifecycleState.HIDDEN.value,
        last_error=None,
    )


def kinds_for(
    entry: queries.LegacyImportWorkspace, kinds: Sequence[BundleKind]
) -> list[BundleKind]:
    """The imported kinds among these; imports change no members of an existing workspace."""
    return [kind for kind in kinds if entry.creates or not kind.of_members]


async def end_stage(
    work: UnitOfWork, locked_entry: Held, filled_stages: Collection[str]
) -> rules.ImportStage:
    """All of a stage is applied; the next of the `filled_stages` follows, or verification."""
    behind = rules.IMPORT_STAGES[rules.IMPORT_STAGES.index(locked_entry.stage) + 1 :]
    following = next((one for one in behind if one in filled_stages), rules.ImportStage.VERIFYING)
    if following != rules.ImportStage.VERIFYING:
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
    typed = [sa.column(name, table.c[name].type) for name in ["id", *names]]
    given = sa.cast(sa.literal(to_json(rows).decode(), sa.Text), sa.JSON)
    source = sa.func.json_to_recordset(given).table_valued(*typed).render_derived(with_types=True)

    def digest(columns: Iterable[sa.ColumnElement[Any]]) -> sa.ColumnElement[str]:
        named = zip(names, columns, strict=True)
        pairs = [part for name, value in named for part in (sa.literal(name, sa.Text), value)]
        return sa.func.md5(
            sa.cast(sa.func.jsonb_strip_nulls(sa.func.jsonb_build_object(*pairs)), sa.Text)
        )

    meant = digest(or_default(table.c[name], source.c[name]) for name in names)
    there = digest(table.c[name] for name in names)
    pairs = await work.rows(
        sa.select(meant.label("expected"), there.label("there"), table.c.id)
        .select_from(source.outerjoin(table, table.c.id == source.c.id))
        .order_by(source.c.id)
    )
    equal = sum(one.id is not None and one.expected == one.there for one in pairs)
    whole = sa.select(sa.func.md5(sa.literal("".join(one.there for one in pairs), sa.Text)))
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
    if outcome is rules.Outcome.DIFFERENT:
        await record(
            work,
            entry.id,
            stage=rules.ImportStage.FAILED.value,
            last_error="The imported data does not match the bundle. See the verification.",
            verification=verification,
        )
    else:
        await record(
            work,
            entry.id,
            stage=rules.ImportStage.DONE.value,
            verification=verification,
            progress={},
        )


def _outcome(counts: dict[str, JsonObject], samples: Sequence[Sample]) -> rules.Outcome:
    if any(one.get("found", one["imported"]) != one["imported"] for one in counts.values()):
        return rules.Outcome.DIFFERENT
    rows, equal = sum(one.rows for one in samples), sum(one.equal for one in samples)
    if not rules.is_within_tolerance(rows, equal):
        return rules.Outcome.DIFFERENT
    whole = all(one.get("source", one["imported"]) == one["imported"] for one in counts.values())
    return rules.Outcome.EQUAL if whole and rows == equal else rules.Outcome.WITHIN_TOLERANCE
