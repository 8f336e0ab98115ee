"""Credentials in inputs: they go in sealed, and are shown hidden. Pure.

A value of `auth` or of a credential header is one, unless it is a reference or a binding that only
names where the value is (ADR 0048). Only what calls other servers is looked through.
"""

import copy
from collections.abc import Iterator, Sequence
from typing import Any

from models.automation.automations.rules.language.bindings import BindingType, is_binding
from models.core.base import JsonObject
from models.core.http_inputs import SECRET_HEADERS
from models.workspace.changes.rules.kinds import OperationKind
from models.workspace.changes.rules.references import is_reference

HIDDEN = "[redacted]"
Place = tuple[str | int, ...]

_CALLING = frozenset(
    {
        OperationKind.CREATE_ITEM,
        OperationKind.CREATE_ACTION,
        OperationKind.CREATE_AUTOMATION,
        OperationKind.UPDATE_AUTOMATION,
    }
)
_WRITTEN_OUT = frozenset({BindingType.TEMPLATE, BindingType.EXPRESSION})
"""Bindings whose text may hold the credential itself."""
_AUTH_VALUES = frozenset({"token", "password", "value"})


def credentials_in(kind: OperationKind, given: JsonObject) -> list[tuple[Place, Any]]:
    """The credentials that stand in an input, and where."""
    return list(_anywhere(given, ())) if kind in _CALLING else []


def without(given: JsonObject, places: Sequence[Place]) -> JsonObject:
    """The input with these values hidden."""
    return with_values(given, [(place, HIDDEN) for place in places])


def with_values(given: JsonObject, values: Sequence[tuple[Place, Any]]) -> JsonObject:
    """The input with these values at their places."""
    if not values:
        return given
    changed = copy.deepcopy(given)
    for (*path, last), value in values:
        part: Any = changed
        for step in path:
            part = part[step]
        part[last] = value
    return changed


def _anywhere(value: Any, at: Place) -> Iterator[tuple[Place, Any]]:
    parts = value.items() if isinstance(value, dict) else enumerate(value)
    for key, part in parts:
        here = (*at, key)
        if key == "headers" and isinstance(part, dict):
            yield from _named(part, here, SECRET_HEADERS)
        elif key == "auth" and isinstance(part, dict):
            yield from _named(part, here, _AUTH_VALUES)
        elif isinstance(part, dict | list):
            yield from _anywhere(part, here)


def _named(given: Any, at: Place, names: frozenset[str]) -> Iterator[tuple[Place, Any]]:
    """The credentials among named values, which a binding may give as a whole."""
    if is_binding(given):
        if given["type"] == BindingType.LITERAL:
            yield from _named(given["value"], (*at, "value"), names)
        elif given["type"] in _WRITTEN_OUT:
            yield (*at, "value"), given["value"]
    elif isinstance(given, dict):
        for name, value in given.items():
            if name.lower() in names:
                yield from _value(value, (*at, name))


def _value(given: Any, at: Place) -> Iterator[tuple[Place, Any]]:
    if is_binding(given):
        if given["type"] == BindingType.LITERAL:
            yield from _value(given["value"], (*at, "value"))
        elif given["type"] in _WRITTEN_OUT:
            yield (*at, "value"), given["value"]
    elif given is not None and not is_reference(given):
        yield at, given
