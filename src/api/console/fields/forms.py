"""The form of a field: its controls by kind, its options, and the bodies that they stand for."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from api.console.controls import Control, Offers, Words, laid_out, texts_of, values_of
from api.console.entered import Entered
from api.console.forms import moved_row, pressed_row
from api.console.records.entry import PREFIX, Entry, entry_of, is_typed, read_typed, retyped
from models.core.base import Id, JsonObject
from models.data.fields.rules import options as field_options
from models.data.fields.rules.fields import OPTION_KINDS, STORED_KINDS, FieldKind, FieldSpec, Option
from models.data.fields.rules.settings import settings_model
from models.data.fields.rules.value_conversion import as_text
from models.data.fields.rules.values import default_value
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
    color: str = field_options.DEFAULT_COLOR
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
    groups = {key: group for group, keys in field_options.STATUS_GROUPS.items() for key in keys}
    keys = field_options.keys_of(
        [(one.name, None) for one in field_options.STATUS_OPTIONS], "option", "", []
    )
    return [
        OptionRow(name=one.name, color=one.color or field_options.DEFAULT_COLOR, group=groups[key])
        for one, key in zip(field_options.STATUS_OPTIONS, keys, strict=True)
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
            color=row.get("color", field_options.DEFAULT_COLOR),
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
    keys = field_options.keys_of([(row.name, row.key or None) for row in rows], "option", "", [])
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


SETTINGS = "settings"
_DEFAULT = "default"
_DEFAULT_NAME = f"{PREFIX}{_DEFAULT}"
_WORDS: Words = {
    "actionId": ("Action", ""),
    "aggregate": ("Function", ""),
    "allowCreate": ("Allow new options", "An unknown value becomes an option."),
    "allowManual": ("Allow manual entries", ""),
    "bindings": ("Inputs", "A field is named by its key; the record has id, title and databaseId."),
    "cardinality": ("Linked records", ""),
    "confirm": ("Confirmation message", "Shown before the action runs. Empty: no confirmation."),
    "currencyCode": ("Currency code", "Three capital letters, such as EUR."),
    "databaseId": ("Database", "It gets a field for the other side of the relation."),
    "expression": ("Expression", "A CEL expression, such as record.price * 2."),
    "inverseLabel": ("Inverse name", "Default: the name of this database."),
    "label": ("Button label", ""),
    "max": ("Maximum", ""),
    "maxFiles": ("File limit", ""),
    "min": ("Minimum", ""),
    "onDelete": ("On delete", "Restrict: linked records cannot be deleted."),
    "precision": ("Decimals", ""),
    "relationFieldKey": ("Relation", ""),
    "resultKind": ("Result", ""),
    "symmetric": ("Symmetric", "For a relation of a database to itself."),
    "targetFieldKey": ("Field", ""),
    "timezone": ("Time zone", "Such as Europe/Berlin. Default: UTC."),
}
_NOT_TYPED = frozenset({"groups", "inverseFieldId"})
"""Settings that come from the rows of options, or from the platform."""
_FIXED = frozenset({"databaseId", "symmetric", "inverseLabel"})
"""Settings of a relation that never change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldForm:
    """The part of a form that is of one kind, and all texts as the form shows them."""

    kind: FieldKind
    controls: Sequence[Control]
    rows: Sequence[OptionRow] | None
    """The options; None for a kind without, and for more options than a form has."""
    entered: Entered
    default: Entry | None
    """The control of the default value, where options do not have it."""
    takes_required: bool

    @property
    def groups(self) -> Sequence[tuple[str, str]]:
        """The groups of options to choose from."""
        return GROUPS if self.kind is FieldKind.STATUS else ()

    @property
    def names(self) -> list[str]:
        """The inputs that show a fault of their own."""
        own = [one.name for one in self.controls]
        return ["label", "key", "defaultValue", *own, *names_of(self.rows or ())]


def controls_of(kind: FieldKind, offers: Offers, field: FieldShape | None) -> list[Control]:
    """The controls of the settings of a kind; a stored field lacks what never changes."""
    without: Collection[str] = _NOT_TYPED
    if kind is FieldKind.ROLLUP:
        without = _NOT_TYPED | {"resultKind"}
    elif kind is FieldKind.RELATION and field is not None:
        without = _NOT_TYPED | _FIXED
    return laid_out(settings_model(kind), SETTINGS, words=_WORDS, offers=offers, without=without)


def new_form(kind: FieldKind, offers: Offers) -> FieldForm:
    controls = controls_of(kind, offers, None)
    rows = first_rows(kind) if kind in OPTION_KINDS else None
    return _form(_spec(kind), controls, rows, Entered(texts_of(controls, {})))


