"""Configs of kinds that wait: for time, for people, for events, for another automation."""

from functools import lru_cache
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from models.automation.automations.rules.attributes import BoundAttributes
from models.automation.automations.rules.graph import shapes
from models.core.access.rules import Role
from models.core.base import EXAMPLE_ID, Input, InputId, JsonObject, Label, example
from models.core.expressions.rules.errors import ExpressionError
from models.core.expressions.rules.programs import Program, Type, environment
from models.core.values import Timezone

_WaitSeconds = Annotated[float, Field(gt=0, le=shapes.MAX_WAIT_SECONDS, allow_inf_nan=False)]


class DelayConfig(Input):
    """Wait for `seconds`, or until a moment (ISO 8601; read in `timezone` without an offset)."""

    model_config = example(
        {"until": {"type": "trigger", "value": "record.data.due"}, "timezone": "Europe/Berlin"}
    )

    seconds: (
        Annotated[float, Field(ge=0, le=shapes.MAX_WAIT_SECONDS, allow_inf_nan=False)] | None
    ) = None
    until: shapes.IsoMoment | None = None
    timezone: Timezone | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.seconds is None) is (self.until is None):
            raise ValueError("needs either seconds or until")
        return self


RUN_VARIABLES = ("trigger", "nodes", "item", "index", "run", "vars")
"""Variables that the filter of an event may read besides its data (interface.md#expressions)."""

_EVENT = environment(dict.fromkeys(("data", *RUN_VARIABLES), Type.ANY))


@lru_cache(maxsize=1_024)
def event_filter(text: str) -> Program:
    """A filter over `data` and the run, compiled. Raises ExpressionError."""
    return Program(_EVENT, text)


def _filter(text: str) -> str:
    try:
        program = event_filter(text)
        program.require_value()
        decides = program.type in ("BOOL", "DYN")
    except ExpressionError as error:
        raise ValueError(error.message) from None
    if not decides:
        raise ValueError("The expression must return true or false.")
    return text


EventKey = Annotated[str, Field(min_length=1, max_length=200)]


class WaitEventConfig(Input):
    """Wait until someone resumes the node with data that the filter lets through.

    `eventKey` names what is waited for; `filter` is CEL over `data` and what the node can read of
    the run; `resumeUrl` makes a URL that resumes without an account.
    """

    model_config = example(
        {
            "eventKey": "payment",
            "filter": "data.orderId == trigger.record.id",
            "timeoutSeconds": 86400,
        }
    )

    event_key: EventKey | None = None
    filter: Annotated[shapes.CelExpression, AfterValidator(_filter)] | None = None
    timeout_seconds: _WaitSeconds | None = None
    resume_url: bool = True


class ApprovalField(Input):
    """One question for the approver."""

    key: shapes.FieldKey
    label: Label
    kind: Literal["text", "number", "checkbox", "select", "date"] = "text"
    required: bool = False
    options: Annotated[list[Label], Field(max_length=100, default_factory=list)]

    @model_validator(mode="after")
    def _can_be_answered(self) -> Self:
        if self.kind == "select" and not self.options:
            raise ValueError("a select needs options")
        return self


class ApprovalTerms(Input):
    """The terms of a decision."""

    required: Annotated[int, Field(ge=1, le=100)] = 1
    form: Annotated[list[ApprovalField], Field(max_length=50, default_factory=list)]
    allow_self: bool = False


class ApprovalConfig(ApprovalTerms):
    """Ask people to decide; the edges `approved`, `rejected` and `timeout` follow.

    `required` is the number of approvals needed from the assignees, or from members with the role;
    one rejection rejects. Members who can edit the automation can decide too, unless `allowEditors`
    is false. The member who started the run cannot, unless `allowSelf` is true.
    """

    model_config = example(
        {
            "role": "admin",
            "required": 1,
            "title": "Refund the order?",
            "message": {"type": "template", "value": "{{ trigger.record.title }} was returned."},
            "form": [{"key": "amount", "label": "Amount", "kind": "number", "required": True}],
            "timeoutSeconds": 172800,
        }
    )

    assignees: Annotated[list[InputId], Field(max_length=100, default_factory=list)]
    role: Annotated[Role, Field(strict=False)] | None = None
    allow_editors: bool = True
    title: Annotated[str, Field(min_length=1, max_length=500)] | None = None
    message: Annotated[str, Field(max_length=20_000)] = ""
    timeout_seconds: _WaitSeconds | None = None
    reminder_seconds: Annotated[float, Field(ge=1, le=shapes.MAX_WAIT_SECONDS)] | None = None

    @model_validator(mode="after")
    def _somebody(self) -> Self:
        if not self.assignees and self.role is None:
            raise ValueError("needs assignees or role")
        if self.role is None and self.required > len(set(self.assignees)):
            raise ValueError("required is greater than the number of assignees")
        if len({field.key for field in self.form}) < len(self.form):
            raise ValueError("two questions of the form have the same key")
        return self


class CallAutomationConfig(Input):
    """Run another automation; with `wait` the output is that of its run."""

    model_config = example(
        {
            "automationId": EXAMPLE_ID,
            "input": {"orderId": {"type": "trigger", "value": "record.id"}},
            "wait": True,
        }
    )

    automation_id: InputId
    input: JsonObject = Field(default_factory=dict)
    attributes: BoundAttributes = Field(default_factory=dict)
    """Attributes of the called run."""
    wait: bool = True
    version_policy: Literal["published"] = "published"
