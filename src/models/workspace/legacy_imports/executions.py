"""The execution of a run: its intents, where it goes next, releases, notifications, and its end."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, Protocol

import sqlalchemy as sa

from models.core.access.rules import Role
from models.core.base import Id, JsonObject
from models.core.lifecycle import commands as lifecycle
from models.messages.notification_preferences import NotificationKind
from models.messages.notifications.commands import Notice, about, notify
from models.people.members import longest_workspace, members_with
from models.people.workspaces import reveal_workspace
from models.workspace.bundles.applying import conclude, show
from models.workspace.bundles.references import forget_run
from models.workspace.bundles.unpacking import load_contents, remove_unpacked
from models.workspace.legacy_imports import queries, rules
from models.workspace.legacy_imports.stages import Held
from runtime.crypto import KeyRing
from runtime.database import Database, UnitOfWork
from runtime.object_store import ObjectStore
from runtime.temporal import outbox
from runtime.temporal.workflow_kinds import WorkflowKind

DECIDED = "decided"
"""The signal of an execution whose row has changed by a decision."""


class Executed(Protocol):
    """A run, and which execution of it is the present one."""

    id: Id
    execution: str


async def start_execution(
    work: UnitOfWork, run_id: Id, execution: str = "", restarts: int = 0
) -> None:
    """Have an execution of a run started; `execution` as the column of the row."""
    request: outbox.StartRequest = {
        "summary": "Legacy import",
        "resourceId": str(run_id),
        "source": "api",
    }
    if execution:
        request["execution"] = execution
    # A run is of no workspace: in the line of the outbox it stands for itself.
    await lifecycle.start(work, WorkflowKind.LEGACY_IMPORT, run_id, run_id, request, restarts)


async def signal_execution(work: UnitOfWork, run: Executed, decision: str) -> None:
    """Have the execution of a run look at its row again."""
    await outbox.append(
        work,
        intent=outbox.Intent.SIGNAL,
        workflow_kind=WorkflowKind.LEGACY_IMPORT,
        workspace_id=run.id,
        subject_id=run.id,
        request={
            "workflowId": workflow_id(run),
            "signal": DECIDED,
            "arguments": [decision],
        },
    )


async def cancel_execution(work: UnitOfWork, run: Executed) -> None:
    """Have the execution of a cancelled run end as cancelled."""
    await outbox.append(
        work,
        intent=outbox.Intent.CANCEL,
        workflow_kind=WorkflowKind.LEGACY_IMPORT,
        workspace_id=run.id,
        subject_id=run.id,
        request={"execution": run.execution},
    )


def workflow_id(run: Executed) -> str:
    """The id of the present execution of a run."""
    return WorkflowKind.LEGACY_IMPORT.workflow_id(run.id, run.execution)


_entry = queries.legacy_import_workspace.c


async def advance(work: UnitOfWork, run_id: Id, execution: str, keys: KeyRing) -> rules.Step | None:
    """Bring a run as far as its rows say; what its execution is to do there.

    None for an execution that is no longer that of the run.
    """
    run = await _locked(work, run_id)
    if run is None or run.execution != execution:
        return None
    entries = await queries.entries_of(work, run_id)
    status = rules.LegacyImportStatus(run.status)
    while (step := rules.next_step(status, queries.decisive(entries))).kind == rules.StepKind.MOVE:
        await _enter(work, run, step.status, entries, keys)
        status = step.status
        entries = await queries.entries_of(work, run_id)
    return step


async def _enter(
    work: UnitOfWork,
    run: queries.LegacyImportRun,
    status: rules.LegacyImportStatus,
    entries: Sequence[queries.LegacyImportWorkspace],
    keys: KeyRing,
) -> None:
    """Move a run along the table, with what belongs to the move."""
    values: dict[str, Any] = {"updated_at": work.now}
    if (
        status in rules.RUN_LIFECYCLE.at_rest
        and run.status != rules.LegacyImportStatus.ROLLING_BACK
    ):
        values["completed_at"] = work.now
    if status in rules.END_WITH_DATA:
        done = [one for one in entries if one.stage == rules.ImportStage.DONE]
        await release(work, run, done, keys)
        await notify_owners(work, run, status, done)
    moved = await lifecycle.move(work, queries.LEGACY_IMPORTS, run.id, status, **values)
    assert moved, f"no move leads from {run.status} to {status}"
    await notify_maker(work, run, status)
    if status == rules.LegacyImportStatus.CANCELLED:
        await cancel_execution(work, run)


async def fail_run(work: UnitOfWork, run_id: Id, errors: Sequence[str]) -> None:
    """End an open run that cannot be imported, with the reasons."""
    run = await _locked(work, run_id)
    if run is not None and run.status in rules.RUN_LIFECYCLE.open:
        await _close(work, run, rules.LegacyImportStatus.FAILED, errors)


async def abandon(work: UnitOfWork, run_id: Id, reason: str, *, cancelled: bool) -> bool:
    """Close a run whose execution is lost, with the reason; False when it was closed before."""
    run = await _locked(work, run_id)
    if run is None or run.status not in rules.RUN_LIFECYCLE.open:
        return False
    end = rules.LegacyImportStatus.FAILED
    if cancelled and run.status in rules.AT_ONCE_CANCELLED:
        end = rules.LegacyImportStatus.CANCELLED
    if run.status == rules.LegacyImportStatus.ROLLING_BACK:
        end = rules.LegacyImportStatus.ROLLBACK_FAILED
        await work.execute(
            sa.update(queries.legacy_import_workspace)
            .where(
                _entry.run_id == run_id,
                _entry.rollback_state.in_(
                    [rules.RollbackState.REQUESTED, rules.RollbackState.RUNNING]
                ),
            )
            .values(rollback_state=rules.RollbackState.FAILED.value, last_error=reason)
        )
    return await _close(work, run, end, [*run.errors, reason])


async def _close(
    work: UnitOfWork,
    run: queries.LegacyImportRun,
    end: rules.LegacyImportStatus,
    errors: Sequence[str],
) -> bool:
    """End a locked run out of its turn; False where no move leads there."""
    has_moved = await lifecycle.move(
        work,
        queries.LEGACY_IMPORTS,
        run.id,
        end,
        errors=list(errors),
        completed_at=run.completed_at or work.now,
        updated_at=work.now,
    )
    if has_moved:
        await notify_maker(work, run, end, errors[-1])
    return has_moved


async def _locked(work: UnitOfWork, run_id: Id) -> queries.LegacyImportRun | None:
    statement = sa.select(queries.legacy_import_run).where(queries.legacy_import_run.c.id == run_id)
    return await work.first(statement.with_for_update(), of=queries.LegacyImportRun)


async def release(
    work: UnitOfWork,
    run: queries.LegacyImportRun,
    entries: Sequence[queries.LegacyImportWorkspace],
    keys: KeyRing,
) -> None:
    """Let people see the workspaces of these entries that are hidden."""
    for entry in entries:
        if (
            entry.lifecycle_state != rules.LifecycleState.HIDDEN
            or entry.target_workspace_id is None
        ):
            continue
        target = Held(run, entry).target(keys)
        if entry.creates:
            await reveal_workspace(work, entry.target_workspace_id, run.created_by_user_id)
        else:
            await show(work, target)
        await conclude(work, target)
        await work.execute(
            sa.update(queries.legacy_import_workspace)
            .where(queries.legacy_import_workspace.c.id == entry.id)
            .values(
                lifecycle_state=rules.LifecycleState.LIVE.value,
                # Changes from here on are those of people.
                imported_at=work.now,
                updated_at=work.now,
            )
        )


_TITLES: Mapping[rules.LegacyImportStatus, str] = {
    rules.LegacyImportStatus.AWAITING_REVIEW: "Legacy import ready for review",
    rules.LegacyImportStatus.COMPLETED: "Legacy import completed",
    rules.LegacyImportStatus.COMPLETED_WITH_WARNINGS: "Legacy import completed with warnings",
    rules.LegacyImportStatus.FAILED: "Legacy import failed",
    rules.LegacyImportStatus.CANCELLED: "Legacy import cancelled",
    rules.LegacyImportStatus.ROLLED_BACK: "Legacy import rolled back",
    rules.LegacyImportStatus.ROLLBACK_FAILED: "Legacy import rollback failed",
}
"""The titles for the creator of a run: when it needs a decision, and at each end."""


async def notify_maker(
    work: UnitOfWork,
    run: queries.LegacyImportRun,
    status: rules.LegacyImportStatus,
    reason: str = "",
) -> None:
    """Notify the creator of a run of its new status, if it is one of those.

    A run has no workspace: the notification is in the one where its user was a member longest.
    A status that is reached again by another dry run is not sent again.
    """
    if status not in _TITLES:
        return
    entries = await queries.entries_of(work, run.id)
    made = [one.target_workspace_id for one in entries if one.creates and one.target_workspace_id]
    place = await longest_workspace(work, run.created_by_user_id, apart_from=made)
    if place is None:
        return
    names = ", ".join(one.source_name for one in entries if one.selected)
    notice = Notice(
        kind=NotificationKind.LEGACY_IMPORT,
        title=_TITLES[status],
        body=about(reason or names),
        run_id=run.id,
        data=_data(run, status),
        key=f"legacy_import/{run.id}/{run.executions}/{status}",
    )
    await notify(work, place, [run.created_by_user_id], notice)


async def notify_owners(
    work: UnitOfWork,
    run: queries.LegacyImportRun,
    status: rules.LegacyImportStatus,
    entries: Sequence[queries.LegacyImportWorkspace],
) -> None:
    """Notify, in each workspace that was released, its owners, except the creator of the run."""
    for entry in entries:
        place = entry.target_workspace_id
        if place is None:
            continue
        notice = Notice(
            kind=NotificationKind.LEGACY_IMPORT,
            title=about(f"“{entry.source_name}” was imported"),
            run_id=run.id,
            # They have their workspace; the page of the import is for administrators.
            data={**_data(run, status), "workspaceId": str(place)},
            key=f"legacy_import/{entry.id}",
        )
        owners = await members_with(work, place, Role.OWNER)
        await notify(work, place, {*owners} - {run.created_by_user_id}, notice)


def _data(run: queries.LegacyImportRun, status: rules.LegacyImportStatus) -> JsonObject:
    return {"legacyImportRunId": str(run.id), "status": status.value}


_run = queries.legacy_import_run.c


async def purge_legacy_imports(database: Database, store: ObjectStore, before: datetime) -> int:
    """Remove one run that ended before a moment; 0 when there is none. What it imported stays.

    Objects go before the row that names them. A bundle that was named by its key is not ours.
    """
    async with database.reading() as work:
        old = (
            sa.select(queries.legacy_import_run)
            .where(_run.completed_at < before, _run.status.in_(sorted(rules.RUN_LIFECYCLE.at_rest)))
            .order_by(_run.completed_at)
            .limit(1)
        )
        run = await work.first(old, of=queries.LegacyImportRun)
    if run is None:
        return 0
    with suppress(FileNotFoundError):
        # A broken bundle was never taken apart as a whole.
        await remove_unpacked(store, run.id, await load_contents(store, run.id))
    if run.uploaded:
        await store.delete(run.bundle_object_key)
    async with database.transaction() as work:
        await forget_run(work, run.id)
        await work.execute(sa.delete(queries.legacy_import_run).where(_run.id == run.id))
    return 1
