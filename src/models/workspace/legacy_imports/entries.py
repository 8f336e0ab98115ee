"""Writes by the executions of the workspaces of a run, each chunk under the lock of its entry."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import insert, select, update

from models.core.base import Id, JsonObject
from models.core.bundles import Findings, ImportTarget, imported_id
from models.core.lifecycle import commands as lifecycle
from models.workspace.bundles.rules import Manifest
from models.workspace.legacy_imports.rules import (
    ImportStage,
    LegacyImportStatus,
    LifecycleState,
    RollbackState,
)
from models.workspace.legacy_imports.tables import (
    LEGACY_IMPORTS,
    LegacyImportRun,
    LegacyImportWorkspace,
    legacy_import_run,
    legacy_import_workspace,
)
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork
from runtime.ids import new_id

_run = legacy_import_run.c
_entry = legacy_import_workspace.c


class EntryMovedError(Exception):
    """The run has been cancelled, or another execution works on the entry: nothing is to do."""

    retryable = True


@dataclass(frozen=True, slots=True)
class Held:
    """An entry and its run; the entry is locked until the transaction ends."""

    run: LegacyImportRun
    entry: LegacyImportWorkspace

    @property
    def stage(self) -> ImportStage:
        return ImportStage(self.entry.stage)

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


def target_workspace(entry: LegacyImportWorkspace) -> Id:
    """The workspace that an entry makes or fills."""
    return entry.target_workspace_id or imported_id(entry.id, Id(entry.source_workspace_id))


async def hold(work: UnitOfWork, entry_id: Id, *statuses: LegacyImportStatus) -> Held:
    """The gate of a chunk: an entry whose run is in one of the statuses.

    The run is locked as well, against decisions. Raises EntryMovedError.
    """
    own = select(_entry.run_id).where(_entry.id == entry_id).scalar_subquery()
    run = await work.first(
        # Shared, so that workspaces of a run are worked on side by side.
        select(legacy_import_run).where(_run.id == own).with_for_update(read=True),
        of=LegacyImportRun,
    )
    if run is None or run.status not in statuses:
        raise EntryMovedError
    entry = await work.first(
        select(legacy_import_workspace).where(_entry.id == entry_id).with_for_update(),
        of=LegacyImportWorkspace,
    )
    if entry is None:
        raise EntryMovedError
    return Held(run, entry)


async def hold_chunk(
    work: UnitOfWork, entry_id: Id, status: LegacyImportStatus, stage: ImportStage, done: int
) -> Held:
    """As `hold`, for an execution that has done this number of chunks. Raises EntryMovedError."""
    locked_entry = await hold(work, entry_id, status)
    if (locked_entry.stage, locked_entry.done) != (stage, done):
        raise EntryMovedError
    return locked_entry


async def record(work: UnitOfWork, entry_id: Id, **values: object) -> None:
    """Write values of a held entry."""
    await work.execute(
        update(legacy_import_workspace)
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
    stage: ImportStage,
    *,
    keeps: bool = True,
    **values: object,
) -> None:
    """Go to another stage; what was found so far is kept, unless it says otherwise."""
    findings = findings_of(locked_entry.entry) if keeps else Findings()
    progress = _progress(stage, 0, 0, findings)
    await record(work, locked_entry.entry.id, stage=stage.value, **{"progress": progress, **values})


def _progress(stage: ImportStage, done: int, total: int, findings: Findings) -> JsonObject:
    return {
        "stage": stage.value,
        "done": done,
        "total": total,
        "findings": findings.to_json(),
    }


def findings_of(entry: LegacyImportWorkspace) -> Findings:
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
    statement = select(legacy_import_workspace).where(_entry.id == entry_id).with_for_update()
    entry = await work.first(statement, of=LegacyImportWorkspace)
    if entry is None:
        return
    if entry.rollback_state in {RollbackState.REQUESTED, RollbackState.RUNNING}:
        state = RollbackState.FAILED.value
        await record(work, entry_id, rollback_state=state, last_error=reason)
        return
    checked = entry.stage in {ImportStage.QUEUED, ImportStage.VALIDATING, ImportStage.DRY_RUN}
    if checked and not entry.attempt:
        await record(
            work, entry_id, stage=ImportStage.BLOCKED.value, errors=[reason], last_error=reason
        )
    elif entry.stage not in {ImportStage.DONE, ImportStage.FAILED}:
        progress = {**entry.progress, "stage": entry.stage}
        await record(
            work, entry_id, stage=ImportStage.FAILED.value, last_error=reason, progress=progress
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
        LEGACY_IMPORTS,
        run_id,
        LegacyImportStatus.DRY_RUNNING,
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
            "stage": ImportStage.QUEUED.value,
            "lifecycle_state": LifecycleState.PENDING.value,
            "rollback_state": RollbackState.NONE.value,
            "created_at": work.now,
            "updated_at": work.now,
        }
        for position, workspace in enumerate(manifest.workspaces)
    ]
    await work.execute(insert(legacy_import_workspace), rows)
    return True


async def record_comparison(work: UnitOfWork, run_id: Id) -> None:
    """The bundle is still the one that was approved: its workspaces may be made."""
    await work.execute(
        update(legacy_import_workspace)
        .where(_entry.run_id == run_id, _entry.selected, _entry.stage == ImportStage.QUEUED.value)
        .values(stage=ImportStage.CREATING.value, updated_at=work.now)
    )
