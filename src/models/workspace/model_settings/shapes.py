"""Model settings on the wire; the key of the endpoint is never shown (decisions C16)."""

from typing import Annotated

from pydantic import Field

from models.core.base import Id, Input, Moment, Shape, example
from models.core.http_inputs import CallableUrl

REDACTED = "********"
"""Stands for a key that is stored. Sent back, it keeps the key."""

DEFAULT_SECONDS, MAX_SECONDS = 60, 300

HeaderSafe = Annotated[str, Field(min_length=1, max_length=4_000, pattern=r"^[\x21-\x7e]+$")]


class PutModelSettings(Input):
    """Body of put model settings: the whole of them.

    `baseUrl` is what comes before `/chat/completions`. Without `apiKey`, or with the eight stars
    that an answer shows, a stored key stays, as long as `baseUrl` has the same origin; null
    removes it. `enabled: false` has drafts written by rules.
    """

    model_config = example(
        {"baseUrl": "https://llm.example.com/v1", "model": "some-model", "apiKey": "sk-123"}
    )

    base_url: CallableUrl
    model: Annotated[str, Field(min_length=1, max_length=200)]
    api_key: HeaderSafe | None = None
    enabled: bool = True
    timeout_seconds: Annotated[int, Field(ge=5, le=MAX_SECONDS)] = DEFAULT_SECONDS


class ModelSettingsBody(Shape):
    """The model settings; one that is not `configured` has nothing else to show.

    `apiKey` is there when a key is stored, and always the same stars.
    """

    configured: bool
    enabled: bool
    base_url: str | None = None
    model: str | None = None
    api_key: str | None = None
    timeout_seconds: int | None = None
    updated_by_user_id: Id | None = None
    updated_at: Moment | None = None
