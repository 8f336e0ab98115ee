"""The dry run of one workspace: its ids are planned, then each row is looked at."""

from collections.abc import Sequence

from models.core.base import Id
from models.people.workspaces.queries import is_open_workspace
from models.workspace.bundles.applying import plan_workspace
from models.workspace.bundles.id_map import forget_ids
from models.workspace.bundles.registry import KINDS
from models.workspace.legacy_imports.commands.entries import (
    EntryMovedError,
    Held,
    described,
    enter_stage,
    findings_of,
    hold,
    record,
    without_none,
)
from models.workspace.legacy_imports.commands.importing import kinds_for
from models.workspace.legacy_imports.queries import find_entry_by_id
from models.workspace.legacy_imports.rules import CHECKED, ImportStage, LegacyImportStatus
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork

_SHOWN = 20


async def begin(work: UnitOfWork, entry_id: Id, keys: KeyRing) -> ImportStage:
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


async def planned(work: UnitOfWork, locked_entry: Held, unread: Sequence[str]) -> None:
    """All rows have their ids: compare their number with what the bundle says of itself."""
    findings = findings_of(locked_entry.entry)
    for kind, count in sorted(locked_entry.entry.source_counts.items()):
        if findings.rows[kind] != count:
            findings.refuse(
                "counts",
                f"The manifest says {count:,} of {kind[:50]}, and there are"
                f" {findings.rows[kind]:,}.",
            )
    for path in unread[:_SHOWN]:
        findings.warn("unknown_file", f"The file {path} is of no known kind and left out.")
    findings.rows.clear()
    progress = {"stage": ImportStage.DRY_RUN.value, "done": 0, "findings": findings.to_json()}
    await record(work, locked_entry.entry.id, stage=ImportStage.DRY_RUN.value, progress=progress)


async def is_clean(work: UnitOfWork, entry_id: Id) -> bool:
    """True when the lines of an entry are clean, as far as it is planned and checked."""
    entry = await find_entry_by_id(work, entry_id)
    return entry is not None and not findings_of(entry).errors


async def conclude(work: UnitOfWork, locked_entry: Held) -> None:
    """The workspace is checked: it is ready, or blocked by its errors."""
    findings = findings_of(locked_entry.entry)
    coming = kinds_for(locked_entry.entry, KINDS)
    for kind in KINDS:
        rows = locked_entry.entry.source_counts.get(kind.name)
        if rows and kind not in coming:
            message = f"{kind.name}: those of the workspace that is there stay as they are."
            findings.warn("of_members", message, rows)
    target = locked_entry.entry.target_workspace_id
    if target is not None and not await is_open_workspace(work, target):
        findings.refuse("target", "The workspace that it should go to does not exist any more.")
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
