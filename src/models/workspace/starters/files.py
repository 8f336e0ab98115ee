"""The data that is shipped with starters: templates, and the words that drafts are made of."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from models.core.base import JsonObject
from models.workspace.changes.shapes import Operation
from runtime.errors import NotFoundError

_DATA = files("models.workspace.starters") / "data"


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
    order: list[str] = _read("order.yaml")
    return {key: _template(key) for key in order}


def find_template(key: str) -> Template:
    """The template of a key. Raises `NotFoundError`."""
    found = templates().get(key)
    if found is None:
        raise NotFoundError("starter template")
    return found


def _template(key: str) -> Template:
    raw: JsonObject = _read(f"templates/{key}.yaml")
    operations = tuple(Operation.model_validate(one) for one in raw.pop("operations"))
    return Template(operations=operations, **raw)


@cache
def vocabulary() -> JsonObject:
    """The words of drafts: topics, trades and phrases, in every language."""
    raw: JsonObject = _read("vocabulary.yaml")
    return raw


def _read(name: str) -> Any:
    return _READER(_DATA.joinpath(name).read_text("utf-8")).get_single_data()


_READER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""Reads plain values alone; the one in C where there is one."""
