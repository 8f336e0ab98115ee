"""The commands of a workflow: as a history recorded them, and as the code gives them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.json_format import MessageToDict
from temporalio.api.common.v1 import Payload
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.bridge.proto.workflow_commands import WorkflowCommand
from temporalio.client import WorkflowHistory

_LOCAL_ACTIVITY, _PATCH = "core_local_activity", "core_patch"


@dataclass(frozen=True, slots=True)
class Step:
    """One command. `number` and `name` tell it from others of its kind."""

    kind: str
    number: str = ""
    name: str = ""
    summary: str = field(default="", compare=False)
    """The name a person gives it: the label of a node."""
    event_id: int = field(default=0, compare=False)

    def words(self) -> str:
        """The step as a sentence names it."""
        label = f" “{self.summary}”" if self.summary else ""
        return " ".join(part for part in (self.kind, self.name) if part) + label


def recorded_steps(history: WorkflowHistory) -> list[Step]:
    return [step for event in history.events if (step := _recorded(event)) is not None]


def given_steps(commands: Sequence[WorkflowCommand]) -> list[Step]:
    return [step for command in commands if (step := _given(command)) is not None]


def event_name(event: HistoryEvent) -> str:
    """`TimerStarted`, as Temporal's own tools call an event."""
    words = EventType.Name(event.event_type).removeprefix("EVENT_TYPE_").split("_")
    return "".join(word.capitalize() for word in words)


def _recorded(event: HistoryEvent) -> Step | None:
    attributes = MessageToDict(event).get(_attributes_of(event), {})
    shape = _RECORDED.get(event.event_type)
    summary = _text(event.user_metadata.summary)
    if event.event_type == EventType.EVENT_TYPE_MARKER_RECORDED:
        return _marker(event, summary)
    if shape is None:
        return None
    kind, number, name = shape
    return Step(kind, _at(attributes, number), _at(attributes, name), summary, event.event_id)


def _marker(event: HistoryEvent, summary: str) -> Step | None:
    marker = event.marker_recorded_event_attributes
    data = {
        name: _json(detail.payloads[0])
        for name, detail in marker.details.items()
        if detail.payloads
    }
    if marker.marker_name == _LOCAL_ACTIVITY:
        about = data["data"]
        number, name = str(about["seq"]), about["activity_type"]
        return Step("local activity", number, name, summary, event.event_id)
    if marker.marker_name == _PATCH:
        about = data.get("patch-data") or data.get("patch_data") or {}
        return Step("patch", "", str(about.get("id", "")), summary, event.event_id)
    return Step("marker", "", marker.marker_name, summary, event.event_id)


def _given(command: WorkflowCommand) -> Step | None:
    variant = str(command.WhichOneof("variant"))
    shape = _GIVEN.get(variant)
    if shape is None:
        return None
    kind, number, name = shape
    content = getattr(command, variant)
    return Step(
        kind,
        str(getattr(content, number)) if number else "",
        str(getattr(content, name)) if name else "",
        _text(command.user_metadata.summary),
    )


def _attributes_of(event: HistoryEvent) -> str:
    name = str(event.WhichOneof("attributes"))
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _at(attributes: dict[str, Any], path: str) -> str:
    """The value at a dotted path, or nothing."""
    value: Any = attributes
    for part in path.split("."):
        value = value.get(part, "") if isinstance(value, dict) else ""
    return str(value)


def _json(payload: Payload) -> Any:
    try:
        return json.loads(payload.data)
    except ValueError:
        return {}


def _text(payload: Payload) -> str:
    value = _json(payload) if payload.data else ""
    return value if isinstance(value, str) else ""


_RECORDED = {
    EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED: ("activity", "activityId", "activityType.name"),
    EventType.EVENT_TYPE_TIMER_STARTED: ("timer", "timerId", ""),
    EventType.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED: (
        "child workflow",
        "workflowId",
        "workflowType.name",
    ),
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED: ("end as completed", "", ""),
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED: ("end as failed", "", ""),
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED: ("end as cancelled", "", ""),
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW: ("continue as new", "", ""),
}
"""Kind, and where the event says which: what core numbers commands by, and the type."""

_GIVEN = {
    "schedule_activity": ("activity", "seq", "activity_type"),
    "schedule_local_activity": ("local activity", "seq", "activity_type"),
    "start_timer": ("timer", "seq", ""),
    "start_child_workflow_execution": ("child workflow", "workflow_id", "workflow_type"),
    "set_patch_marker": ("patch", "", "patch_id"),
    "complete_workflow_execution": ("end as completed", "", ""),
    "fail_workflow_execution": ("end as failed", "", ""),
    "cancel_workflow_execution": ("end as cancelled", "", ""),
    "continue_as_new_workflow_execution": ("continue as new", "", ""),
}
"""The same of a command of the code."""
