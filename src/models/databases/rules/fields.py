"""A field as the rules see it: what types the values of one key in every record."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from models.base import Id
from models.databases.rules.kinds import SYSTEM_KINDS, TITLE_KEY, FieldKind


@dataclass(frozen=True, kw_only=True)
class Option:
    """One choice of a select, multi_select or status field; records store its key."""

    id: str
    key: str
    name: str
    color: str
    order: float

    def wire(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "key": self.key,
            "name": self.name,
            "color": self.color,
            "order": self.order,
        }


@dataclass(frozen=True, kw_only=True)
class FieldSpec:
    """One field; `default` is the text form the interface shows."""

    id: Id
    key: str
    label: str
    kind: FieldKind
    required: bool = False
    default: str | None = None
    options: tuple[Option, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    position: float = 0

    @property
    def system(self) -> bool:
        return self.kind in SYSTEM_KINDS

    @property
    def title(self) -> bool:
        return self.key == TITLE_KEY

    @cached_property
    def option_keys(self) -> dict[str, int]:
        """Option key → its place in the order people see."""
        ordered = sorted(self.options, key=lambda option: (option.order, option.key))
        return {option.key: place for place, option in enumerate(ordered)}

    @property
    def timezone(self) -> str:
        """The IANA zone in which this field's days begin."""
        zone = self.settings.get("timezone")
        return zone if isinstance(zone, str) else "UTC"


FieldSpecs = dict[str, FieldSpec]
"""Field key → field, in the order people see."""


@dataclass(frozen=True, slots=True)
class Schema:
    """What types the records of one database."""

    workspace_id: Id
    database_id: Id
    fields: FieldSpecs
