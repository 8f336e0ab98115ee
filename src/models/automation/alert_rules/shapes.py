"""Alert rules: their states, what an evaluation changes, and their conditions on the wire. Pure."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AfterValidator, Field
from typing_extensions import TypeAliasType

from models.automation.automation_runs.filters import WorkspaceRunQuery
from models.core import base as core_base
from models.core.openapi import documented_as
from models.core.pagination import Listed

UNSEEN_RUN = "The rule matches a run you have no access to."
"""The message of a firing for who does not see the run that it names."""


class AlertState(StrEnum):
    """The state of a rule: its condition holds, or it does not."""

    OK = "ok"
    FIRING = "firing"


class AlertChange(StrEnum):
    """A change of a rule that its recipients are notified of."""

    FIRED = "fired"
    REPEATED = "repeated"
    RESOLVED = "resolved"


class AlertDisabledReason(StrEnum):
    """The reason why a rule is disabled: a person, or lost rights."""

    MANUAL = "manual"
    SAVER_LEFT = "saver_left"
    RIGHTS_LOST = "rights_lost"


class Resolution(StrEnum):
    """The end of a firing: the condition ended, or the rule was changed or disabled."""

    OVER = "over"
    CHANGED = "changed"
    DISABLED = "disabled"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of a check of a rule; `run_id` is the run that shows it best."""

    holds: bool
    message: str
    value: int | None = None
    run_id: core_base.Id | None = None
    pending_since: datetime | None = None
    """The time since which it would hold, where only the looks themselves know it."""


def change_of(
    state: AlertState,
    holds: bool,
    told_at: datetime | None,
    repeat: timedelta | None,
    now: datetime,
) -> AlertChange | None:
    """The change that a check brings; None where there is none to notify of."""
    if state is AlertState.OK:
        return AlertChange.FIRED if holds else None
    if not holds:
        return AlertChange.RESOLVED
    due = repeat is not None and told_at is not None and told_at <= now - repeat
    return AlertChange.REPEATED if due else None


