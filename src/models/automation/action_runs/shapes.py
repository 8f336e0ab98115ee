"""Action runs on the wire (interface, Action run; decisions C6, C17)."""

from typing import Annotated

from pydantic import Field, WithJsonSchema

from models.automation.action_runs.rules import ActionRunStatus, StepStatus
from models.automation.actions.rules.configs import ActionKind
from models.core.base import Id, Input, JsonObject, Moment, Shape
from models.core.documented import ID, MOMENT, TEMPORAL, TEXT, keys
from models.core.pauses.shapes import WAITING_FOR


class RunAction(Input):
    """Body of run action.

    `input` is what `trigger` bindings of the action read; with `wait` false the answer is the run
    as it was accepted.
    """

    input: JsonObject = Field(default_factory=dict)
    wait: bool = True


class StepResult(Shape):
    """One step; `index` counts from 0."""

    step_id: str
    index: int
    kind: ActionKind
    status: StepStatus
    attempt: int
    result: JsonObject | None
    error: str | None
    started_at: Moment | None
    completed_at: Moment | None


class ActionRunDetail(Shape):
    """One run; its `result` is that of the last step that succeeded, or of the one that failed."""

    id: Id
    action_id: Id
    workspace_id: Id
    status: ActionRunStatus
    started_at: Moment
    completed_at: Moment | None
    error: str | None
    result: JsonObject | None
    input: JsonObject
    step_results: dict[str, StepResult]
    metadata: Annotated[
        JsonObject,
        WithJsonSchema(
            keys(
                "temporalWorkflowId",
                temporalWorkflowId=TEXT,
                automationRunId=ID,
                nodeId=TEXT,
                scopeKey=TEXT,
                waitingForWorkerSince=MOMENT,
                waitingFor=WAITING_FOR,
                temporal=TEMPORAL,
            )
        ),
    ]
