"""Options that a write brings into being where a field allows it (setting `allowCreate`)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from models.base import Id
from models.databases.rules.fields import FieldSpec, Option, Schema
from models.databases.rules.kinds import OPTION_KINDS
from models.databases.rules.plan import DEFAULT_COLOR
from models.databases.rules.values import FieldValueError, text
from models.databases.shapes import MAX_OPTIONS
from models.keys import first_free, slug

MAX_OPTION_NAME = 100


@dataclass(frozen=True, slots=True)
class Growth:
    """The schema with new options, the written values with keys in place of names.

    `grown` are the keys of the fields that got options.
    """

    schema: Schema
    written: dict[str, Any]
    grown: frozenset[str]


def grow_options(schema: Schema, written: Mapping[str, Any], make_id: Callable[[], Id]) -> Growth:
    """Give each unknown choice of a field that allows it an option, or the option of that name.

    What could be no option's name is left as it is, for the value check to refuse.
    """
    grown: dict[str, FieldSpec] = {}
    values = dict(written)
    for key, value in written.items():
        spec = schema.fields.get(key)
        if spec is None or spec.kind not in OPTION_KINDS or not spec.settings.get("allowCreate"):
            continue
        growing = _Growing(spec, make_id)
        if isinstance(value, list):
            values[key] = [growing.key_of(entry) for entry in value]
        else:
            values[key] = growing.key_of(value)
        if growing.spec is not spec:
            grown[key] = growing.spec
    fields = {**schema.fields, **grown}
    return Growth(replace(schema, fields=fields), values, frozenset(grown))


class _Growing:
    """A field that gains options while its values are read."""

    def __init__(self, spec: FieldSpec, make_id: Callable[[], Id]) -> None:
        self.spec = spec
        self.make_id = make_id

    def key_of(self, value: Any) -> Any:
        if not isinstance(value, str) or value in self.spec.option_keys or not _is_name(value):
            return value
        name = value.strip()
        for option in self.spec.options:
            if option.name.casefold() == name.casefold():
                return option.key
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
        return option.key


def _is_name(value: str) -> bool:
    try:
        return bool(text(value, longest=MAX_OPTION_NAME).strip())
    except FieldValueError:
        return False
