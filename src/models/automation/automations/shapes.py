"""Automations and their versions on the wire.

See interface.md#automation-detail, interface.md#versions.
"""

from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, model_validator

from models.automation.automations.rules.graph.compiler import ReferenceIssue
from models.automation.automations.rules.graph.shapes import Graph
from models.automation.automations.rules.triggers.kinds import TriggerKind
from models.core.base import Id, Input, InputId, JsonObject, Label, Moment, Shape, example
from models.core.openapi import documented_as
from models.core.pagination import Listed
from models.core.schedules.timetables import PassedOver
from models.core.values import InputMoment

TriggerConfigJson = Annotated[JsonObject, documented_as("TriggerConfig")]
GraphJson = Annotated[JsonObject, documented_as("Graph")]

_GREETING: JsonObject = {"text": {"type": "template", "value": "Hello {{ trigger.name }}!"}}
_GRAPH: JsonObject = {
    "nodes": [
        {"id": "greet", "kind": "transform", "config": {"output": _GREETING}},
        {"id": "pause", "kind": "delay", "config": {"seconds": 2}},
    ],
    "edges": [{"from": "greet", "to": "pause"}],
}
_TRIGGER: JsonObject = {"kind": "schedule", "cron": "0 9 * * 1-5", "timezone": "Europe/Berlin"}


class VersionStatus(StrEnum):
    DRAFT = "draft"
    PUBLISHED = "published"
    ARCHIVED = "archived"


class CreateAutomation(Input):
    """Body of create automation; `trigger`, when given, repeats `triggerConfig.kind`.

    Without a trigger it is manual. Without a graph and a trigger it has no version yet, and does
    not run until one is drafted.
    """

    model_config = example({"label": "Hello", "graph": _GRAPH, "enabled": True})

    label: Label
    key: str | None = Field(default=None, pattern=r"^[a-z][a-z0-9_]{0,62}$")
    trigger: Annotated[TriggerKind, Field(strict=False)] | None = None
    trigger_config: TriggerConfigJson | None = None
    graph: Graph | None = None
    enabled: bool = False
    parent_item_id: InputId | None = None

    @model_validator(mode="after")
    def _has_a_graph_for_its_trigger(self) -> Self:
        if self.graph is None and (self.trigger or self.trigger_config) is not None:
            raise ValueError("A trigger needs a graph: set both or neither.")
        return self


class UpdateAutomation(Input):
    """Body of update automation: graph and trigger change the draft, other keys apply at once.

    The first draft of an automation without a version needs a graph.
    """

    model_config = example({"triggerConfig": _TRIGGER, "graph": _GRAPH})

    label: Label | None = None
    enabled: bool | None = None
    trigger: Annotated[TriggerKind, Field(strict=False)] | None = None
    trigger_config: TriggerConfigJson | None = None
    graph: Graph | None = None
    expected_draft_version_id: InputId | None = None


class PublishAutomation(Input):
    """Body of publish; without `versionId` the open draft is published."""

    model_config = example({"note": "Greets by name."})

    version_id: InputId | None = None
    note: str | None = Field(default=None, max_length=2_000)
    expected_draft_version_id: InputId | None = None


class ValidateAutomation(Input):
    """Body of validate: what is left out is taken from the draft, else the published version.

    An automation without a version yet needs the graph here.
    """

    model_config = example({"triggerConfig": _TRIGGER, "graph": _GRAPH})

    trigger_config: TriggerConfigJson | None = None
    graph: Graph | None = None


class AutomationValidation(Shape):
    valid: bool
    reference_issues: list[ReferenceIssue]


class AutomationSummary(Shape):
    """One automation as lists show it: without graph and secrets.

    One that has neither a draft nor a published version has no `version`, `versionId` and
    `trigger`.
    """

    id: Id
    workspace_id: Id
    item_id: Id
    key: str
    label: str
    enabled: bool
    version_id: Id | None
    version: int | None
    published_version_id: Id | None
    draft_version_id: Id | None
    has_unpublished_changes: bool
    trigger: TriggerKind | None
    next_run_at: Moment | None
    last_triggered_at: Moment | None
    created_at: Moment
    updated_at: Moment


class AutomationDetail(AutomationSummary):
    """One automation with the graph of its draft, or of its published version without one.

    Without either it has no `graph` and no `triggerConfig`.

    Only who may edit it is shown its webhook, and the credentials that its requests have. Others
    are shown `[redacted]`; sent back, it keeps them. `scheduleNotes` say what may be unexpected of
    its schedule in the year to come, as at changes of the clock.
    """

    trigger_config: TriggerConfigJson | None
    graph: GraphJson | None
    webhook_path: str | None
    webhook_secret: str | None
    reference_issues: list[ReferenceIssue]
    schedule_notes: list[str]


class AutomationList(Listed):
    automations: list[AutomationSummary]


class AutomationVersionShape(Shape):
    """One version without its graph, as lists show it."""

    id: Id
    automation_id: Id
    version: int
    status: VersionStatus
    trigger: TriggerKind
    note: str | None
    checksum: str
    created_by_user_id: Id | None
    created_at: Moment
    published_at: Moment | None
    restored_from_version_id: Id | None


class AutomationVersionDetail(AutomationVersionShape):
    trigger_config: TriggerConfigJson
    graph: GraphJson


class AutomationVersionList(Listed):
    versions: list[AutomationVersionShape]


class PreviewSchedule(Input):
    """Body of a preview of a schedule that is not saved."""

    model_config = example({"triggerConfig": _TRIGGER})

    trigger_config: TriggerConfigJson


class DueTime(Shape):
    """A moment at which a schedule fires, and what clocks show there, with their offset."""

    at: Moment
    local: str


class SchedulePreview(Shape):
    """The next times a schedule fires, with notes on special cases."""

    timezone: str
    times: list[DueTime]
    notes: list[str]
    passed_over: PassedOver | None


class Backfill(Input):
    """Body of backfill: the period whose due times get a run, both ends included."""

    model_config = example({"from": "2026-01-05T00:00:00.000Z", "to": "2026-01-05T06:00:00.000Z"})

    start: InputMoment = Field(alias="from")
    end: InputMoment = Field(alias="to")


class Backfilled(Shape):
    """The period has `count` due times; `created` is the number of them that had no run."""

    start: Moment = Field(alias="from")
    end: Moment = Field(alias="to")
    count: int
    created: int
