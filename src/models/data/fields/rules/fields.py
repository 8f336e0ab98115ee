"""A field as the rules see it: the type of the values under one key in every record."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

from models.core.base import Id
from models.data.fields.rules.kinds import (
    COMPUTED_KINDS,
    DERIVED_KINDS,
    STORED_KINDS,
    SYSTEM_KINDS,
    TITLE_KEY,
    FieldKind,
)

FieldValue: TypeAlias = (
    str | int | float | Sequence["FieldValue"] | Mapping[str, "FieldValue"] | None
)
"""The value of a field as records keep it: JSON, which nobody changes in place."""


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
    """One field; `default` is the text form the interface shows.

    `index_id` names its entries in the side index; once `index_ready`, the index is complete.
    """

    id: Id
    key: str
    label: str
    kind: FieldKind
    required: bool = False
    default: str | None = None
    options: tuple[Option, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    position: float = 0
    index_id: Id | None = None
    index_ready: bool = False

    @property
    def system(self) -> bool:
        """The platform writes it: it stands in `system` on the wire."""
        return self.kind in SYSTEM_KINDS

    @property
    def computed(self) -> bool:
        """It follows from other values: it stands in `computed`."""
        return self.kind in COMPUTED_KINDS

    @property
    def relation(self) -> bool:
        """It points at records: they stand in `relations`."""
        return self.kind is FieldKind.RELATION

    @property
    def derived(self) -> bool:
        """It is computed from the fields its settings name."""
        return self.kind in DERIVED_KINDS

    @property
    def target_id(self) -> Id:
        """The database a relation points into."""
        return Id(self.settings["databaseId"])

    @property
    def inverse_id(self) -> Id:
        """The field that shows a relation from the other side; itself when it is symmetric."""
        return Id(self.settings["inverseFieldId"])

    @property
    def stored(self) -> bool:
        """Clients write it into `data`, the title included, which has its own column."""
        return self.kind in STORED_KINDS

    @property
    def title(self) -> bool:
        return self.key == TITLE_KEY

    @cached_property
    def option_keys(self) -> dict[str, int]:
        """Option key → its place in the order people see."""
        ordered = sorted(self.options, key=lambda option: (option.order, option.key))
        return {option.key: place for place, option in enumerate(ordered)}

    @cached_property
    def option_names(self) -> dict[str, str]:
        """Option key → its name."""
        return {option.key: option.name for option in self.options}

    @cached_property
    def options_named(self) -> dict[str, str]:
        """Name of an option, however it is capitalized → its key; none that several have."""
        several = self.shared_names
        named = ((option.name.strip().casefold(), option.key) for option in self.options)
        return {name: key for name, key in named if name not in several}

    @cached_property
    def shared_names(self) -> frozenset[str]:
        """The names that several options have, which mean none of them."""
        names = Counter(option.name.strip().casefold() for option in self.options)
        return frozenset(name for name, count in names.items() if count > 1)

    def option_key(self, choice: str) -> str | None:
        """The key of the option that a key, or else a name, means."""
        if choice in self.option_keys:
            return choice
        return self.options_named.get(choice.strip().casefold())

    @property
    def timezone(self) -> str:
        """The IANA zone in which this field's days begin."""
        zone = self.settings.get("timezone")
        return zone if isinstance(zone, str) else "UTC"


FieldSpecs = dict[str, FieldSpec]
"""Field key → field, in the order people see."""


@dataclass(frozen=True, slots=True)
class Schema:
    """The fields of one database, which type its records."""

    workspace_id: Id
    database_id: Id
    fields: FieldSpecs
