"""Limits of outbound calls on the wire."""

from typing import Annotated

from pydantic import Field

from models.core.base import Id, Input, InputId, Moment, Nullable, Shape, example
from models.sources.outbound_limits.rules import (
    LEAST_PER_SECOND,
    MOST_AT_ONCE,
    MOST_PER_SECOND,
    MOST_RELEASED,
)

PerSecond = Annotated[
    float, Field(ge=LEAST_PER_SECOND, le=MOST_PER_SECOND, allow_inf_nan=False, strict=False)
]
AtOnce = Annotated[int, Field(ge=1, le=MOST_AT_ONCE)]


class CreateOutboundLimit(Input):
    """Body of create outbound limit: one place, by `host` or `connectionId`, and its limits.

    A host has no scheme and no port, and is found however a URL spells it.
    """

    model_config = example({"host": "api.example.com", "perSecond": 5, "atOnce": 2})

    host: Annotated[str, Field(min_length=1, max_length=300)] | None = None
    connection_id: InputId | None = None
    per_second: PerSecond | None = None
    at_once: AtOnce | None = None


class UpdateOutboundLimit(Input):
    """Body of update outbound limit; null takes one of the two limits away."""

    model_config = example({"perSecond": 0.5})

    per_second: PerSecond | None = None
    at_once: AtOnce | None = None


class ResumeConnection(Input):
    """Body of resume connection: `rate` calls a minute, or all at once without it."""

    model_config = example({"rate": 60})

    rate: Annotated[int, Field(ge=1, le=MOST_RELEASED)] | None = None


class OutboundLimitBody(Shape):
    """A limit, and how its place is called now.

    So many calls are `waiting`, and `atOnceNow` are on their way. The next one goes at
    `nextFreeAt`, as far as the rate and a pause say.
    """

    id: Id
    workspace_id: Id
    host: str | None
    connection_id: Id | None
    per_second: float | None
    at_once: int | None
    waiting: int
    at_once_now: int
    next_free_at: Moment | None
    paused_until: Moment | None
    created_at: Moment
    updated_at: Moment


class OutboundLimitList(Shape):
    limits: list[OutboundLimitBody]
    cursor: Nullable[str]


class DeletedOutboundLimit(Shape):
    id: Id
