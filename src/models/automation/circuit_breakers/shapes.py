"""Circuit breakers on the wire."""

from typing import Annotated

from pydantic import Field

from models.automation.circuit_breakers.rules import LONGEST_PAUSE, MOST_FAILURES, BreakerState
from models.core.base import Id, Input, Moment, Shape, example


class SetCircuitBreaker(Input):
    """Body of set circuit breaker: failures in a row that open it, and for how long."""

    model_config = example({"failures": 5, "pauseSeconds": 300})

    failures: Annotated[int, Field(ge=1, le=MOST_FAILURES)]
    pause_seconds: Annotated[int, Field(ge=1, le=LONGEST_PAUSE)]


class CircuitBreakerShape(Shape):
    """The circuit breaker of an automation; one that is off has its `state` alone.

    While it is `open`, `triesAt` says when a run is let through, and `resting` how many wait.
    While it is `half_open`, `trialRunId` is the run that tries, once there is one.
    """

    is_on: bool
    state: BreakerState = BreakerState.CLOSED
    failures: int | None = None
    pause_seconds: int | None = None
    failed_in_a_row: int | None = None
    opened_at: Moment | None = None
    tries_at: Moment | None = None
    trial_run_id: Id | None = None
    resting: int | None = None
