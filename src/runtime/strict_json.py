"""Reading JSON that means one thing only (RFC 8259, and I-JSON, RFC 7493).

Refused: anything but UTF-8, NaN and infinities, numbers too large for a double, integers beyond
2^53 unless the caller takes them, duplicate keys, nesting deeper than 64, NUL characters and lone
surrogates. The fast path is the C scanner with hooks; only a refused text is read again to say
where the fault lies.
"""

import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Any, NoReturn, TypeVar

from pydantic import JsonValue

MAX_DEPTH = 64
MAX_INTEGER = 2**53
"""The largest magnitude every JSON reader keeps exact (RFC 7493, 2.2)."""
MAX_FINITE_INTEGER = 2**1023
"""A magnitude that stays finite where a JSON reader knows doubles only."""

_SUSPECT_ESCAPE = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")
_FORBIDDEN = re.compile("[\x00\ud800-\udfff]")


Text = TypeVar("Text")
Value = TypeVar("Value")


class StrictJsonError(ValueError):
    """The text is refused; `path` is where (`data.items.0`), empty for the whole."""

    retryable = False

    def __init__(self, path: str, message: str) -> None:
        super().__init__(message)
        self.path = path
        self.message = message


class _FlawError(Exception):
    """A refused number or object; on the second reading, the mark left in its place."""

    retryable = False

    def __init__(self, message: str, key: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.key = key


def parse(body: bytes, *, largest: int = MAX_INTEGER) -> JsonValue:
    """The value of a JSON text, integers up to this magnitude; raises StrictJsonError."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        raise StrictJsonError("", "The body must be UTF-8 text.") from None
    if text.startswith("\ufeff"):
        # RFC 8259, 8.1: a client adds none.
        raise StrictJsonError("", "The body begins with a byte order mark. Send it without.")
    try:
        value: JsonValue = _decoders(largest).raising.decode(text)
    except json.JSONDecodeError as error:
        raise _not_json(error) from None
    except RecursionError:
        raise _too_deep("") from None
    except _FlawError:
        raise _located(text, largest) from None
    deep = text.count("{") + text.count("[") > MAX_DEPTH and _is_too_deep(value)
    if deep or _SUSPECT_ESCAPE.search(text):
        _inspect(value)
    return value


def _constant(name: str) -> NoReturn:
    raise _FlawError(f"{name} is not a JSON number.")


def _shown(digits: str) -> str:
    return digits if len(digits) <= 20 else f"{digits[:20]}…"


def read_float(text: str) -> int | float:
    """The number of a text with a fraction or an exponent: 1e400 is infinite.

    A whole number that a double does not hold is an integer of all its digits.
    """
    value = float(text)
    if not MAX_INTEGER <= abs(value) < math.inf:
        return value
    exact = Decimal(text)
    is_held = exact == Decimal(repr(value)) or exact != exact.to_integral_value()
    return value if is_held else int(exact)


def _floats(largest: int) -> Callable[[str], int | float]:
    def number(text: str) -> int | float:
        value = read_float(text)
        if isinstance(value, float) and math.isinf(value):
            raise _FlawError(f"The number {_shown(text)} is too large.")
        return value if isinstance(value, float) else integer(str(value))

    integer = _integers(largest)
    return number


def _integers(largest: int) -> Callable[[str], int]:
    longest = len(str(-largest))

    def integer(text: str) -> int:
        if len(text) < 16 or (len(text) <= longest and abs(int(text)) <= largest):
            return int(text)
        beyond = f"±2^{largest.bit_length() - 1}"
        raise _FlawError(f"The integer {_shown(text)} is beyond {beyond}. Send it as a string.")

    return integer


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) == len(pairs):
        return value
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            raise _FlawError(f"The key {key[:50]!r} occurs twice.", key)
        seen.add(key)
    return value


def _marking(hook: Callable[[Text], Value]) -> Callable[[Text], Value | _FlawError]:
    def marked(value: Text) -> Value | _FlawError:
        try:
            return hook(value)
        except _FlawError as flaw:
            return flaw

    return marked


@dataclass(frozen=True, slots=True)
class _Decoders:
    """One that stops at the first flaw, and one that leaves a mark in the place of each."""

    raising: json.JSONDecoder
    marking: json.JSONDecoder


@cache
def _decoders(largest: int) -> _Decoders:
    integer, floating = _integers(largest), _floats(largest)
    return _Decoders(
        json.JSONDecoder(
            object_pairs_hook=_object,
            parse_float=floating,
            parse_int=integer,
            parse_constant=_constant,
        ),
        json.JSONDecoder(
            object_pairs_hook=_marking(_object),
            parse_float=_marking(floating),
            parse_int=_marking(integer),
            parse_constant=_marking(_constant),
        ),
    )


def _not_json(error: json.JSONDecodeError) -> StrictJsonError:
    # Some of the library's messages end with the word before the place.
    what = error.msg.removesuffix(" at")
    place = f"line {error.lineno}, column {error.colno}"
    return StrictJsonError("", f"The body is not valid JSON: {what} at {place}.")


def _located(text: str, largest: int) -> StrictJsonError:
    """The error of the first mark found by reading the text again."""
    try:
        marked = _decoders(largest).marking.decode(text)
    except json.JSONDecodeError as error:
        return _not_json(error)
    except RecursionError:
        return _too_deep("")
    for path, value in _nodes(marked):
        if isinstance(value, _FlawError):
            where = path if value.key is None else (*path, value.key)
            return StrictJsonError(_dotted(where), value.message)
    raise AssertionError("A text refused by the raising hooks leaves a mark.")


def _is_too_deep(root: object) -> bool:
    """True when containers are left after taking away one level after the other."""
    level = [root] if isinstance(root, dict | list) else []
    for _ in range(MAX_DEPTH):
        level = [
            child
            for node in level
            for child in (node.values() if type(node) is dict else node)
            if type(child) is dict or type(child) is list
        ]
        if not level:
            return False
    return True


def _inspect(value: object) -> None:
    for path, node in _nodes(value):
        if isinstance(node, str):
            _check_text(path, node)
        elif isinstance(node, dict):
            for key in node:
                _check_text((*path, key), key)
        if isinstance(node, dict | list) and len(path) >= MAX_DEPTH:
            raise _too_deep(_dotted(path[:8]))


def _check_text(path: tuple[str | int, ...], text: str) -> None:
    if _FORBIDDEN.search(text):
        raise StrictJsonError(
            _dotted(path), "A text must not contain NUL characters or lone surrogates."
        )


def _nodes(root: object) -> Iterator[tuple[tuple[str | int, ...], object]]:
    """Every value with its path, without recursion: the text chose the depth."""
    stack: list[tuple[tuple[str | int, ...], object]] = [((), root)]
    while stack:
        path, node = stack.pop()
        yield path, node
        if isinstance(node, dict):
            stack.extend([((*path, key), child) for key, child in node.items()][::-1])
        elif isinstance(node, list):
            stack.extend([((*path, index), child) for index, child in enumerate(node)][::-1])


def _dotted(path: tuple[str | int, ...]) -> str:
    """The path as the client reads it, safe to encode with any keys."""
    text = ".".join(str(part) for part in path)[:200]
    return _FORBIDDEN.sub("\ufffd", text)


def _too_deep(path: str) -> StrictJsonError:
    return StrictJsonError(path, f"The body is nested deeper than {MAX_DEPTH} levels.")
