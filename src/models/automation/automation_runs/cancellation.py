"""Closing runs as cancelled, with all that hangs on them, in one transaction."""

from collections.abc import Awaitable, Callable, Collection
from typing import Any

import sqlalchemy as sa

from models.automation.automation_runs import slots
from models.automation.automation_runs.node_writes import close_nodes
from models.automation.automation_runs.rules import OPEN_RUN, RunSource, RunStatus
from models.automation.automation_runs.tables import AUTOMATION_RUNS, AutomationRun, automation_run
from models.core.base import Id
from models.core.lifecycle import commands as lifecycle
from models.sources.outbound_limits.turns import leave_lines
from runtime.clock import utc_now
from runtime.database import UnitOfWork
from runtime.temporal.families import Family

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
    """Cancel the open ones among these runs, and the runs they wait for. They stay cancelled.

    Their nodes are closed, their executions cancelled, and their slots given to waiting runs,
    except the slots of the key `keeping`. Returns every run that was cancelled.
    """
    locked_ids = await _held_tree(work, workspace_id, run_ids)
    if not locked_ids:
        return []
    # The locks may have taken time to get: no node started meanwhile may seem to start after this.
    work.now = utc_now()
    rows = await work.rows(
        AUTOMATION_RUNS.moving(RunStatus.CANCELLED)
        .where(_run.id.in_(locked_ids))
        .values(completed_at=work.now, error=error)
        .returning(
            _run.id,
            _run.automation_id,
            _run.concurrency_key,
            _run.admitted_at,
            _run.parent_run_id,
            _run.source,
        ),
        of=AutomationRun,
    )
    cancelled = sorted(row.id for row in rows)
    work.answered.update(cancelled)
    await close_nodes(work, cancelled)
    await runs_ended(work, workspace_id, cancelled)
    started = [row.id for row in rows if _may_have_started(row)]
    await lifecycle.cancel_executions(work, Family.AUTOMATION_RUN, workspace_id, started)
    await leave_lines(work, workspace_id, started)
    freed = {(row.automation_id, row.concurrency_key) for row in rows if row.concurrency_key}
    for automation_id, key in sorted(freed - {keeping}):
        await slots.hand_on(work, automation_id, key)
    return cancelled


async def cancel_children(work: UnitOfWork, workspace_id: Id, run_id: Id) -> None:
    """Cancel the runs, of automations and of actions, that a run which has ended waited for."""
    await runs_ended(work, workspace_id, [run_id])
    children = await work.rows(
        sa.select(_run.id).where(
            _run.workspace_id == workspace_id,
            _run.parent_run_id == run_id,
            _run.status.in_(OPEN_RUN),
        )
    )
    if children:
        error = "The calling run has ended."
        await cancel_runs(work, workspace_id, [row.id for row in children], error=error)


async def _held_tree(work: UnitOfWork, workspace_id: Id, run_ids: Collection[Id]) -> list[Id]:
    """The open runs among these and below them, all locked.

    A run whose row is locked gets no more children: a query that finds no new run is the last.
    """
    locked_ids: set[Id] = set()
    while fresh := await _by_depth(work, open_tree(workspace_id, run_ids), locked_ids):
        for run_ids_there in fresh:
            await slots.lock_of_runs(work, run_ids_there)
            rows = sa.select(_run.id).where(_run.id.in_(run_ids_there)).order_by(_run.id)
            await work.rows(rows.with_for_update())
            locked_ids.update(run_ids_there)
    return sorted(locked_ids)


async def _by_depth(work: UnitOfWork, tree: sa.Select[Any], held: Collection[Id]) -> list[list[Id]]:
    """The runs of a tree that are not held yet, callers before the runs they call.

    They are locked in this order: a run that calls, or ends, holds its row when it comes to ask
    for the slots of those it calls.
    """
    levels: dict[int, list[Id]] = {}
    for row in await work.rows(tree):
        if row.id not in held:
            levels.setdefault(row.depth, []).append(row.id)
    return [sorted(levels[depth]) for depth in sorted(levels)]


def open_tree(workspace_id: Id, run_ids: Collection[Id]) -> sa.Select[Any]:
    """The open runs among these, with all below them, and the number of runs that led to each."""
    top = (
        sa.select(_run.id, sa.func.cardinality(_run.chain).label("depth"))
        .where(
            _run.workspace_id == workspace_id,
            _run.id.in_(sorted(run_ids)),
            _run.status.in_(OPEN_RUN),
        )
        .cte("tree", recursive=True)
    )
    child = automation_run.alias("child")
    tree = top.union(
        sa.select(child.c.id, sa.func.cardinality(child.c.chain)).where(
            child.c.workspace_id == workspace_id,
            child.c.parent_run_id == top.c.id,
            child.c.status.in_(OPEN_RUN),
        )
    )
    return sa.select(tree.c.id, tree.c.depth)


def _may_have_started(row: AutomationRun) -> bool:
    """True when a run may have an execution.

    A run that waits for a slot has one if another run, or the fire of a schedule, waits for it.
    """
    admitted = row.admitted_at is not None or row.parent_run_id is not None
    return admitted or row.source == RunSource.SCHEDULE


EndHandler = Callable[[UnitOfWork, Id, Collection[Id]], Awaitable[None]]
"""Takes a workspace and runs of it."""

_HANDLERS: list[EndHandler] = []


def on_run_end(handler: EndHandler) -> None:
    """Call `handler` in the transaction of each end; registering it again changes nothing.

    A resource above registers what it then does; `models.registrations` lists them.
    """
    if handler not in _HANDLERS:
        _HANDLERS.append(handler)


async def runs_ended(work: UnitOfWork, workspace_id: Id, run_ids: Collection[Id]) -> None:
    """Call the handlers for runs of a workspace that have ended."""
    for handler in _HANDLERS:
        await handler(work, workspace_id, run_ids)
