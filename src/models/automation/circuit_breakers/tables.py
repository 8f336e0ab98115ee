"""The table of circuit breakers."""

from datetime import datetime

from sqlmodel import Field, SQLModel

from models.automation.circuit_breakers.rules import BreakerState
from models.core.base import Id
from runtime.schema import Timestamp, one_of, partial_index, same_workspace, table_of


class CircuitBreaker(SQLModel, table=True):
    """The circuit breaker of an automation; `failures` in a row open it for `pause_seconds`.

    A trigger of the runs forgets `failed_in_a_row` when one succeeds, and writes `trial_status`
    when the run that tries the automation again has ended. A trigger of what rests makes one due
    that is half-open and has no run. At `due_at` a worker moves it on.
    """

    __tablename__ = "circuit_breaker"
    __table_args__ = (
        same_workspace("automation_id", "automation.id"),
        one_of("state", BreakerState),
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
