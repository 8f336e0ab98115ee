"""Kinds whose body runs again and again: for_each and repeat."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from models.automation.automations.rules.graph.configs.types import CelText
from models.core.base import Input

MAX_ITEMS = 10_000
"""Items of one for_each (decisions C3)."""
MAX_PARALLELISM = 50
MAX_ITERATIONS = 1_000
"""Iterations of one repeat (decisions C8)."""


_Collect = bool | Annotated[str, Field(min_length=1, max_length=64)] | None


class ForEachConfig(Input):
    """The body runs once per item; `collect` names the body node whose outputs are gathered, or is
    true for the one the body ends with.
    """

    items: list[Any]
    parallelism: Annotated[int, Field(ge=1, le=MAX_PARALLELISM)] = 5
    on_item_error: Literal["stop", "continue"] = "stop"
    max_items: Annotated[int, Field(ge=1, le=MAX_ITEMS)] = MAX_ITEMS
    collect: _Collect = False


class RepeatConfig(Input):
    """The body runs again while the expression holds, which is asked before each time; without
    one, `maxIterations` times.
    """

    while_: Annotated[CelText | None, Field(alias="while")] = None
    max_iterations: Annotated[int, Field(ge=1, le=MAX_ITERATIONS)] = 100
    delay_seconds: Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)] = 0
    collect: _Collect = False

    @model_validator(mode="after")
    def _ends(self) -> Self:
        if self.while_ is None and "max_iterations" not in self.model_fields_set:
            raise ValueError("needs while or maxIterations")
        return self
