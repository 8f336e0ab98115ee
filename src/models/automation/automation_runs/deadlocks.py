"""Runs that wait for one another in a circle, through slots that none of them gives back.

A run keeps its slot while it waits for the runs it calls, and those wait for slots of their own: so
automations that call each other can come to hold what the other needs. Nobody sees this when a run
gets in line, for the slots of other keys change meanwhile; the reconciler looks.
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
class InLine:
    """A called run that waits for a slot of a key."""

    id: Id
    key: Key
    created_at: datetime


def to_refuse(
    in_line: Collection[InLine], holders: Mapping[Key, Collection[Id]], callers: Mapping[Id, Id]
) -> list[InLine]:
    """The runs without which all others can go on: of every circle the one that came last.

    `holders` are the runs that hold the slots of a key; `callers` the runs that wait for others.
    """
    waiting, refused = set(in_line), []
    holding = {run for runs in holders.values() for run in runs}
    while stuck := _stuck(waiting, holders, callers):
        in_circles = [run for run in stuck if holding.intersection(_above(run.id, callers))]
        last = max(in_circles, key=lambda run: (run.created_at, run.id))
        waiting.remove(last)
        refused.append(last)
    return refused


def _stuck(
    waiting: Collection[InLine], holders: Mapping[Key, Collection[Id]], callers: Mapping[Id, Id]
) -> set[InLine]:
    """Those who get no slot, because whoever holds one waits for one of them."""
    stuck = set(waiting)
    while True:
        kept = {above for run in stuck for above in _above(run.id, callers)}
        still = {run for run in stuck if holders.get(run.key) and kept.issuperset(holders[run.key])}
        if still == stuck:
            return stuck
        stuck = still


def _above(run_id: Id, callers: Mapping[Id, Id]) -> Iterator[Id]:
    """Who waits for a run, and for whom that one does."""
    caller = callers.get(run_id)
    while caller is not None:
        yield caller
        caller = callers.get(caller)


async def find(work: UnitOfWork) -> Sequence[InLine]:
    """The runs to refuse, in a snapshot of all open runs."""
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
    in_line = []
    for row in limited:
        key = (row.automation_id, row.concurrency_key)
        if row.admitted_at is not None:
            holders.setdefault(key, []).append(row.id)
        elif row.id in callers:
            in_line.append(InLine(row.id, key, row.created_at))
    return to_refuse(in_line, holders, callers)


async def refuse(work: UnitOfWork, run: InLine) -> bool:
    """Fail a run that still waits for its slot, and have its execution see that."""
    await slots.lock(work, *run.key)
    waits = select(_run.id).where(
        _run.id == run.id, _run.status == RunStatus.QUEUED, _run.admitted_at.is_(None)
    )
    if await work.first(waits) is None:
        return False
    await execution.abandon(work, run.id, RunStatus.FAILED, REFUSED)
    await append_starts(work, [run.id])
    return True
