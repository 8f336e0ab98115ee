"""The way of an open circuit breaker: after its time one run is let through, and its end decides.

Each turn is one transaction about one breaker that no other worker holds.
"""

from datetime import timedelta

from sqlalchemy import exists, func, select, update

from models.automation.circuit_breakers.commands import close, move, open_again
from models.automation.circuit_breakers.rules import BreakerState, after_trial
from models.automation.circuit_breakers.tables import CircuitBreaker, circuit_breaker
from models.core.pauses.release import release_oldest
from models.core.pauses.rules import PauseCause
from runtime.database import UnitOfWork
from runtime.fault_injection import FaultPoint, inject_fault

LOOK_SECONDS = 300.0
"""Seconds until a half-open breaker without a run looks again for one.

A trigger of what rests makes it due at once; only a run that comes in at the moment of the look is
left to the next one. So breakers of automations that nobody starts cost next to nothing.
"""

_breaker = circuit_breaker.c
BREAKER_DUE = exists().where(_breaker.due_at <= func.now())


async def advance(work: UnitOfWork) -> bool:
    """Move one breaker on that is due; False when none is."""
    due = (
        select(circuit_breaker)
        .where(_breaker.due_at <= work.now)
        .order_by(_breaker.due_at)
        .limit(1)
        .with_for_update(skip_locked=True)
    )
    row = await work.first(due, of=CircuitBreaker)
    if row is None:
        return False
    if row.state == BreakerState.OPEN:
        await move(work, row, BreakerState.HALF_OPEN)
        await _try(work, row)
    elif row.trial_status is None:
        await _try(work, row)
    else:
        await _decide(work, row, after_trial(row.trial_status))
    inject_fault(FaultPoint.AFTER_BREAKER_BEFORE_COMMIT, row.automation_id)
    return True


async def _try(work: UnitOfWork, row: CircuitBreaker) -> None:
    """Let the oldest resting run through; its end makes the breaker due again."""
    run_id = await release_oldest(work, row.automation_id, PauseCause.CIRCUIT_BREAKER)
    due = work.now + timedelta(seconds=LOOK_SECONDS) if run_id is None else None
    values = {"trial_run_id": run_id, "trial_status": None, "due_at": due}
    this = _breaker.automation_id == row.automation_id
    await work.execute(update(circuit_breaker).where(this).values(**values))


async def _decide(work: UnitOfWork, row: CircuitBreaker, state: BreakerState) -> None:
    if state is BreakerState.CLOSED:
        await close(work, row, "A run has succeeded, and those that rest are started.")
    elif state is BreakerState.OPEN:
        await open_again(work, row)
    else:
        await _try(work, row)
