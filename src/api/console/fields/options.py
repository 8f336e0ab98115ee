"""The options of a field as rows of its form: named, colored, grouped, ordered, and the default."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from api.console.forms import moved_row, pressed_row
from models.core.base import JsonObject
from models.data.fields.rules import options
from models.data.fields.rules.fields import FieldKind
from models.data.fields.shapes import FieldShape
from runtime.errors import ValidationError

MOST_ROWS = 150
"""Options of a form; a field with more is changed by the API."""
COLORS = ("gray", "brown", "orange", "yellow", "green", "blue", "purple", "pink", "red", "teal")
GROUPS = [("todo", "To do"), ("in_progress", "In progress"), ("done", "Done")]
_FIRST = "todo"
_PATH = re.compile(r"options\.([0-9]{1,4})\.(\w+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionRow:
    """One option as it is typed; a new one has no key."""

    key: str = ""
    name: str = ""
    color: str = options.DEFAULT_COLOR
    group: str = _FIRST
    default: bool = False

    @property
    def is_blank(self) -> bool:
        """True for a row that makes no option."""
        return not (self.key or self.name)

    @property
    def colors(self) -> Sequence[str]:
        """The colors to choose from; the API takes others, too."""
        return COLORS if self.color in COLORS else (*COLORS, self.color)


def first_rows(kind: FieldKind) -> list[OptionRow]:
    """The rows of a new field."""
    if kind is not FieldKind.STATUS:
        return [OptionRow(), OptionRow()]
    groups = {key: group for group, keys in options.STATUS_GROUPS.items() for key in keys}
    keys = options.keys_of([(one.name, None) for one in options.STATUS_OPTIONS], "option", "", [])
    return [
        OptionRow(name=one.name, color=one.color or options.DEFAULT_COLOR, group=groups[key])
        for one, key in zip(options.STATUS_OPTIONS, keys, strict=True)
    ]


def stored_rows(field: FieldShape, default_keys: Sequence[str]) -> list[OptionRow]:
    """The rows of a stored field, in the order of its options."""
    listed = (field.settings.get("groups") or {}).items()
    groups = {key: group for group, keys in listed for key in keys}
    in_order = sorted(field.options, key=lambda option: (option.order, option.key))
    return [
        OptionRow(
            key=option.key,
            name=option.name,
            color=option.color,
            group=groups.get(option.key, _FIRST),
            default=option.key in default_keys,
        )
        for option in in_order
    ]


def typed_rows(texts: Mapping[str, str]) -> list[OptionRow]:
    """The rows of a form as it was sent, blank ones among them."""
    parts: dict[int, dict[str, str]] = {}
    for name, text in texts.items():
        path = _PATH.fullmatch(name)
        if path is not None:
            parts.setdefault(int(path[1]), {})[path[2]] = text
    return [
        OptionRow(
            key=row.get("key", ""),
            name=row.get("name", ""),
            color=row.get("color", options.DEFAULT_COLOR),
            group=row.get("group", _FIRST),
            default="default" in row,
        )
        for _, row in sorted(parts.items())
    ]


def arranged(rows: Sequence[OptionRow], action: str) -> list[OptionRow]:
    """The rows after a button was pressed: `add`, or `up`, `down`, `remove` and a place."""
    verb, place = pressed_row(action)
    if verb == "add" and len(rows) < MOST_ROWS:
        return [*rows, OptionRow()]
    if verb == "remove":
        return [row for at, row in enumerate(rows) if at != place]
    return moved_row(rows, verb, place)


def filled(rows: Sequence[OptionRow]) -> list[OptionRow]:
    """The rows that make options."""
    return [row for row in rows if not row.is_blank]


def keyed(rows: Sequence[OptionRow]) -> list[OptionRow]:
    """The rows with the keys that the API gives to new options."""
    keys = options.keys_of([(row.name, row.key or None) for row in rows], "option", "", [])
    return [replace(row, key=key) for row, key in zip(rows, keys, strict=True)]


def options_body(rows: Sequence[OptionRow]) -> list[JsonObject]:
    """The `options` of a body."""
    return [{"key": row.key, "name": row.name, "color": row.color} for row in rows]


def groups_body(rows: Sequence[OptionRow]) -> JsonObject:
    """The setting `groups` of a status field."""
    return {group: [row.key for row in rows if row.group == group] for group, _ in GROUPS}


def default_body(kind: FieldKind, rows: Sequence[OptionRow]) -> str | list[str] | None:
    """The `defaultValue` of a body. Raises ValidationError for two of a field that takes one."""
    keys = [row.key for row in rows if row.default]
    if kind is FieldKind.MULTI_SELECT:
        return keys or None
    if len(keys) > 1:
        raise ValidationError.at("defaultValue", "Choose one default.")
    return keys[0] if keys else None


def names_of(rows: Sequence[OptionRow]) -> Iterator[str]:
    """The inputs that show a fault of their own."""
    for place in range(len(rows)):
        yield f"options.{place}.name"
