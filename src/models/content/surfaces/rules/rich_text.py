"""Text with marks, links and mentions: a list of spans, or plain words for one."""

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from models.content.surfaces.rules.urls import Link
from models.core.base import Input, InputId

Mark = Literal["bold", "italic", "underline", "strikethrough", "code"]

Color = Annotated[str, Field(pattern=r"^([a-z][a-z_]{0,31}|#[0-9a-fA-F]{6})$")]
"""The name of a color, which the client's theme gives a meaning, or `#rrggbb`."""

Day = Annotated[str, Field(pattern=r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$")]


class Mention(Input):
    """The thing a span stands for: a member, an item, a record or a day; exactly one of them."""

    user_id: InputId | None = None
    item_id: InputId | None = None
    record_id: InputId | None = None
    date: Day | None = None

    @model_validator(mode="after")
    def _one_thing(self) -> Self:
        named = (self.user_id, self.item_id, self.record_id, self.date)
        if sum(value is not None for value in named) != 1:
            raise ValueError("must name one of userId, itemId, recordId and date")
        return self


class Span(Input):
    """A piece of text that looks and links alike from end to end."""

    text: Annotated[str, Field(max_length=10_000)]
    marks: Annotated[list[Mark], Field(max_length=5)] | None = None
    color: Color | None = None
    link: Link | None = None
    mention: Mention | None = None


def _spans(value: object) -> object:
    """Plain text is one span without marks."""
    return [{"text": value}] if isinstance(value, str) else value


RichText = Annotated[list[Span], BeforeValidator(_spans), Field(max_length=500)]
