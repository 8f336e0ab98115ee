"""Alert rules on the wire."""

from typing import Annotated

from pydantic import Field

from models.automation.alert_rules.conditions import AlertCondition, AlertKind
from models.automation.alert_rules.rules import AlertDisabledReason, AlertState, Resolution
from models.core.base import (
    EXAMPLE_ID,
    Id,
    Input,
    InputId,
    JsonObject,
    Label,
    Moment,
    Nullable,
    Shape,
    example,
)
from models.core.documented import documented_as

MAX_RECIPIENTS = 50

Recipients = Annotated[list[InputId], Field(min_length=1, max_length=MAX_RECIPIENTS)]
RepeatMinutes = Annotated[int, Field(ge=1, le=7 * 24 * 60)]


class CreateAlertRule(Input):
    """Body of create alert rule; without `recipientUserIds` its maker is told.

    With `repeatMinutes` it is told again so often while it holds.
    """

    model_config = example(
        {
            "label": "Payments fail",
            "condition": {
                "kind": "failures",
                "runs": 10,
                "minutes": 15,
                "query": {"automationId": EXAMPLE_ID},
            },
            "repeatMinutes": 60,
        }
    )

    label: Label
    condition: AlertCondition
    recipient_user_ids: Recipients | None = None
    repeat_minutes: RepeatMinutes | None = None
    enabled: bool = True


class UpdateAlertRule(Input):
    """Body of update alert rule; a key that is left out stays as it is.

    A null `repeatMinutes` ends the repetition. A rule sees what its last saver sees.
    """

    model_config = example({"enabled": False})

    label: Label | None = None
    condition: AlertCondition | None = None
    recipient_user_ids: Recipients | None = None
    repeat_minutes: RepeatMinutes | None = None
    enabled: bool | None = None


class AlertRuleShape(Shape):
    """An alert rule; `firingSince` is the time since which its condition holds.

    `problem` says why it could not be evaluated at `checkedAt`.
    """

    id: Id
    workspace_id: Id
    label: str
    kind: AlertKind
    condition: Annotated[JsonObject, documented_as("AlertCondition")]
    recipient_user_ids: list[Id]
    repeat_minutes: int | None = None
    enabled: bool
    disabled_reason: AlertDisabledReason | None = None
    state: AlertState
    firing_since: Moment | None = None
    message: str | None = None
    problem: str | None = None
    checked_at: Moment | None = None
    saved_by_user_id: Id
    created_at: Moment
    updated_at: Moment


class AlertRuleList(Shape):
    """A page of the alert rules that the caller sees, by name."""

    alert_rules: list[AlertRuleShape]
    cursor: Nullable[str]


class AlertFiringShape(Shape):
    """A time for which the condition of a rule held; `message` is what was told first."""

    id: Id
    message: str
    value: int | None = None
    run_id: Id | None = None
    fired_at: Moment
    resolved_at: Moment | None = None
    resolution: Resolution | None = None


class AlertFiringList(Shape):
    """A page of the firings of a rule, the newest first."""

    firings: list[AlertFiringShape]
    cursor: Nullable[str]


class AlertTest(Shape):
    """The condition of a rule as it is now: whether it holds, and what there is to see."""

    holds: bool
    message: str
    value: int | None = None
    run_id: Id | None = None


class DeletedAlertRule(Shape):
    id: Id
