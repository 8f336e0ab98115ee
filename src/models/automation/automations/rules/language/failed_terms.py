"""The part of a filter that did not hold, with the values that it read.

A filter that is a tree is followed from its root: of conditions that must all hold, to the first
that does not. An expression is taken apart at its outermost `&&`. What cannot be evaluated does not
hold.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from models.automation.automations.rules.language.paths import compile_path
from models.core.base import JsonObject
from models.core.expressions.rules.cel_text import free_names, paths, tokens
from models.core.expressions.rules.errors import BindingError
from runtime.redaction import without_named_secrets

Holds = Callable[[object], bool]
"""Says of a filter, or of a part of one, whether it holds. May raise BindingError."""

MAX_TEXT = 500
"""Characters of a term or a value that are kept."""
_MAX_VALUES = 8
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")


def failed_term(predicate: object, holds: Holds, variables: Mapping[str, Any]) -> JsonObject:
    """`{term, value}` of a filter that does not hold of the variables.

    The value of a single condition is the one it was compared with; of others, the values by the
    names that they read.
    """
    term = _failed(predicate, holds)
    return {"term": cut(term), "value": _value(term, variables)}


def cut(value: object) -> object:
    """A JSON value that is shortened to a text when it is long."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return value if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}…"


def _failed(part: object, holds: Holds) -> object:
    if isinstance(part, str):
        return next((one for one in conjuncts(part) if not _holds(one, holds)), part)
    if isinstance(part, dict) and isinstance(part.get("and"), list):
        first = next((one for one in part["and"] if not _holds(one, holds)), None)
        return part if first is None else _failed(first, holds)
    if isinstance(part, dict) and isinstance(part.get("or"), list) and len(part["or"]) == 1:
        return _failed(part["or"][0], holds)
    return part


def _holds(part: object, holds: Holds) -> bool:
    try:
        return holds(part)
    except BindingError:
        return False


def conjuncts(text: str) -> list[str]:
    """The parts of an expression that must all be true; one part when it has no outermost `&&`."""
    depth, cuts, marks = 0, [0], list(tokens(text))
    for place, token in enumerate(marks):
        if token.kind != "mark":
            continue
        depth += (token.text in _OPENING) - (token.text in _CLOSING)
        follows = place + 1 < len(marks) and marks[place + 1].start == token.start + 1
        doubled = follows and marks[place + 1].text == token.text
        if depth == 0 and (token.text == "?" or (token.text == "|" and doubled)):
            return [text]
        if depth == 0 and token.text == "&" and doubled:
            cuts.append(token.start)
    ends = [*cuts[1:], len(text)]
    parts = [
        text[start:end].removeprefix("&&").strip() for start, end in zip(cuts, ends, strict=True)
    ]
    return [part for part in parts if part] or [text]


def _value(term: object, variables: Mapping[str, Any]) -> object:
    if isinstance(term, dict) and "field" in term:
        return cut(_at(str(term["field"]), variables))
    if isinstance(term, str):
        read = sorted(
            {
                (name, *path)
                for name in free_names(term) & variables.keys()
                for path in paths(term, name)
            }
        )
        places = [".".join(path) for path in read]
    else:
        places = list(dict.fromkeys(_fields(term)))
    return {place: cut(_at(place, variables)) for place in places[:_MAX_VALUES]}


def _fields(part: object) -> Iterator[str]:
    if isinstance(part, dict):
        if "field" in part:
            yield str(part["field"])
        for inner in part.values():
            yield from _fields(inner)
    elif isinstance(part, list):
        for inner in part:
            yield from _fields(inner)


def _at(place: str, variables: Mapping[str, Any]) -> object:
    """The value at a place; of one whose name says that it is a secret, only that it is there."""
    try:
        value = variables[place] if place in variables else compile_path(place).get(dict(variables))
    except BindingError:
        return None
    named = without_named_secrets({place: value})
    return named[place] if isinstance(named, dict) else named
