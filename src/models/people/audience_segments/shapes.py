"""Audience segments on the wire (decisions C13, C16)."""

from typing import Annotated, Any

from pydantic import Field

from models.core.base import Input, JsonObject, Label, Moment, Nullable, Shape, example
from models.core.documented import documented_as
from models.core.keys import Key


class AudienceSegmentBody(Shape):
    """For whom a flag or an experiment can be meant; one that is `builtIn` every platform has."""

    key: str
    label: str
    description: str | None
    built_in: bool
    rule: Annotated[JsonObject, documented_as("Filter")]
    created_at: Moment | None


class AudienceSegmentList(Shape):
    segments: list[AudienceSegmentBody]
    cursor: Nullable[str]


class CreateAudienceSegment(Input):
    """A segment of one's own.

    `rule` is a filter over `user.…`, `workspace.…` and `attributes.…`, which the application tells.
    """

    model_config = example(
        {
            "key": "large_workspaces",
            "label": "Large workspaces",
            "rule": {"field": "workspace.memberCount", "op": "gte", "value": 50},
        }
    )

    key: Key
    label: Label
    description: Annotated[str, Field(max_length=2_000)] | None = None
    rule: Annotated[dict[str, Any], documented_as("Filter")]
