"""Circuit breakers: setting one, counting failures, and moving it along its states."""

from datetime import timedelta
from typing import Any

from sqlalchemy import delete, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from models.automation.circuit_breakers.rules import BREAKER_LIFECYCLE, BreakerState
from models.automation.circuit_breakers.shapes import SetCircuitBreaker
from models.automation.circuit_breakers.tables import CircuitBreaker, circuit_breaker
from models.automation.circuit_breakers.telling import tell
from models.core.base import Id
from models.core.pauses import commands as pauses
from models.core.pauses.commands import Paused
from models.core.pauses.rules import PauseCause, PauseSubject
from models.messages.workspace_events.rules import EventType
from runtime.database import UnitOfWork

_breaker = circuit_breaker.c
_NO_TRIAL = {"trial_run_id": None, "trial_status": None}


async def set_breaker(
    work: UnitOfWork, workspace_id: Id, automation_id: Id, body: SetCircuitBreaker
) -> None:
    """Give an automation a circuit breaker, or other numbers to the one it has."""
    numbers = {"failures": body.failures, "pause_seconds": body.pause_seconds}
    await work.execute(
        upsert(circuit_breaker)
        .values(
            automation_id=automation_id,
            workspace_id=workspace_id,
            state=BreakerState.CLOSED.value,
            failed_in_a_row=0,
            **numbers,
        )
        .on_conflict_do_update(index_elements=["automation_id"], set_=numbers)
    )


async def remove_breaker(work: UnitOfWork, workspace_id: Id, automation_id: Id) -> None:
    """Take the circuit breaker from an automation; what rests under it starts."""
    await close_breaker(work, workspace_id, automation_id)
    await work.execute(delete(circuit_breaker).where(*_of(workspace_id, automation_id)))


async def close_breaker(
    work: UnitOfWork, workspace_id: Id, automation_id: Id, rate: int | None = None
) -> None:
    """Close the circuit breaker of an automation; a closed one stays as it is."""
    statement = select(circuit_breaker).where(*_of(workspace_id, automation_id))
    row = await work.first(statement.with_for_update(), of=CircuitBreaker)
    if row is not None and row.state != BreakerState.CLOSED:
        await close(work, row, "Somebody closed the circuit breaker.", rate)


async def count_failure(work: UnitOfWork, workspace_id: Id, automation_id: Id) -> None:
    """Count a run that failed, in the transaction of its end; the last one opens the breaker.

    The row is locked until that commits, so ends at the same time are counted one after the other.
    """
    row = await work.first(
        update(circuit_breaker)
        .where(*_of(workspace_id, automation_id), _breaker.state == BreakerState.CLOSED)
        .values(failed_in_a_row=_breaker.failed_in_a_row + 1)
        .returning(circuit_breaker),
        of=CircuitBreaker,
    )
    if row is None or row.failed_in_a_row < row.failures:
        return
    reason = f"{row.failed_in_a_row:,} runs failed in a row."
    await open_again(work, row)
    await pauses.begin_pause(work, _paused(row), reason)
    minutes = f"A run is let through after {row.pause_seconds:,} seconds; the others rest."
    event = EventType.AUTOMATION_BREAKER_OPENED
    await tell(
        work, automation_id, event, "is paused by its circuit breaker", f"{reason} {minutes}"
    )


async def open_again(work: UnitOfWork, row: CircuitBreaker) -> None:
    """Open a breaker whose row is locked, for its time."""
    due = work.now + timedelta(seconds=row.pause_seconds)
    await move(work, row, BreakerState.OPEN, opened_at=work.now, due_at=due, **_NO_TRIAL)


async def close(
    work: UnitOfWork, row: CircuitBreaker, reason: str, rate: int | None = None
) -> None:
    """Close a breaker whose row is locked; what rests under it starts."""
    values = {"failed_in_a_row": 0, "opened_at": None, "due_at": None, **_NO_TRIAL}
    if await move(work, row, BreakerState.CLOSED, **values):
        await pauses.resume(work, _paused(row), rate)
        event = EventType.AUTOMATION_BREAKER_CLOSED
        await tell(work, row.automation_id, event, "runs again", reason)


async def move(
    work: UnitOfWork, row: CircuitBreaker, state: BreakerState, **values: object
) -> bool:
    """Bring a breaker to another state; False when it may not go there from its own."""
    sources = BREAKER_LIFECYCLE.sources_of(state)
    statement = update(circuit_breaker).where(
        _breaker.automation_id == row.automation_id, _breaker.state.in_(sources)
    )
    return (await work.execute(statement.values(state=state.value, **values))).rowcount > 0


def _paused(row: CircuitBreaker) -> Paused:
    kind, cause = PauseSubject.AUTOMATION, PauseCause.CIRCUIT_BREAKER
    return Paused(row.workspace_id, kind, row.automation_id, cause)


def _of(workspace_id: Id, automation_id: Id) -> tuple[Any, ...]:
    return _breaker.workspace_id == workspace_id, _breaker.automation_id == automation_id
