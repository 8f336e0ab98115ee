"""The keys that the config of every kind of trigger has."""

from typing import Annotated, Literal

from pydantic import Field

from models.automation.automations.rules.attributes import BoundAttributes
from models.automation.automations.rules.graph.configs.types import CelExpression
from models.core.absence import AbsentNotNull
from models.core.base import Input

Seconds = Annotated[int, Field(ge=0, le=31 * 86_400)]


class Concurrency(Input, AbsentNotNull):
    """The limit of runs of one automation, or of one key, that go at a time."""

    limit: Annotated[int, Field(ge=1, le=1_000)]
    key_expression: CelExpression | None = None
    policy: Literal["queue", "skip", "cancel_oldest"] = "queue"


class Trigger(Input, AbsentNotNull):
    """The keys that every kind of trigger has."""

    concurrency: Concurrency | None = None
    attributes: BoundAttributes | None = None