def stored_form(field: FieldShape, offers: Offers) -> FieldForm:
    spec = spec_of(field)
    controls = controls_of(field.kind, offers, field)
    texts = {
        "label": field.label,
        **texts_of(controls, field.settings),
        **({"required": "on"} if field.required else {}),
        **({_DEFAULT_NAME: text} if (text := _default_text(spec)) else {}),
    }
    rows = stored_rows(field, _default_keys(spec)) if _has_rows(field) else None
    return _form(spec, controls, rows, Entered(texts))


def sent_form(
    kind: FieldKind, offers: Offers, entered: Entered, field: FieldShape | None
) -> FieldForm:
    """The form as it was sent, with a refusal or after a button of its options."""
    rows = None
    if kind in OPTION_KINDS and (field is None or _has_rows(field)):
        rows = typed_rows(entered.texts)
        if entered.texts.get("row") == "kind" and not filled(rows):
            rows = first_rows(kind)
        rows = filled(rows) if entered.refusal else rows
        rows = arranged(rows, entered.texts.get("row", ""))
    spec = _spec(kind) if field is None else spec_of(field)
    return _form(spec, controls_of(kind, offers, field), rows, entered)


def create_body(kind: FieldKind, texts: Mapping[str, str]) -> JsonObject:
    """The body of create field. Raises ValidationError."""
    settings = values_of(controls_of(kind, {}, None), texts, {})
    body: JsonObject = {"label": texts.get("label", ""), "kind": kind.value}
    if texts.get("key"):
        body["key"] = texts["key"]
    if "required" in texts:
        body["required"] = True
    if kind in OPTION_KINDS:
        rows = keyed(filled(typed_rows(texts)))
        if rows:
            body["options"] = options_body(rows)
        if rows and kind is FieldKind.STATUS:
            settings["groups"] = groups_body(rows)
        default: object = default_body(kind, rows)
    else:
        default = _typed_default(_spec(kind), texts)
    if default is not None:
        body["defaultValue"] = default
    return {**body, "settings": settings} if settings else body


def update_body(field: FieldShape, texts: Mapping[str, str]) -> JsonObject:
    """The body of update field; what the form does not show stays. Raises ValidationError."""
    spec = spec_of(field)
    controls = controls_of(field.kind, {}, field)
    body: JsonObject = {"label": texts.get("label", "")}
    if spec.stored:
        body["required"] = "required" in texts
    settings = values_of(controls, texts, field.settings)
    if _has_rows(field):
        rows = keyed(filled(typed_rows(texts)))
        body["options"] = options_body(rows)
        body["defaultValue"] = default_body(field.kind, rows)
        if field.kind is FieldKind.STATUS:
            settings["groups"] = groups_body(rows)
    elif is_typed(spec) and texts.get(_DEFAULT_NAME, "") != _default_text(spec):
        body["defaultValue"] = _typed_default(spec, texts)
    if settings != field.settings:
        body["settings"] = settings
    return body


def spec_of(field: FieldShape) -> FieldSpec:
    """A stored field as the rules see it, by the key that its default value has in the form."""
    return FieldSpec(
        id=field.id,
        key=_DEFAULT,
        label="Default",
        kind=field.kind,
        default=field.default_value,
        options=tuple(Option(**one.model_dump()) for one in field.options),
        settings=field.settings,
    )


def _spec(kind: FieldKind) -> FieldSpec:
    return FieldSpec(id=Id(int=0), key=_DEFAULT, label="Default", kind=kind)


def _form(
    spec: FieldSpec,
    controls: Sequence[Control],
    rows: Sequence[OptionRow] | None,
    entered: Entered,
) -> FieldForm:
    default = None
    if is_typed(spec) and spec.kind not in OPTION_KINDS:
        problem = entered.wrong("defaultValue")
        default = replace(retyped(entry_of(spec, None), entered.texts, {}), problem=problem)
    return FieldForm(
        kind=spec.kind,
        controls=controls,
        rows=rows,
        entered=entered,
        default=default,
        takes_required=spec.kind in STORED_KINDS,
    )


def _has_rows(field: FieldShape) -> bool:
    return field.kind in OPTION_KINDS and len(field.options) <= MOST_ROWS


def _default_keys(spec: FieldSpec) -> list[str]:
    value = default_value(spec)
    return [str(one) for one in value] if isinstance(value, list) else [str(value)]


def _default_text(spec: FieldSpec) -> str:
    """The default as a person types it."""
    value = default_value(spec)
    if value is None or not is_typed(spec) or spec.kind in OPTION_KINDS:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return as_text(spec, value)


def _typed_default(spec: FieldSpec, texts: Mapping[str, str]) -> object:
    """The default that was typed. Raises ValidationError for a text without a value."""
    if not is_typed(spec):
        return None
    typed = read_typed([spec], texts)
    if typed.problems:
        raise ValidationError.at("defaultValue", typed.problems[0].message)
    return typed.data[_DEFAULT]
