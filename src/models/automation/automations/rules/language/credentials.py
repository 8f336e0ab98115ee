"""Credentials in configs with bindings: one that only names where a value is, holds none. Pure."""

from collections.abc import Iterator

from models.automation.automations.rules.language.bindings import BindingType, is_binding
from models.core.credentials import Place, as_it_is

_WRITTEN_OUT = frozenset({BindingType.LITERAL, BindingType.TEMPLATE, BindingType.EXPRESSION})
"""Bindings whose text may hold the credential itself."""


def written(value: object) -> Iterator[tuple[Place, object]]:
    """The parts that are written out in a value that may be a binding."""
    if not is_binding(value):
        yield from as_it_is(value)
    elif value["type"] in _WRITTEN_OUT and value["value"] is not None:
        yield ("value",), value["value"]
