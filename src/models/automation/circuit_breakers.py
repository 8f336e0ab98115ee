"""Circuit breakers of automations: failures in a row pause it, and one run tries it again."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Annotated, Any, Protocol

import sqlalchemy as sa
from pydantic import Field as WireField
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlmodel import Field, SQLModel

from models.automation.automations.queries import AUTOMATION, VERSION
from models.core.access.rules import Principal
from models.core.base import Id, Input, Moment, Shape, example
from models.core.lifecycle.rules import Lifecycle
from models.core.pauses import store as pauses
from models.core.pauses.rules import PauseCause, PauseSubject
from models.core.pauses.store import Paused, pauses_of, release_oldest, resting_under
from models.messages.deliveries.rules import CircuitState
from models.messages.notification_preferences import NotificationKind
from models.messages.notifications.commands import Notice, notify
from models.messages.workspace_events.log import append_event
from models.messages.workspace_events.rules import EventType
from runtime.clock import wire_timestamp
from runtime.database import UnitOfWork
from runtime.postgresql.schema import Timestamp, one_of, partial_index, same_workspace, table_of
from runtime.processes.fault_injection import FaultPoint, inject_fault

MOST_FAILURES = 1_000
LONGEST_PAUSE = 86_400
"""Seconds."""


BREAKER_MOVES: Mapping[CircuitState, frozenset[CircuitState]] = {
    CircuitState.CLOSED: frozenset({CircuitState.OPEN}),
    CircuitState.OPEN: frozenset({CircuitState.HALF_OPEN, CircuitState.CLOSED}),
    CircuitState.HALF_OPEN: frozenset({CircuitState.OPEN, CircuitState.CLOSED}),
}
BREAKER_LIFECYCLE = Lifecycle(BREAKER_MOVES)


def after_trial(status: str) -> CircuitState:
    """The state that follows from the end of the run that tried; a cancelled one says nothing."""
    if status == "succeeded":
        return CircuitState.CLOSED
    return CircuitState.HALF_OPEN if status == "cancelled" else CircuitState.OPEN


class CircuitBreaker(SQLModel, table=True):
    """The circuit breaker of an automation; `failures` in a row open it for `pause_seconds`.

    A trigger of the runs forgets `failed_in_a_row` when one succeeds, and writes `trial_status`
    when the run that tries the automation again has ended. A trigger of what rests makes one due
    that is half-open and has no run. At `due_at` a worker moves it on.
    """

    __tablename__ = "circuit_breaker"
    __table_args__ = (
        same_workspace("automation_id", "automation.id"),
        one_of("state", CircuitState),
        partial_index("ix_circuit_breaker_due_at", "due_at", where="due_at IS NOT NULL"),
    )

    automation_id: Id = Field(primary_key=True)
    workspace_id: Id
    failures: int
    pause_seconds: int
    state: str
    failed_in_a_row: int
    opened_at: datetime | None = Field(default=None, sa_type=Timestamp)
    due_at: datetime | None = Field(default=None, sa_type=Timestamp)
    trial_run_id: Id | None = None
    trial_status: str | None = None


circuit_breaker = table_of(CircuitBreaker)


class SetCircuitBreaker(Input):
    """Body of set circuit breaker: failures in a row that open it, and for how long."""

    model_config = example({"failures": 5, "pauseSeconds": 300})

    failures: Annotated[int, WireField(ge=1, le=MOST_FAILURES)]
    pause_seconds: Annotated[int, WireField(ge=1, le=LONGEST_PAUSE)]


class CircuitBreakerShape(Shape):
    """The circuit breaker of an automation; one that is off has only a `state`.

    While it is `open`, `triesAt` says when it probes with one run, and `resting` how many runs are
    queued. While it is `half_open`, `trialRunId` is the probing run, once there is one.
    """

    is_on: bool
    state: CircuitState = CircuitState.CLOSED
    failures: int | None = None
    pause_seconds: int | None = None
    failed_in_a_row: int | None = None
    opened_at: Moment | None = None
    tries_at: Moment | None = None
    trial_run_id: Id | None = None
    resting: int | None = None


async def read_breaker(
    work: UnitOfWork, workspace_id: Id, automation_id: Id
) -> CircuitBreakerShape:
    """The circuit breaker of an automation, and how much rests under it."""
    row = await work.first(
        sa.select(circuit_breaker).where(
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
        state=CircuitState(row.state),
        failures=row.failures,
        pause_seconds=row.pause_seconds,
        failed_in_a_row=row.failed_in_a_row,
        opened_at=row.opened_at,
        tries_at=row.due_at if row.state == CircuitState.OPEN else None,
        trial_run_id=row.trial_run_id,
        resting=None if holder is None else await resting_under(work, holder.id),
    )


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
            state=CircuitState.CLOSED.value,
            failed_in_a_row=0,
            **numbers,
        )
        .on_conflict_do_update(index_elements=["automation_id"], set_=numbers)
    )


async def remove_breaker(work: UnitOfWork, workspace_id: Id, automation_id: Id) -> None:
    """Remove the circuit breaker of an automation; its queued runs start."""
    await close_breaker(work, workspace_id, automation_id)
    await work.execute(sa.delete(circuit_breaker).where(*_breaker_of(workspace_id, automation_id)))


async def close_breaker(
    work: UnitOfWork, workspace_id: Id, automation_id: Id, rate: int | None = None
) -> None:
    """Close the circuit breaker of an automation; a closed one stays as it is."""
    statement = sa.select(circuit_breaker).where(*_breaker_of(workspace_id, automation_id))
    row = await work.first(statement.with_for_update(), of=CircuitBreaker)
    if row is not None and row.state != CircuitState.CLOSED:
        await close_held(work, row, "Closed manually.", rate)


async def count_failure(work: UnitOfWork, workspace_id: Id, automation_id: Id) -> None:
    """Count a run that failed, in the transaction of its end; the last one opens the breaker.

    The row is locked until that commits, so ends at the same time are counted one after the other.
    """
    row = await work.first(
        sa.update(circuit_breaker)
        .where(*_breaker_of(workspace_id, automation_id), _breaker.state == CircuitState.CLOSED)
        .values(failed_in_a_row=_breaker.failed_in_a_row + 1)
        .returning(circuit_breaker),
        of=CircuitBreaker,
    )
    if row is None or row.failed_in_a_row < row.failures:
        return
    reason = f"{row.failed_in_a_row:,} runs failed in a row."
    await open_held(work, row)
    await pauses.begin_pause(work, _paused(row), reason)
    minutes = f"Probes with one run after {row.pause_seconds:,} seconds; the others are queued."
    event = EventType.AUTOMATION_BREAKER_OPENED
    await announce(
        work, automation_id, event, "is paused by its circuit breaker", f"{reason} {minutes}"
    )


async def open_held(work: UnitOfWork, row: CircuitBreaker) -> None:
    """Open a breaker whose row is locked, for its time."""
    due = work.now + timedelta(seconds=row.pause_seconds)
    await move_held(work, row, CircuitState.OPEN, opened_at=work.now, due_at=due, **_NO_TRIAL)


async def close_held(
    work: UnitOfWork, row: CircuitBreaker, reason: str, rate: int | None = None
) -> None:
    """Close a breaker whose row is locked; its queued runs start."""
    values = {"failed_in_a_row": 0, "opened_at": None, "due_at": None, **_NO_TRIAL}
    if await move_held(work, row, CircuitState.CLOSED, **values):
        await pauses.resume(work, _paused(row), rate)
        event = EventType.AUTOMATION_BREAKER_CLOSED
        await announce(work, row.automation_id, event, "runs again", reason)


async def move_held(
    work: UnitOfWork, row: CircuitBreaker, state: CircuitState, **values: object
) -> bool:
    """Bring a breaker to another state; False when it may not go there from its own."""
    sources = BREAKER_LIFECYCLE.sources_of(state)
    statement = sa.update(circuit_breaker).where(
        _breaker.automation_id == row.automation_id, _breaker.state.in_(sources)
    )
    return (await work.execute(statement.values(state=state.value, **values))).rowcount > 0


def _paused(row: CircuitBreaker) -> Paused:
    kind, cause = PauseSubject.AUTOMATION, PauseCause.CIRCUIT_BREAKER
    return Paused(row.workspace_id, kind, row.automation_id, cause)


def _breaker_of(workspace_id: Id, automation_id: Id) -> tuple[Any, ...]:
    return _breaker.workspace_id == workspace_id, _breaker.automation_id == automation_id


LOOK_SECONDS = 300.0
"""Seconds until a half-open breaker without a run looks again for one.

