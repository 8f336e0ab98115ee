"""Reading a part of a body whose shape depends on another part, such as the config of a kind."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

import pydantic
from pydantic import BaseModel
from pydantic_core import to_json

from models.core.problems import located, refusal
from runtime.errors import Detail, ValidationError

M = TypeVar("M", bound=BaseModel)


def read_part(model: type[M], value: object, path: str) -> M:
    """The JSON value at `path` as this model. Raises `ValidationError` with places below it."""
    try:
        return model.model_validate_json(to_json(value))
    except pydantic.ValidationError as error:
        raise refusal(list(located(error, path, model))) from None


@contextmanager
def within(path: str) -> Iterator[None]:
    """Lets a command that read a part of a body name places as the whole body has them."""
    try:
        yield
    except ValidationError as error:
        details = [
            Detail(f"{path}.{detail.path}" if detail.path else path, detail.message)
            for detail in error.details
        ]
        raise (refusal(details) if details else error) from None
