"""Options that a write brings into being where a field allows it (setting `allowCreate`)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from models.core.base import Id
from models.core.keys import first_free, slug
from models.core.values import InvalidValueError, text
from models.data.fields.rules.fields import FieldSpec, Option, Schema
from models.data.fields.rules.kinds import OPTION_KINDS
from models.data.fields.rules.options import DEFAULT_COLOR
from models.data.fields.shapes import MAX_OPTIONS

Value = TypeVar("Value")

MAX_OPTION_NAME = 100


@dataclass(frozen=True, slots=True)
class Growth:
    """The schema with new options, the written values with keys in place of names.

    `keys` name the fields that got options.
    """

    schema: Schema
    rows: Sequence[Mapping[str, Any]]
    keys: frozenset[str]


def grow_options(
    schema: Schema, rows: Sequence[Mapping[str, Any]], make_id: Callable[[], Id]
) -> Growth:
    """Give each unknown choice of a field that allows it an option, or the option of that name.

    `rows` are the values of one record after the other. What could be no option's name is left
    as it is, for the value check to refuse.
    """
    growing = {
        key: GrowingField(spec, make_id) for key, spec in schema.fields.items() if may_grow(spec)
    }
    if not growing:
        return Growth(schema, rows, frozenset())
    keyed_rows = [
        {key: _chosen(growing.get(key), value) for key, value in values.items()} for values in rows
    ]
    grown = {key: one.spec for key, one in growing.items() if one.spec is not schema.fields[key]}
    fields = {**schema.fields, **grown}
    return Growth(replace(schema, fields=fields), keyed_rows, frozenset(grown))


def may_grow(spec: FieldSpec | None) -> bool:
    """True when a write may bring options of a field into being."""
    if spec is None or spec.kind not in OPTION_KINDS:
        return False
    return bool(spec.settings.get("allowCreate"))


def _chosen(growing: "GrowingField | None", value: object) -> object:
    if growing is None:
        return value
    if isinstance(value, list):
        return [growing.key_of(entry) for entry in value]
    return growing.key_of(value)


class GrowingField:
    """A field that gains options while its values are read: `spec` is the field so far."""

    def __init__(self, spec: FieldSpec, make_id: Callable[[], Id]) -> None:
        self.spec = spec
        self.before = frozenset(spec.options)
        self.make_id = make_id
        self._keys = {option.name.casefold(): option.key for option in reversed(spec.options)}

    def key_of(self, value: Value) -> Value | str:
        """The key of the option that a value names; what could be no name is given back."""
        if not isinstance(value, str) or value in self.spec.option_keys or not _is_name(value):
            return value
        name = value.strip()
        known = self._keys.get(name.casefold())
        if known is not None:
            return known
        if len(self.spec.options) >= MAX_OPTIONS:
            return value
        option = Option(
            id=str(self.make_id()),
            key=first_free(slug(name, "option"), self.spec.option_keys),
            name=name,
            color=DEFAULT_COLOR,
            order=1 + max((option.order for option in self.spec.options), default=-1),
        )
        self.spec = replace(self.spec, options=(*self.spec.options, option))
        self._keys[name.casefold()] = option.key
        return option.key


def _is_name(value: str) -> bool:
    try:
        return bool(text(value, longest=MAX_OPTION_NAME).strip())
    except InvalidValueError:
        return False
