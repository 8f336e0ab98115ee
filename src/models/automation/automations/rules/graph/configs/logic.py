"""Kinds that decide or compute: condition, switch, transform, join, stop."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from models.automation.automations.rules.graph.configs.types import CelText
from models.automation.automations.rules.graph.kinds import JoinMode
from models.core.base import Input, JsonObject


class ConditionConfig(Input):
    """Either CEL text that gives true or false, or a filter over the variables."""

    expression: CelText | None = None
    filter: JsonObject | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.expression is None) is (self.filter is None):
            raise ValueError("needs either expression or filter")
        return self


class SwitchCase(Input):
    key: Annotated[str, Field(min_length=1, max_length=64)]
    expression: CelText


class SwitchConfig(Input):
    """The first case whose expression is true is the outcome, else `default`."""

    cases: Annotated[list[SwitchCase], Field(min_length=1, max_length=100)]

    @model_validator(mode="after")
    def _distinct_keys(self) -> Self:
        keys = [case.key for case in self.cases]
        if len(set(keys)) < len(keys):
            raise ValueError("every case needs a key of its own")
        return self


class TransformConfig(Input):
    output: JsonObject


class JoinConfig(Input):
    """`all` waits for every branch, `any` for the first, `count` for that many."""

    mode: Annotated[JoinMode, Field(strict=False)] = JoinMode.ALL
    count: Annotated[int, Field(ge=1, le=500)] | None = None

    @model_validator(mode="after")
    def _count_with_its_mode(self) -> Self:
        if (self.mode is JoinMode.COUNT) is (self.count is None):
            raise ValueError("count belongs to the mode count, which needs it")
        return self


class StopConfig(Input):
    result: Literal["succeeded", "failed"] = "succeeded"
    message: Annotated[str, Field(max_length=2_000)] | None = None
    output: JsonObject | None = None
