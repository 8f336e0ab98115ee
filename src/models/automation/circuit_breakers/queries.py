"""Reading circuit breakers."""

from sqlalchemy import select

from models.automation.circuit_breakers.rules import BreakerState
from models.automation.circuit_breakers.shapes import CircuitBreakerShape
from models.automation.circuit_breakers.tables import CircuitBreaker, circuit_breaker
from models.core.base import Id
from models.core.pauses.queries import pauses_of, resting_under
from models.core.pauses.rules import PauseCause
from runtime.database import UnitOfWork


async def answer(work: UnitOfWork, workspace_id: Id, automation_id: Id) -> CircuitBreakerShape:
    """The circuit breaker of an automation, and how much rests under it."""
    row = await work.first(
        select(circuit_breaker).where(
            circuit_breaker.c.workspace_id == workspace_id,
            circuit_breaker.c.automation_id == automation_id,
        ),
        of=CircuitBreaker,
    )
    if row is None:
        return CircuitBreakerShape(is_on=False)
    pauses = await pauses_of(work, workspace_id, [automation_id])
    holder = pauses.get((automation_id, PauseCause.CIRCUIT_BREAKER))
    return CircuitBreakerShape(
        is_on=True,
        state=BreakerState(row.state),
        failures=row.failures,
        pause_seconds=row.pause_seconds,
        failed_in_a_row=row.failed_in_a_row,
        opened_at=row.opened_at,
        tries_at=row.due_at if row.state == BreakerState.OPEN else None,
        trial_run_id=row.trial_run_id,
        resting=None if holder is None else await resting_under(work, holder.id),
    )
