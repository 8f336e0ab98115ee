"""Deadlocks: runs that wait for concurrency slots which each other's callers hold.

A run keeps its slot while it waits for the runs it calls, and those may need slots of their own. So
automations that call each other can hold what the other needs. Admission cannot see this, because
the slots of other keys change later. The reconciler calls `find` and `refuse`.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select

from models.automation.automation_runs import execution, slots
from models.automation.automation_runs.rules import OPEN_RUN, RunStatus
from models.automation.automation_runs.start_intents import append_starts
from models.automation.automation_runs.tables import automation_run
from models.core.base import Id
from runtime.database import UnitOfWork

REFUSED = (
    "The run would wait for ever: the runs that hold the slots it needs wait for slots that its own"
    " callers hold. Raise the concurrency limit of one of the automations, or call it without"
    " waiting."
)

Key = tuple[Id, str]
"""An automation, and the key of its concurrency."""

_run = automation_run.c
_IS_OPEN = _run.status.in_(OPEN_RUN)


@dataclass(frozen=True, slots=True)
class WaitingRun:
    """A called run that waits for a slot."""

    id: Id
    key: Key
    created_at: datetime


def to_refuse(
    waiting_runs: Collection[WaitingRun],
    holders: Mapping[Key, Collection[Id]],
    callers: Mapping[Id, Id],
) -> list[WaitingRun]:
    """The runs to fail so that all others can go on: the newest of each deadlock.

    `holders` are the runs that hold the slots of a key. `callers` maps a called run to its caller.
    """
    waiting, refused = set(waiting_runs), []
    holding = {run for runs in holders.values() for run in runs}
    while stuck := _stuck(waiting, holders, callers):
        deadlocked = [run for run in stuck if holding.intersection(_above(run.id, callers))]
        last = max(deadlocked, key=lambda run: (run.created_at, run.id))
        waiting.remove(last)
        refused.append(last)
    return refused


def _stuck(
    waiting: Collection[WaitingRun], holders: Mapping[Key, Collection[Id]], callers: Mapping[Id, Id]
) -> set[WaitingRun]:
    """The runs that never get a slot, because every holder of one waits for one of them."""
    stuck = set(waiting)
    while True:
        kept = {above for run in stuck for above in _above(run.id, callers)}
        still = {run for run in stuck if holders.get(run.key) and kept.issuperset(holders[run.key])}
        if still == stuck:
            return stuck
        stuck = still


def _above(run_id: Id, callers: Mapping[Id, Id]) -> Iterator[Id]:
    """The caller of a run, its caller, and so on."""
    caller = callers.get(run_id)
    while caller is not None:
        yield caller
        caller = callers.get(caller)


async def find(work: UnitOfWork) -> Sequence[WaitingRun]:
    """The runs to fail, in a snapshot of all open runs."""
    limited = await work.rows(
        select(
            _run.id, _run.automation_id, _run.concurrency_key, _run.admitted_at, _run.created_at
        ).where(_IS_OPEN, _run.concurrency_key.is_not(None))
    )
    called = await work.rows(
        select(_run.id, _run.parent_run_id).where(_IS_OPEN, _run.parent_run_id.is_not(None))
    )
    callers: dict[Id, Id] = {row.id: row.parent_run_id for row in called}
    holders: dict[Key, list[Id]] = {}
    waiting_runs = []
    for row in limited:
        key = (row.automation_id, row.concurrency_key)
        if row.admitted_at is not None:
            holders.setdefault(key, []).append(row.id)
        elif row.id in callers:
            waiting_runs.append(WaitingRun(row.id, key, row.created_at))
    return to_refuse(waiting_runs, holders, callers)


async def refuse(work: UnitOfWork, run: WaitingRun) -> bool:
    """Fail a run that still waits for its slot, and let its execution end."""
    await slots.lock(work, *run.key)
    waits = select(_run.id).where(
        _run.id == run.id, _run.status == RunStatus.QUEUED, _run.admitted_at.is_(None)
    )
    if await work.first(waits) is None:
        return False
    await execution.abandon(work, run.id, RunStatus.FAILED, REFUSED)
    await append_starts(work, [run.id])
    return True
