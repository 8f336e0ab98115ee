"""States of action runs and their steps, and what a run executes. Pure.

See interface.md#action-run-states.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from models.automation.actions.rules import ActionKind, SequenceConfig
from models.automation.automations.rules.planner.plan import PlanRetry
from models.core.base import JsonObject
from models.core.lifecycle.rules import Lifecycle

MAIN = "main"
"""The one step of an action that is no sequence."""


class ActionRunStatus(StrEnum):
    STARTED = "started"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


class StepStatus(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"


RUN_TRANSITIONS: Mapping[ActionRunStatus, frozenset[ActionRunStatus]] = {
    ActionRunStatus.STARTED: frozenset(
        {ActionRunStatus.SUCCEEDED, ActionRunStatus.FAILED, ActionRunStatus.CANCELLED}
    ),
    ActionRunStatus.SUCCEEDED: frozenset(),
    ActionRunStatus.FAILED: frozenset(),
    ActionRunStatus.CANCELLED: frozenset(),
}

RUN_LIFECYCLE = Lifecycle(RUN_TRANSITIONS)

_STEP_ENDS = frozenset({StepStatus.SUCCEEDED, StepStatus.FAILED, StepStatus.CANCELLED})

STEP_TRANSITIONS: Mapping[StepStatus, frozenset[StepStatus]] = {
    # A step whose whole work is one transaction is never seen running.
    StepStatus.PENDING: frozenset({StepStatus.RUNNING, StepStatus.SKIPPED}) | _STEP_ENDS,
    StepStatus.RUNNING: _STEP_ENDS,
    StepStatus.SUCCEEDED: frozenset(),
    StepStatus.FAILED: frozenset(),
    StepStatus.SKIPPED: frozenset(),
    StepStatus.CANCELLED: frozenset(),
}

OPEN_STEP = tuple(status for status, following in STEP_TRANSITIONS.items() if following)


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """One step as a run executes it; `parameters` are its config overlaid with its input."""

    id: str
    kind: ActionKind
    parameters: JsonObject
    when: str | None = None
    continue_on_error: bool = False
    retry: PlanRetry | None = None

    @property
    def attempts(self) -> int:
        """The number of attempts at most."""
        return 1 if self.retry is None else self.retry.max_attempts


def plan_of(kind: ActionKind, config: JsonObject) -> list[PlannedStep]:
    """The steps of an action whose config was checked when it was saved, in order."""
    parameters = {key: value for key, value in config.items() if key != "kind"}
    if kind is not ActionKind.SEQUENCE:
        return [PlannedStep(MAIN, kind, parameters)]
    return list(_steps(SequenceConfig.model_validate(parameters)))


def _steps(sequence: SequenceConfig) -> Iterator[PlannedStep]:
    for step in sequence.steps:
        retry = step.retry
        yield PlannedStep(
            id=step.id,
            kind=ActionKind(step.kind),
            parameters={**step.config, **step.input},
            when=step.when,
            continue_on_error=step.continue_on_error,
            retry=None if retry is None else PlanRetry(**retry.model_dump()),
        )
