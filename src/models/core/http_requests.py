"""Parts of requests in the configs of calls, and the credentials they carry. Pure.

A credential is a value of `auth`, of a header or query parameter with such a name, and what a URL
has of them. Shown hidden, a config can be given back: what is still hidden is what is stored.
"""

import copy
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar
from urllib.parse import unquote_plus

from pydantic import BeforeValidator, Field

from models.core.problems import refused_for
from runtime.outbound_policy import url_problem

CallableUrl = Annotated[
    str,
    Field(min_length=1, max_length=8_192, pattern=r"^https?://[^\s]+$"),
    refused_for(url_problem),
]
"""A URL that can be called, as far as it tells.

One that a client saves names no private address; what a name stands for is judged when it is
called.
"""


def as_texts(value: object) -> object:
    """Numbers and truth values as text, nulls left out: what a header or a query can carry.

    What is no object stays as it is, for the type to refuse.
    """
    if not isinstance(value, dict):
        return value
    return {key: _as_text(item) for key, item in value.items() if item is not None}


def _as_text(value: object) -> object:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    return [_as_text(item) for item in value] if isinstance(value, list) else value


HeaderName = Annotated[str, Field(pattern=r"^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$")]
HeaderValue = Annotated[str, Field(max_length=8_192, pattern=r"^[^\x00\r\n]*$")]
_Scalar = str | float | bool
_HeaderInputs = Annotated[
    dict[HeaderName, HeaderValue | float | bool | None], Field(max_length=100)
]
_ParameterInputs = Annotated[dict[str, _Scalar | list[_Scalar] | None], Field(max_length=200)]
AsTexts = BeforeValidator(as_texts, json_schema_input_type=_HeaderInputs)
Headers = Annotated[dict[HeaderName, HeaderValue], Field(max_length=100), AsTexts]
QueryParameters = Annotated[
    dict[str, str | list[str]],
    Field(max_length=200),
    BeforeValidator(as_texts, json_schema_input_type=_ParameterInputs),
]

HIDDEN = "[redacted]"
GIVE_AGAIN = "The value is hidden. Enter it again, or reference a secret."
Place = tuple[str | int, ...]

Value = TypeVar("Value")

Literals = Callable[[object], Iterable[tuple[Place, object]]]
"""Gives the parts that are written out in a value, and their places in it: the value itself, or
less of one that only names it."""

_WORD = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z0-9]+")
_SECRET = frozenset(
    {
        *("authorization", "cookie", "credential", "credentials", "jwt", "passwd", "password"),
        *("pwd", "secret", "session", "sessionid", "sig", "signature", "token"),
        *("accesskey", "accesstoken", "apikey", "authkey", "authtoken", "secretkey"),
    }
)
_KEY_TO = frozenset(
    {
        *("access", "account", "admin", "api", "app", "application", "auth", "client", "function"),
        *("functions", "license", "master", "private", "secret", "server", "service"),
        *("subscription", "user"),
    }
)
"""Words for the things that a key is to: an idempotency key is to none of these."""
_PAGING = frozenset(["continuation", "next", "page", "previous", "sync"])
"""Words of tokens that say where a listing continues."""
_AUTH_VALUES = frozenset({"token", "password", "value"})

_USER = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://)[^/?#@\s'\"]+@")
_PARAMETER = re.compile(r"([?&])([^=&#\s]+)=(?!\{\{)([^&#]+)")


@dataclass(frozen=True, slots=True)
class Credential:
    """A value that holds a credential, where it stands, and what is shown in its place."""

    place: Place
    value: object
    mask: object = HIDDEN


def is_credential(name: str) -> bool:
    """True when a header or parameter of this name holds a credential."""
    words = [word.lower() for word in _WORD.findall(name)]
    before = dict(zip(words[1:], words, strict=False))
    if before.get("key") in _KEY_TO or words in (["key"], ["x", "key"]) or words[-1:] == ["auth"]:
        return True
    return not _SECRET.isdisjoint(words) and before.get("token") not in _PAGING


def as_it_is(value: object) -> Iterator[tuple[Place, object]]:
    """A value that says itself."""
    if value is not None:
        yield (), value


