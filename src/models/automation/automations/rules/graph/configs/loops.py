"""Kinds whose body runs again and again: for_each and repeat."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from models.automation.automations.rules.graph.configs.types import CelExpression
from models.core.base import Input, example

MAX_ITEMS = 10_000
"""Items of one for_each (decisions C3)."""
MAX_PARALLELISM = 50
MAX_ITERATIONS = 1_000
"""Iterations of one repeat (decisions C8)."""


_Collect = bool | Annotated[str, Field(min_length=1, max_length=64)] | None


class ForEachConfig(Input):
    """Run the body once for each item, `parallelism` of them at a time.

    The body is what follows by `item`; `done` follows when all items have ended. `collect` names
    the node of the body whose outputs are gathered, or is true for the one the body ends with.
    """

    model_config = example(
        {
            "items": {"type": "node", "value": "overdue.records"},
            "parallelism": 5,
            "onItemError": "continue",
            "collect": "remind",
        }
    )

    items: list[Any]
    parallelism: Annotated[int, Field(ge=1, le=MAX_PARALLELISM)] = 5
    on_item_error: Literal["stop", "continue"] = "stop"
    max_items: Annotated[int, Field(ge=1, le=MAX_ITEMS)] = MAX_ITEMS
    collect: _Collect = False


class RepeatConfig(Input):
    """Run the body again while the expression holds, which is asked before each time.

    Without `while` it runs `maxIterations` times. The body is what follows by `item`.
    """

    model_config = example(
        {"while": "index < 10 && vars.pending > 0", "maxIterations": 10, "delaySeconds": 30}
    )

    while_: Annotated[CelExpression | None, Field(alias="while")] = None
    max_iterations: Annotated[int, Field(ge=1, le=MAX_ITERATIONS)] = 100
    delay_seconds: Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)] = 0
    collect: _Collect = False

    @model_validator(mode="after")
    def _ends(self) -> Self:
        if self.while_ is None and "max_iterations" not in self.model_fields_set:
            raise ValueError("needs while or maxIterations")
        return self
