"""The shipped templates: plain data, shaped as the bodies that create their parts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from models.core.base import Id
from runtime.derived_ids import derived_id
from runtime.package_data import read_yaml


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """One shipped database; its fields, views and record templates are bodies of requests."""

    key: str
    label: str
    description: str
    icon: str
    category: str
    fields: Sequence[Mapping[str, Any]]
    views: Sequence[Mapping[str, Any]]
    record_templates: Sequence[Mapping[str, Any]] = ()

    @property
    def id(self) -> Id:
        """The id, the same in every installation."""
        return derived_id("database-template", self.key)


@cache
def templates() -> Sequence[Template]:
    """Every template, in the order they are shown."""
    return [
        Template(**one) for one in read_yaml("models.data.database_templates", "templates.yaml")
    ]


def find_template(name: str) -> Template | None:
    """The template of this key or id."""
    return next((one for one in templates() if name in {one.key, str(one.id)}), None)
