"""Forms: their fields, the body they stand for, and how they come back (ADR 0086)."""

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pydantic import BaseModel, ConfigDict
from pydantic import ValidationError as ShapeError

from api.kernel.routing import ApiRequest
from models.core.base import Input
from models.core.problems import place, refusal, sentence
from runtime.errors import ConflictError, Detail, PlatformError, ValidationError

T = TypeVar("T")
S = TypeVar("S", bound=BaseModel)


class Fields(Input):
    """The fields of a form by their names, each of which is a text."""

    model_config = ConfigDict(extra="allow")

    @property
    def texts(self) -> dict[str, str]:
        """The fields that were filled in."""
        return {name: str(value) for name, value in (self.model_extra or {}).items()}

    def checked(self, prefix: str) -> list[str]:
        """The names of the ticked boxes of a group, without the name of the group."""
        start = f"{prefix}."
        return [name.removeprefix(start) for name in self.texts if name.startswith(start)]


def read_as(shape: type[S], values: object) -> S:
    """The body that a form stands for, by the shape of the operation. Raises ValidationError."""
    try:
        return shape.model_validate_json(json.dumps(values))
    except ShapeError as error:
        problems = error.errors(include_url=False, include_input=False)
        details = [Detail(place(one, values), sentence(one, shape)) for one in problems]
        raise refusal(details) from None


async def attempt(request: ApiRequest, step: Callable[[], Awaitable[T]]) -> T | PlatformError:
    """The outcome of a form, or why it cannot be taken as it was filled in.

    What the step did until then is undone; all other refusals are a page of their own.
    """
    try:
        async with request.work.savepoint():
            return await step()
    except (ValidationError, ConflictError) as error:
        return error


@dataclass(frozen=True, slots=True)
class Entered:
    """The form as it was filled in, and what is wrong with it."""

    texts: dict[str, str]
    refusal: PlatformError | None = None

    def text(self, name: str, default: object = "") -> str:
        """A field as it was filled in; before that as it is stored."""
        if self.refusal is not None:
            return self.texts.get(name, "")
        return self.texts.get(name, "" if default is None else str(default))

    def ticked(self, name: str, default: bool = False) -> bool:
        return name in self.texts if self.refusal is not None else default

    def wrong(self, name: str) -> str:
        """The fault of one field."""
        return " ".join(one.message for one in self._details if one.path == name)

    def general(self, *fields: str) -> str:
        """The fault that no field of the form tells."""
        if self.refusal is None:
            return ""
        others = [one for one in self._details if one.path not in fields]
        if not self._details:
            return self.refusal.message
        return " ".join(f"{one.path}: {one.message}" if one.path else one.message for one in others)

    @property
    def _details(self) -> Sequence[Detail]:
        return self.refusal.details if isinstance(self.refusal, ValidationError) else ()


BLANK = Entered({})
