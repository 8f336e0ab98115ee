"""Field kinds, fields as the rules see them, and answers to keys that name no field. Pure."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any, TypeAlias

from models.core.base import Id
from models.core.problems import an, nearest_known

_SEPARATORS = re.compile(r"([,;\n])")
"""Signs between the names of several options in a text."""


class FieldKind(StrEnum):
    TEXT = "text"
    LONG_TEXT = "long_text"
    RICH_TEXT = "rich_text"
    NUMBER = "number"
    CURRENCY = "currency"
    PERCENT = "percent"
    RATING = "rating"
    DURATION = "duration"
    CHECKBOX = "checkbox"
    DATE = "date"
    DATETIME = "datetime"
    TIME = "time"
    SELECT = "select"
    MULTI_SELECT = "multi_select"
    STATUS = "status"
    PERSON = "person"
    EMAIL = "email"
    URL = "url"
    PHONE = "phone"
    FILE = "file"
    JSON = "json"
    LOCATION = "location"
    RELATION = "relation"
    ROLLUP = "rollup"
    LOOKUP = "lookup"
    FORMULA = "formula"
    BUTTON = "button"
    TIMER = "timer"
    AUTO_NUMBER = "auto_number"
    CREATED_AT = "created_at"
    UPDATED_AT = "updated_at"
    CREATED_BY = "created_by"
    UPDATED_BY = "updated_by"


TITLE_KEY = "title"
"""The key of the field that holds a record's title; every database has it."""

NUMERIC_KINDS = frozenset({FieldKind.NUMBER, FieldKind.CURRENCY, FieldKind.PERCENT})
OPTION_KINDS = frozenset({FieldKind.SELECT, FieldKind.MULTI_SELECT, FieldKind.STATUS})
DATE_KINDS = frozenset({FieldKind.DATE, FieldKind.DATETIME})

SYSTEM_KINDS = frozenset(
    {
        FieldKind.AUTO_NUMBER,
        FieldKind.CREATED_AT,
        FieldKind.UPDATED_AT,
        FieldKind.CREATED_BY,
        FieldKind.UPDATED_BY,
    }
)
"""Kinds whose value the platform writes; clients only read them."""

COMPUTED_KINDS = frozenset({FieldKind.ROLLUP, FieldKind.LOOKUP, FieldKind.FORMULA, FieldKind.TIMER})
"""Kinds whose value is computed from others; it is in the `computed` of a record."""

DERIVED_KINDS = frozenset({FieldKind.ROLLUP, FieldKind.LOOKUP, FieldKind.FORMULA})
"""Computed kinds whose settings name the fields they are derived from."""

STORED_KINDS = (
    frozenset(FieldKind)
    - SYSTEM_KINDS
    - COMPUTED_KINDS
    - {
        FieldKind.RELATION,
        FieldKind.BUTTON,
    }
)
"""Kinds whose value clients write into a record's `data`."""

FieldValue: TypeAlias = (
    str | int | float | Sequence["FieldValue"] | Mapping[str, "FieldValue"] | None
)
"""The value of a field as records keep it: JSON, which is never changed in place."""


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


@dataclass(slots=True)
class _Branch:
    """The name that ends here, if one does, and the branches of longer names by their next part."""

    name: str = ""
    branches: "dict[str, _Branch]" = field(default_factory=dict)


def _parts(text: str) -> list[str]:
    """The parts of a text between separators of names, and the separators."""
    return [part if part == "\n" else part.strip() for part in _SEPARATORS.split(text)]


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

    @cached_property
    def _names_by_parts(self) -> _Branch:
        """A tree of the names that have separators, by their parts in small letters."""
        tree = _Branch()
        for option in self.options:
            branch, parts = tree, _parts(option.name.casefold())
            for part in parts if len(parts) > 1 else ():
                branch = branch.branches.setdefault(part, _Branch())
            if branch is not tree:
                branch.name = option.name
        return tree

    def names_in(self, text: str) -> list[str]:
        """The names of options in a text, between commas, semicolons or line breaks.

        The name of an option of the field may have such signs itself; the longest one counts.
        """
        parts = _parts(text)
        tree = self._names_by_parts
        small = _parts(text.casefold()) if tree.branches else parts
        names, at = list[str](), 0
        while at < len(parts):
            name, end = parts[at], at + 1
            branch, place = tree, at
            while place < len(small) and (longer := branch.branches.get(small[place])) is not None:
                branch, place = longer, place + 1
                if branch.name:
                    name, end = branch.name, place
            names += [name] if name else []
            at = end + 1
        return names

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


Fields = Mapping[str, FieldSpec]
_MOST_TOLD = 20
_IS_NO_FIELD = "is not the key of a field of this database"
_IS_NO_RELATION = "is not the key of a relation field of this database"


def no_field(key: object, fields: Fields, of: str = "this database") -> str:
    """That a key is not the key of a field, and the keys that are; a label leads to its key."""
    return f"is not the key of a field of {of}; {_known(key, fields)}"


def no_relation(key: object, fields: Fields) -> str:
    """The same where only relation fields are meant."""
    spec = fields.get(key) if isinstance(key, str) else None
    if spec is not None and spec.stored:
        return f"is {an(spec.kind)} field: set it as data.{spec.key}"
    relations = {name: one for name, one in fields.items() if one.relation}
    return f"{_IS_NO_RELATION}; {_known(key, relations)}"


class FieldHints:
    """The same for an input that may name many keys: the first few are answered at length.

    To look for the nearest keys takes time, and a refusal shows only its first problems.
    """

    def __init__(self, fields: Fields) -> None:
        self._fields = fields
        self._told: dict[tuple[str, str], str] = {}

    def no_field(self, key: str) -> str:
        """The answer of `no_field`, or only its first part."""
        return self._said(no_field, key) or _IS_NO_FIELD

    def no_relation(self, key: str) -> str:
        """The answer of `no_relation`, or only its first part."""
        return self._said(no_relation, key) or _IS_NO_RELATION

    def _said(self, tell: Callable[[object, Fields], str], key: str) -> str | None:
        asked = tell.__name__, key
        if asked not in self._told and len(self._told) < _MOST_TOLD:
            self._told[asked] = tell(key, self._fields)
        return self._told.get(asked)


def _known(key: object, fields: Fields) -> str:
    return nearest_known(key, fields, {one.key: one.label for one in fields.values()})
