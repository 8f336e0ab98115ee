"""Forms: their fields, the body they stand for, and how they come back (ADR 0086)."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import TypeVar

from pydantic import BaseModel, ConfigDict
from pydantic import ValidationError as ShapeError
from pydantic.alias_generators import to_camel
from pydantic_core import to_json
from starlette.responses import Response

from api.kernel.routing import ApiRequest
from models.core.base import Input
from models.core.problems import place, refusal, sentence
from models.workspace.impact.deletions import InUseError
from runtime.errors import ConflictError, Detail, PlatformError, ValidationError

T = TypeVar("T")
S = TypeVar("S", bound=BaseModel)
F = TypeVar("F", bound=Callable[..., Awaitable[Response]])


class Form(BaseModel):
    """The fields of a form, which are texts; unknown ones are refused."""

    model_config = ConfigDict(
        alias_generator=to_camel, validate_by_name=False, extra="forbid", defer_build=True
    )


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


def texts_of(body: BaseModel | None) -> dict[str, str]:
    """The texts of the fields that a form was sent with."""
    if isinstance(body, Fields):
        return body.texts
    sent = {} if body is None else body.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return {name: text for name, text in sent.items() if isinstance(text, str)}


def read_as(shape: type[S], values: object) -> S:
    """The body that a form stands for, by the shape of the operation. Raises ValidationError."""
    try:
        return shape.model_validate_json(to_json(values))
    except ShapeError as error:
        problems = error.errors(include_url=False, include_input=False)
        details = [Detail(place(one, values), sentence(one, shape)) for one in problems]
        raise refusal(details) from None


def given(values: Mapping[str, object]) -> dict[str, object]:
    """The values that a form has; what is None is left out of the body."""
    return {name: one for name, one in values.items() if one is not None}


async def attempt(request: ApiRequest, step: Callable[[], Awaitable[T]]) -> T | PlatformError:
    """The outcome of a form, or why it cannot be taken as it was filled in.

    What the step did until then is undone; all other refusals are a page of their own.
    """
    try:
        async with request.work.savepoint():
            return await step()
    except InUseError:
        # Its page asks whether to delete anyway.
        raise
    except (ValidationError, ConflictError) as error:
        return error


@dataclass(frozen=True, slots=True)
class Entered:
    """The form as it was filled in, and what is wrong with it."""

    texts: Mapping[str, str]
    refusal: PlatformError | None = None
    _faults_shown: list[str] = field(default_factory=list, repr=False, compare=False)
    """The wrong fields that the page has shown so far."""

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

    def takes_focus(self, name: str) -> bool:
        """True for the first wrong field of the page, in the order in which they are rendered."""
        if self.wrong(name):
            self._faults_shown.append(name)
        return self._faults_shown[:1] == [name]

    def marks(self, name: str, hint: str = "", at: str = "") -> dict[str, str]:
        """The attributes of HTML by which an input shows its fault and leads to its hint."""
        marks = {}
        if fault := self.wrong(at or name):
            marks["aria-invalid"] = "true"
        if self.takes_focus(at or name):
            marks["autofocus"] = ""
        if fault or hint:
            marks["aria-describedby"] = f"h-{name}"
        return marks

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
Show = Callable[[ApiRequest, Entered], Awaitable[Response]]


def redisplays(show: Show) -> Callable[[F], F]:
    """Show the page of a form again, as it was filled in, when its operation is refused.

    What the operation did until then is undone; all other refusals are a page of their own.
    """

    def redisplaying(endpoint: F) -> F:
        @wraps(endpoint)
        async def submitted(request: ApiRequest, **sent: BaseModel) -> Response:
            outcome = await attempt(request, lambda: endpoint(request, **sent))
            if isinstance(outcome, Response):
                return outcome
            return await show(request, Entered(texts_of(sent.get("body")), outcome))

        return submitted  # type: ignore[return-value]

    return redisplaying