A trigger of what rests makes it due at once; only a run that comes in at the moment of the look is
left to the next one. So breakers of automations that no one starts cost next to nothing.
"""

BREAKER_DUE = sa.exists().where(_breaker.due_at <= sa.func.now())


async def advance_breaker(work: UnitOfWork) -> bool:
    """Move one breaker on that is due; False when none is.

    Each turn is one transaction about one breaker that no other worker holds.
    """
    due = (
        sa.select(circuit_breaker)
        .where(_breaker.due_at <= work.now)
        .order_by(_breaker.due_at)
        .limit(1)
        .with_for_update(skip_locked=True)
    )
    row = await work.first(due, of=CircuitBreaker)
    if row is None:
        return False
    if row.state == CircuitState.OPEN:
        await move_held(work, row, CircuitState.HALF_OPEN)
        await _try_run(work, row)
    elif row.trial_status is None:
        await _try_run(work, row)
    else:
        await _end_trial(work, row, after_trial(row.trial_status))
    inject_fault(FaultPoint.AFTER_BREAKER_BEFORE_COMMIT, row.automation_id)
    return True


async def _try_run(work: UnitOfWork, row: CircuitBreaker) -> None:
    """Let the oldest resting run through; its end makes the breaker due again."""
    run_id = await release_oldest(work, row.automation_id, PauseCause.CIRCUIT_BREAKER)
    due = work.now + timedelta(seconds=LOOK_SECONDS) if run_id is None else None
    values = {"trial_run_id": run_id, "trial_status": None, "due_at": due}
    this = _breaker.automation_id == row.automation_id
    await work.execute(sa.update(circuit_breaker).where(this).values(**values))


async def _end_trial(work: UnitOfWork, row: CircuitBreaker, state: CircuitState) -> None:
    if state is CircuitState.CLOSED:
        await close_held(work, row, "A run succeeded; queued runs are starting.")
    elif state is CircuitState.OPEN:
        await open_held(work, row)
    else:
        await _try_run(work, row)


class _AnnouncedBreaker(Protocol):
    workspace_id: Id
    label: str
    item_id: Id
    author_id: Id | None


async def announce(
    work: UnitOfWork, automation_id: Id, event: EventType, verb: str, body: str
) -> None:
    """Log that a circuit breaker moved, and notify who made the published version."""
    row = await work.first(
        sa.select(
            AUTOMATION.workspace_id,
            AUTOMATION.label,
            AUTOMATION.item_id,
            VERSION.created_by_user_id.label("author_id"),
        )
        .select_from(AUTOMATION.id.table)
        .outerjoin(VERSION.id.table, VERSION.id == AUTOMATION.published_version_id)
        .where(AUTOMATION.id == automation_id),
        of=_AnnouncedBreaker,
    )
    assert row is not None, "the breaker refers to its automation"
    principal = Principal.of_platform(automation_id)
    data = {"automationId": str(automation_id)}
    await append_event(work, principal, row.workspace_id, event, data, item_id=row.item_id)
    if row.author_id is None:
        return
    notice = Notice(
        kind=NotificationKind.AUTOMATION_FAILED,
        title=f"“{row.label}” {verb}",
        body=body,
        item_id=row.item_id,
        data=data,
        key=f"{event}/{automation_id}/{wire_timestamp(work.now)}",
    )
    await notify(work, row.workspace_id, [row.author_id], notice)