def credentials_in(value: object, literals: Literals = as_it_is) -> list[Credential]:
    """The credentials anywhere in a JSON value."""
    return list(_anywhere(value, (), literals))


def hidden(value: Value, literals: Literals = as_it_is) -> Value:
    """The value as it is shown, with its credentials hidden."""
    credentials = credentials_in(value, literals)
    return with_values(value, [(credential.place, credential.mask) for credential in credentials])


def restored(value: Value, previous: object, literals: Literals = as_it_is) -> Value:
    """The value, in which what is hidden is what the previous one has at the same place.

    Elements of lists that have an `id` are the same when it is. What the previous one has nowhere
    stays hidden.
    """
    values = {
        (_lasting(previous, credential.place), credential.mask): credential.value
        for credential in credentials_in(previous, literals)
        if credential.value != credential.mask
    }
    restorations = [
        (credential.place, values[key])
        for credential in credentials_in(value, literals)
        if (key := (_lasting(value, credential.place), credential.value)) in values
    ]
    return with_values(value, restorations)


def left_hidden(value: object, literals: Literals = as_it_is) -> list[Place]:
    """The places of credentials that are hidden, and so are none."""
    credentials = credentials_in(value, literals)
    return [credential.place for credential in credentials if credential.value == credential.mask]


def with_values(value: Value, values: Sequence[tuple[Place, object]]) -> Value:
    """The value with these values at their places; a copy, if there are any."""
    if not values:
        return value
    copied = copy.deepcopy(value)
    for (*path, last), replacement in values:
        part: Any = copied
        for step in path:
            part = part[step]
        part[last] = replacement
    return copied


def hidden_url(url: str) -> str:
    """The URL without its user and the values of parameters that are credentials."""
    url = _USER.sub(rf"\1{HIDDEN}@", url)
    return _PARAMETER.sub(_hidden_parameter, url)


def restored_url(url: str, previous: str | None) -> str | None:
    """The URL; the previous one where it is given as that is shown.

    None for another with something hidden, whose meaning is unknown.
    """
    if HIDDEN not in url:
        return url
    return previous if previous is not None and url == hidden_url(previous) else None


def _hidden_parameter(match: re.Match[str]) -> str:
    mark, name, _ = match.groups()
    return f"{mark}{name}={HIDDEN}" if is_credential(unquote_plus(name)) else match[0]


def _anywhere(value: object, at: Place, literals: Literals) -> Iterator[Credential]:
    parts: Iterable[tuple[str | int, Any]] = ()
    if isinstance(value, dict):
        parts = value.items()
    elif isinstance(value, list):
        parts = enumerate(value)
    for key, part in parts:
        here = (*at, key)
        if key in _NAMED:
            yield from _named(part, here, _NAMED[key], literals)
        elif key == "url":
            yield from _in_url(part, here, literals)
        else:
            yield from _anywhere(part, here, literals)


_NAMED: Mapping[str | int, Callable[[str], bool]] = {
    "auth": _AUTH_VALUES.__contains__,
    "headers": is_credential,
    "query": is_credential,
}


def _named(
    named: object, at: Place, holds: Callable[[str], bool], literals: Literals
) -> Iterator[Credential]:
    """The credentials among named values."""
    for inside, values in literals(named):
        if not isinstance(values, dict):
            # An expression that gives all of them, with who knows what in it.
            if at[-1] != "query" and inside:
                yield Credential((*at, *inside), values)
            continue
        for name, value in values.items():
            if holds(name):
                for further, part in literals(value):
                    yield Credential((*at, *inside, name, *further), part)


def _in_url(value: object, at: Place, literals: Literals) -> Iterator[Credential]:
    for inside, text in literals(value):
        if isinstance(text, str) and ((mask := hidden_url(text)) != text or HIDDEN in text):
            yield Credential((*at, *inside), text, mask)


def _lasting(value: object, place: Place) -> Place:
    """A place by the ids of elements, which stay when others come before them."""
    steps: list[str | int] = []
    part: Any = value
    for step in place:
        part = part[step]
        has_id = isinstance(step, int) and isinstance(part, dict) and "id" in part
        steps.append(f"id {part['id']}" if has_id else step)
    return tuple(steps)