def minutes_since(moment: datetime, now: datetime) -> int:
    """The whole minutes between two moments, none where clocks differ."""
    return max(0, int((now - moment).total_seconds() // 60))


def counted(number: int, noun: str) -> str:
    """A number with its noun: `1 run`, `1,200 runs`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def spoken(minutes: int) -> str:
    """A time of whole minutes in words: `90 minutes`, `3 hours`, `2 days`."""
    for length, noun in ((24 * 60, "day"), (60, "hour")):
        if minutes and minutes % length == 0:
            return counted(minutes // length, noun)
    return counted(minutes, "minute")


_DAY, _MONTH = 24 * 60, 30 * 24 * 60
MOST_RUNS = 1_000
"""Failed runs that a rule can wait for."""


class AlertKind(StrEnum):
    """The thing that a rule watches."""

    FAILURES = "failures"
    SILENCE = "silence"
    DURATION = "duration"
    QUEUE_AGE = "queue_age"
    WORKER_GONE = "worker_gone"
    CONNECTION_FAILING = "connection_failing"


_NARROWING = frozenset(
    {
        "source",
        "automation_id",
        "automation_version_id",
        "error_code",
        "failed_node_id",
        "text",
        "attribute",
    }
)
"""The filters of runs that a rule takes; it says itself when, how long and how ended."""


def _narrows(query: WorkspaceRunQuery) -> WorkspaceRunQuery:
    others = sorted(query.model_fields_set - _NARROWING)
    if others:
        names = ", ".join(WorkspaceRunQuery.model_fields[name].alias or name for name in others)
        raise ValueError(f"must not set {names}: the rule sets it")
    return query


def _names_automation(query: WorkspaceRunQuery) -> WorkspaceRunQuery:
    if query.automation_id is None:
        raise ValueError("must have an automationId")
    return query


AnyRuns = Annotated[WorkspaceRunQuery, AfterValidator(_narrows)]
RunsOfOne = Annotated[AnyRuns, AfterValidator(_names_automation)]

UpToDay = Annotated[int, Field(ge=1, le=_DAY)]
UpToMonth = Annotated[int, Field(ge=1, le=_MONTH)]


class FailuresCondition(core_base.Input):
    """`runs` runs failed or timed out within `minutes`; tests are not counted."""

    model_config = core_base.example({"kind": "failures", "runs": 10, "minutes": 15})

    kind: Literal["failures"]
    runs: Annotated[int, Field(ge=1, le=MOST_RUNS)]
    minutes: UpToDay
    query: AnyRuns = Field(default_factory=WorkspaceRunQuery)


class SilenceCondition(core_base.Input):
    """No run of an automation has ended, or succeeded, for `minutes`."""

    model_config = core_base.example(
        {
            "kind": "silence",
            "minutes": 60,
            "outcome": "succeeded",
            "query": {"automationId": core_base.EXAMPLE_ID},
        }
    )

    kind: Literal["silence"]
    minutes: UpToMonth
    outcome: Literal["ended", "succeeded"] = "ended"
    query: RunsOfOne


class DurationCondition(core_base.Input):
    """A run has been open for more than `minutes`, including the time it waits."""

    model_config = core_base.example({"kind": "duration", "minutes": 30})

    kind: Literal["duration"]
    minutes: UpToMonth
    query: AnyRuns = Field(default_factory=WorkspaceRunQuery)


class QueueAgeCondition(core_base.Input):
    """A run has been queued for more than `minutes`."""

    model_config = core_base.example({"kind": "queue_age", "minutes": 10})

    kind: Literal["queue_age"]
    minutes: UpToDay
    query: AnyRuns = Field(default_factory=WorkspaceRunQuery)


class WorkerGoneCondition(core_base.Input):
    """No worker process of the platform has been running for `minutes`."""

    model_config = core_base.example({"kind": "worker_gone", "minutes": 5})

    kind: Literal["worker_gone"]
    minutes: UpToDay


class ConnectionFailingCondition(core_base.Input):
    """`failures` calls through a connection failed in a row, over at least `minutes`."""

    model_config = core_base.example(
        {"kind": "connection_failing", "connectionId": core_base.EXAMPLE_ID, "failures": 3}
    )

    kind: Literal["connection_failing"]
    connection_id: core_base.InputId
    failures: Annotated[int, Field(ge=1, le=1_000)] = 3
    minutes: Annotated[int, Field(ge=0, le=_DAY)] = 0


AlertCondition = TypeAliasType(
    "AlertCondition",
    Annotated[
        FailuresCondition
        | SilenceCondition
        | DurationCondition
        | QueueAgeCondition
        | WorkerGoneCondition
        | ConnectionFailingCondition,
        Field(discriminator="kind", description="The condition of a rule, by its kind."),
    ],
)

_CONDITIONS = core_base.deferred_adapter(AlertCondition)


def read_condition(value: object) -> AlertCondition:
    """A condition as it is stored."""
    # Its ids and words are texts there, which only JSON may stand for.
    return _CONDITIONS.validate_python(value, strict=False)


MAX_RECIPIENTS = 50

Recipients = Annotated[list[core_base.InputId], Field(min_length=1, max_length=MAX_RECIPIENTS)]
RepeatMinutes = Annotated[int, Field(ge=1, le=7 * 24 * 60)]


class CreateAlertRule(core_base.Input):
    """Body of create alert rule; without `recipientUserIds` its creator is notified.

    With `repeatMinutes` the notification is repeated while the condition holds.
    """

    model_config = core_base.example(
        {
            "label": "Payments fail",
            "condition": {
                "kind": "failures",
                "runs": 10,
                "minutes": 15,
                "query": {"automationId": core_base.EXAMPLE_ID},
            },
            "repeatMinutes": 60,
        }
    )

    label: core_base.Label
    condition: AlertCondition
    recipient_user_ids: Recipients | None = None
    repeat_minutes: RepeatMinutes | None = None
    enabled: bool = True


class UpdateAlertRule(core_base.Input):
    """Body of update alert rule; a key that is left out stays as it is.

    A null `repeatMinutes` ends the repetition. A rule sees what its last saver sees.
    """

    model_config = core_base.example({"enabled": False})

    label: core_base.Label | None = None
    condition: AlertCondition | None = None
    recipient_user_ids: Recipients | None = None
    repeat_minutes: RepeatMinutes | None = None
    enabled: bool | None = None


class AlertRuleShape(core_base.Shape):
    """An alert rule; `firingSince` is the time since which its condition holds.

    `problem` says why it could not be evaluated at `checkedAt`.
    """

    id: core_base.Id
    workspace_id: core_base.Id
    label: str
    kind: AlertKind
    condition: Annotated[core_base.JsonObject, documented_as("AlertCondition")]
    recipient_user_ids: list[core_base.Id]
    repeat_minutes: int | None = None
    enabled: bool
    disabled_reason: AlertDisabledReason | None = None
    state: AlertState
    firing_since: core_base.Moment | None = None
    message: str | None = None
    problem: str | None = None
    checked_at: core_base.Moment | None = None
    saved_by_user_id: core_base.Id
    created_at: core_base.Moment
    updated_at: core_base.Moment


class AlertRuleList(Listed):
    """A page of the alert rules that the caller sees, by name."""

    alert_rules: list[AlertRuleShape]


class AlertFiringShape(core_base.Shape):
    """A time for which the condition of a rule held; `message` is that of the first notice."""

    id: core_base.Id
    message: str
    value: int | None = None
    run_id: core_base.Id | None = None
    fired_at: core_base.Moment
    resolved_at: core_base.Moment | None = None
    resolution: Resolution | None = None


class AlertFiringList(Listed):
    """A page of the firings of a rule, the newest first."""

    firings: list[AlertFiringShape]


class AlertTest(core_base.Shape):
    """The condition of a rule as it is now: whether it holds, and what there is to see."""

    holds: bool
    message: str
    value: int | None = None
    run_id: core_base.Id | None = None
