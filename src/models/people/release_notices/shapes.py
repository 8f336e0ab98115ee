"""Release notices on the wire (interface, Release-notice state; decisions C18)."""

from typing import Annotated

from pydantic import Field

from models.core.base import EXAMPLE_ID, Id, Input, Label, Moment, Nullable, Shape, example
from models.people.release_notices.rules import ReleaseChannel

MAX_BODY = 20_000

Channel = Annotated[ReleaseChannel, Field(strict=False)]
WebAddress = Annotated[str, Field(max_length=2_000, pattern=r"^https?://[^\s/?#]+\S*$")]


class PublishRelease(Input):
    """Body of publish a release notice: markdown for all users of a channel."""

    model_config = example(
        {"channel": "web", "title": "Timers", "body": "Every record can have a **timer** now."}
    )

    channel: Channel
    title: Label
    body: Annotated[str, Field(max_length=MAX_BODY)]
    url: WebAddress | None = None


class AcknowledgeReleases(Input):
    """Body of acknowledge: the newest release notice that the caller has seen on a channel."""

    model_config = example({"channel": "web", "releaseId": EXAMPLE_ID})

    channel: Channel
    release_id: Annotated[str, Field(min_length=1, max_length=200)]


class ReleaseState(Shape):
    """The caller's place in a channel; nothing is read yet without `lastSeenReleaseId`."""

    channel: ReleaseChannel
    last_seen_release_id: Id | None
    account_created_at: Moment


class Release(Shape):
    """A release on a channel; `body` is markdown."""

    id: Id
    channel: ReleaseChannel
    title: str
    body: str
    url: str | None
    published_at: Moment


class WhatsNew(ReleaseState):
    """The caller's place in a channel, and what was published since, newest first."""

    releases: list[Release]


class ReleaseList(Shape):
    releases: list[Release]
    cursor: Nullable[str]
