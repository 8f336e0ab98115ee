"""Demands of pages and shapes of forms."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from pydantic import BaseModel, ConfigDict
from pydantic import ValidationError as ShapeError
from pydantic.alias_generators import to_camel
from starlette.responses import Response

from api.console.rendering import is_htmx, see_other, toast
from api.kernel.access import Access
from api.kernel.request import ApiRequest
from models.core.base import Input, JsonObject
from models.core.problems import place, refusal, sentence
from runtime.errors import Detail, ValidationError
from runtime.strict_json import StrictJsonError, parse

S = TypeVar("S", bound=Input)


class Form(BaseModel):
    """The fields of a form, which are texts; unknown ones are refused."""

    model_config = ConfigDict(
        alias_generator=to_camel, validate_by_name=False, extra="forbid", defer_build=True
    )


def paged(access: Access) -> Access:
    """The demands of an operation, for the page that does the same in a session."""
    return replace(access, credential="browser", page=True, cookie=False)


def body_of(shape: type[S], fields: Mapping[str, object]) -> S:
    """The body of the operation that a form stands for. Raises ValidationError."""
    try:
        return shape.model_validate({name: one for name, one in fields.items() if one is not None})
    except ShapeError as error:
        raise refusal(
            [Detail(place(one, fields), sentence(one)) for one in error.errors()]
        ) from None


def number_of(text: str) -> int | str | None:
    """The number that a field has; a text that is none is refused by the shape."""
    return int(text) if text.isdecimal() and len(text) < 10 else text or None


def read_json(name: str, text: str) -> object:
    """The JSON that a person wrote into a field. Raises ValidationError."""
    try:
        return parse(text.encode())
    except StrictJsonError as error:
        message = error.message.replace("The body", "The text")
        raise ValidationError.at(name, message) from None


def read_object(name: str, text: str) -> JsonObject:
    """The JSON object that a person wrote into a field. Raises ValidationError."""
    value = read_json(name, text)
    if not isinstance(value, dict):
        raise ValidationError.at(name, 'must be a JSON object, such as {"name": "Ada"}')
    return value


def done(request: ApiRequest, message: str, path: str) -> Response:
    """The answer of a form that was taken: a message in the page, or the page as it is now."""
    return toast(message, "success") if is_htmx(request) else see_other(path)
