"""Kinds that decide or compute: condition, switch, transform, join, stop."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from models.automation.automations.rules.attributes import BoundAttributes
from models.automation.automations.rules.graph.configs.types import CelExpression
from models.automation.automations.rules.graph.kinds import JoinMode
from models.core.base import Input, JsonObject, example
from models.core.documented import documented_as


class ConditionConfig(Input):
    """Go on by `true` or `false`: either a CEL expression, or a filter over what the node can read.

    In the filter, `field` is a path such as `trigger.record.data.price`.
    """

    model_config = example({"expression": "trigger.record.data.price > 100.0"})

    expression: CelExpression | None = None
    filter: Annotated[JsonObject, documented_as("Filter")] | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.expression is None) is (self.filter is None):
            raise ValueError("needs either expression or filter")
        return self


class SwitchCase(Input):
    """One way out: an edge with the outcome `case` and this `caseKey` goes on."""

    key: Annotated[str, Field(min_length=1, max_length=64)]
    expression: CelExpression


class SwitchConfig(Input):
    """Go on by the first case whose expression is true, else by `default`."""

    model_config = example(
        {
            "cases": [
                {"key": "large", "expression": "trigger.total >= 1000.0"},
                {"key": "abroad", "expression": 'trigger.country != "DE"'},
            ]
        }
    )

    cases: Annotated[list[SwitchCase], Field(min_length=1, max_length=100)]

    @model_validator(mode="after")
    def _distinct_keys(self) -> Self:
        keys = [case.key for case in self.cases]
        if len(set(keys)) < len(keys):
            raise ValueError("every case needs a key of its own")
        return self


class TransformConfig(Input):
    """Compute values: the output of the node is `output` with its bindings resolved.

    `attributes` are added to the run, as short texts; one without a value is left out.
    """

    model_config = example(
        {
            "output": {
                "greeting": {"type": "template", "value": "Hello {{ trigger.name }}!"},
                "total": {"type": "expression", "value": "double(trigger.net) * 1.19"},
            },
            "attributes": {"order": {"type": "trigger", "value": "number"}},
        }
    )

    output: JsonObject
    attributes: BoundAttributes | None = None


class JoinConfig(Input):
    """Bring branches together: `all` waits for each, `any` for the first, `count` for so many."""

    model_config = example({"mode": "count", "count": 2})

    mode: Annotated[JoinMode, Field(strict=False)] = JoinMode.ALL
    count: Annotated[int, Field(ge=1, le=500)] | None = None

    @model_validator(mode="after")
    def _count_with_its_mode(self) -> Self:
        if (self.mode is JoinMode.COUNT) is (self.count is None):
            raise ValueError("count belongs to the mode count, which needs it")
        return self


class StopConfig(Input):
    """End the run here, as succeeded or as failed."""

    model_config = example({"result": "failed", "message": "The customer is unknown."})

    result: Literal["succeeded", "failed"] = "succeeded"
    message: Annotated[str, Field(max_length=2_000)] | None = None
    output: JsonObject | None = None
