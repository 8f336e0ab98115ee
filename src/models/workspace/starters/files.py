"""The data that is shipped with starters: templates, and the words that drafts are made of."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from models.core.base import JsonObject
from models.workspace.changes.shapes import Operation
from runtime.errors import NotFoundError
from runtime.package_data import read_yaml

_PACKAGE = "models.workspace.starters"


@dataclass(frozen=True, slots=True)
class Template:
    """One shipped starter: what it is, and the operations that build it."""

    key: str
    label: str
    headline: str
    description: str
    icon: str
    category: str
    operations: tuple[Operation, ...]


@cache
def templates() -> Mapping[str, Template]:
    """Every template by its key, in the order they are shown."""
    order: list[str] = read_yaml(_PACKAGE, "order.yaml")
    return {key: _template(key) for key in order}


def find_template(key: str) -> Template:
    """The template of a key. Raises `NotFoundError`."""
    found = templates().get(key)
    if found is None:
        raise NotFoundError("starter template")
    return found


def _template(key: str) -> Template:
    raw: JsonObject = read_yaml(_PACKAGE, f"templates/{key}.yaml")
    operations = tuple(Operation.model_validate(one) for one in raw.pop("operations"))
    return Template(operations=operations, **raw)


@cache
def vocabulary() -> JsonObject:
    """The words of drafts: topics, trades and phrases, in every language."""
    raw: JsonObject = read_yaml(_PACKAGE, "vocabulary.yaml")
    return raw
