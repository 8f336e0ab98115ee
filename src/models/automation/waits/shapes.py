"""The data sent to waiting nodes (decisions C17)."""

from typing import Annotated, Literal

from pydantic import Field, RootModel

from models.automation.automations.rules.graph.configs.waits import EventKey
from models.core.base import Input, JsonObject, Shape, example

MAX_SCOPE = 500


class ResumeNode(Input):
    """Body of resume: a decision for an approval, data for a node that waits for an event."""

    model_config = example({"decision": "approved", "comment": "Go ahead."})

    decision: Literal["approved", "rejected"] | None = None
    comment: Annotated[str, Field(max_length=10_000)] | None = None
    data: JsonObject | None = None
    scope_key: Annotated[str, Field(max_length=MAX_SCOPE)] = ""


class ResumeData(RootModel[JsonObject]):
    """Body of a call to a resume URL: the data itself."""

    root: JsonObject = Field(default_factory=dict)


class PublishEvent(Input):
    """Body of an event: every node that waits for its key goes on with its data."""

    model_config = example({"eventKey": "order-1042", "data": {"paid": True}})

    event_key: EventKey
    data: JsonObject = Field(default_factory=dict)


class Resumed(Shape):
    """`resumed` waiting nodes go on; one that does not wait yet will go on when it would."""

    resumed: int
