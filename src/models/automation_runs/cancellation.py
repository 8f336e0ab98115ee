"""Closing runs as cancelled, with all that hangs on them, in one transaction (promise I5)."""

from collections.abc import Collection
from typing import Any

from sqlalchemy import Select, select, update

from models.automation_runs import slots
from models.automation_runs.node_writes import close_nodes
from models.automation_runs.rules import OPEN_RUN, RunSource, RunStatus
from models.automation_runs.tables import automation_run
from models.base import Id
from runtime import outbox
from runtime.clock import utc_now
from runtime.database import UnitOfWork
from runtime.families import Family

Slot = tuple[Id, str]
"""An automation and a concurrency key."""

_run = automation_run.c


async def cancel_runs(
    work: UnitOfWork,
    workspace_id: Id,
    run_ids: Collection[Id],
    *,
    error: str | None = None,
    keeping: Slot | None = None,
) -> list[Id]:
    """Make the open ones among these runs cancelled for ever, and the runs they wait for.

    Their nodes are closed, their executions told, their slots given to those who wait; but not
    those of the key `keeping`. Gives every run that was cancelled.
    """
    found = await _held_tree(work, workspace_id, run_ids)
    if not found:
        return []
    # Waiting for locks takes time: no node that started meanwhile may seem to start after this.
    work.now = utc_now()
    closed = await work.rows(
        update(automation_run)
        .where(_run.id.in_(found), _run.status.in_(OPEN_RUN))
        .values(status=RunStatus.CANCELLED, completed_at=work.now, error=error)
        .returning(
            _run.id,
            _run.automation_id,
            _run.concurrency_key,
            _run.admitted_at,
            _run.parent_run_id,
            _run.source,
        )
    )
    cancelled = sorted(row.id for row in closed)
    await close_nodes(work, cancelled)
    await _tell(work, workspace_id, [row.id for row in closed if _may_have_started(row)])
    freed = {(row.automation_id, row.concurrency_key) for row in closed if row.concurrency_key}
    for automation_id, key in sorted(freed - {keeping}):
        await slots.hand_on(work, automation_id, key)
    return cancelled


async def cancel_children(work: UnitOfWork, workspace_id: Id, run_id: Id) -> None:
    """Cancel the runs that a run which has ended was waiting for."""
    children = await work.rows(
        select(_run.id).where(
            _run.workspace_id == workspace_id,
            _run.parent_run_id == run_id,
            _run.status.in_(OPEN_RUN),
        )
    )
    if children:
        error = "The run that waited for it has ended."
        await cancel_runs(work, workspace_id, [row.id for row in children], error=error)


async def _held_tree(work: UnitOfWork, workspace_id: Id, run_ids: Collection[Id]) -> list[Id]:
    """The open runs among these and below them, all locked.

    A run whose row is held makes no more children, so a look that finds nobody new is the last.
    """
    held: set[Id] = set()
    while fresh := await _ids(work, _open_tree(workspace_id, run_ids)) - held:
        await slots.lock_of_runs(work, fresh)
        rows = select(_run.id).where(_run.id.in_(sorted(fresh))).order_by(_run.id)
        await work.rows(rows.with_for_update())
        held |= fresh
    return sorted(held)


def _open_tree(workspace_id: Id, run_ids: Collection[Id]) -> Select[Any]:
    top = (
        select(_run.id)
        .where(
            _run.workspace_id == workspace_id,
            _run.id.in_(sorted(run_ids)),
            _run.status.in_(OPEN_RUN),
        )
        .cte("tree", recursive=True)
    )
    child = automation_run.alias("child")
    tree = top.union(
        select(child.c.id).where(
            child.c.workspace_id == workspace_id,
            child.c.parent_run_id == top.c.id,
            child.c.status.in_(OPEN_RUN),
        )
    )
    return select(tree.c.id)


async def _ids(work: UnitOfWork, statement: Select[Any]) -> set[Id]:
    return {row.id for row in await work.rows(statement)}


def _may_have_started(row: Any) -> bool:
    """A run that waits for a slot has, if another run or the fire of a schedule waits for it."""
    admitted = row.admitted_at is not None or row.parent_run_id is not None
    return admitted or row.source == RunSource.SCHEDULE


async def _tell(work: UnitOfWork, workspace_id: Id, run_ids: Collection[Id]) -> None:
    """Cancel the executions of these runs, as far as they may have been started."""
    withdrawn = await outbox.withdraw_starts(work, run_ids)
    intents = [
        {
            "intent": outbox.Intent.CANCEL,
            "family": Family.AUTOMATION_RUN,
            "workspace_id": workspace_id,
            "subject_id": run_id,
        }
        for run_id in sorted(set(run_ids) - withdrawn)
    ]
    await outbox.append_all(work, intents)
