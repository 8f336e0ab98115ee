"""The form of a view: its texts, and the manifest that they stand for."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from api.console.controls import Control, Offers, Words, laid_out, texts_of, values_of
from api.console.entered import Entered
from api.console.forms import moved_row, pressed_row
from api.console.records.entry import Comparison, leaf_of, read_leaf
from api.console.words import plain, sentence_case
from models.core.base import Input, JsonObject
from models.data.fields.rules.fields import FieldSpecs
from models.data.fields.rules.settings import Aggregate
from models.data.views.rules.kinds import ViewKind
from models.data.views.shapes import Chart, FormLayout, Manifest, ViewShape
from runtime.errors import Detail, ValidationError

_AGGREGATE = "manifest.chart.aggregate"
_OWN_KEYS: Mapping[ViewKind, Sequence[str]] = {
    ViewKind.BOARD: ("stackFieldKey",),
    ViewKind.CALENDAR: ("dateFieldKey",),
    ViewKind.TIMELINE: ("dateFieldKey", "endDateFieldKey"),
    ViewKind.GALLERY: ("coverFieldKey",),
}
"""Keys of a manifest that name one field, by the kinds of views that use them."""
FIELD_KEYS = tuple(dict.fromkeys(key for keys in _OWN_KEYS.values() for key in keys))
_PARTS: Mapping[ViewKind, tuple[str, type[Input], Collection[str]]] = {
    ViewKind.CHART: ("chart", Chart, {"aggregate"}),
    ViewKind.FORM: ("form", FormLayout, {"fields"}),
}
"""Parts of a manifest that are of one kind, with the keys that have rows of their own."""
_WORDS: Words = {
    "stackFieldKey": ("Board columns", "An option, person or checkbox field."),
    "dateFieldKey": ("Date", "A field with dates."),
    "endDateFieldKey": ("End date", "A field with dates."),
    "coverFieldKey": ("Cover", "A file or URL field."),
    "type": ("Chart type", ""),
    "xFieldKey": ("Values of", "Not needed for a number."),
    "submitLabel": ("Button label", "Default: Submit."),
    "confirmation": ("Confirmation message", "Shown after the form was submitted."),
}
_SPARE_SORTS, _SPARE_CONDITIONS = 2, 3
"""Empty rows behind the filled ones."""
_MOST_ROWS = 20
_AGGREGATES = [
    ("", "Default: number of records"),
    *((one.value, sentence_case(plain(one))) for one in Aggregate),
]
KEPT = "kept"
"""The join of a filter that the form does not show, and leaves as it is."""


@dataclass(frozen=True, slots=True)
class ShownField:
    """A field of the view's form, with its place in the order."""

    key: str
    label: str
    visible: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewForm:
    """The rows of a form, and all texts as the form shows them."""

    shown_fields: Sequence[ShownField]
    sorts: int
    conditions: int
    keeps_filter: bool
    controls: Sequence[Control]
    """The settings of its kind."""
    aggregates: Sequence[tuple[str, str]]
    """The functions of a chart."""
    asks: bool
    """Its fields are the questions of a form."""
    entered: Entered

    @property
    def names(self) -> list[str]:
        """The inputs that show a fault of their own."""
        sorts = [f"manifest.sorts.{place}.field" for place in range(self.sorts)]
        parts = [f"filter.{place}" for place in range(self.conditions)]
        conditions = [f"{part}.{name}" for part in parts for name in ("comparison", "value")]
        own = [one.name for one in self.controls]
        chart = [f"{_AGGREGATE}.op", f"{_AGGREGATE}.field"] if self.aggregates else []
        return ["label", "kind", "manifest.groupBy.field", *own, *chart, *sorts, *conditions]


def view_form(fields: FieldSpecs, view: ViewShape | None, kind: ViewKind) -> ViewForm:
    """The form of a view as it is stored, or of a new one of a kind."""
    manifest = {} if view is None else view.manifest
    kind = kind if view is None else view.kind
    texts = {"kind": kind.value}
    if view is not None:
        texts["label"] = view.label
    for part, controls in _controls(kind, fields).items():
        texts |= texts_of(controls, manifest.get(part, {}) if part else manifest)
    aggregate = (manifest.get("chart") or {}).get("aggregate") or {}
    texts |= {f"{_AGGREGATE}.{name}": str(aggregate.get(name, "")) for name in ("op", "field")}
    texts["manifest.groupBy.field"] = _group_key(manifest)
    sorts: Sequence[JsonObject] = manifest.get("sorts") or ()
    for place, one in enumerate(sorts):
        texts[f"manifest.sorts.{place}.field"] = str(one.get("field", ""))
        texts[f"manifest.sorts.{place}.direction"] = str(one.get("direction", "asc"))
    join, leaves = _read_filter(manifest.get("filter"))
    texts["join"] = join
    for place, (key, comparison, text) in enumerate(leaves):
        texts[f"filter.{place}.field"] = key
        texts[f"filter.{place}.comparison"] = comparison.value
        texts[f"filter.{place}.value"] = text
    return _form(_stored_fields(fields, manifest, kind), Entered(texts), manifest, fields)


def sent_view_form(fields: FieldSpecs, entered: Entered, view: ViewShape | None) -> ViewForm:
    """The form as it was sent, with a refusal or after a button of its fields."""
    manifest = {} if view is None else view.manifest
    in_order = _typed_fields(fields, entered.texts) or _stored_fields(fields, {}, _kind(entered))
    in_order = moved_row(in_order, *pressed_row(entered.texts.get("row", "")))
    return _form(in_order, entered, manifest, fields)


def _kind(entered: Entered) -> ViewKind:
    return _kind_of(entered.texts)


def _kind_of(texts: Mapping[str, str]) -> ViewKind:
    """The kind that was chosen; a table where it is none, which the operation then refuses."""
    return {one.value: one for one in ViewKind}.get(texts.get("kind", ""), ViewKind.TABLE)


def _controls(kind: ViewKind, fields: FieldSpecs) -> dict[str, list[Control]]:
    """The settings of a kind, by the part of the manifest that has them; "" for the manifest."""
    choices = [(key, spec.label) for key, spec in fields.items()]
    offers: Offers = dict.fromkeys([*FIELD_KEYS, "xFieldKey"], choices)
    controls = {}
    if kind in _OWN_KEYS:
        others = {one.alias or "" for one in Manifest.model_fields.values()}
        unused = others.difference(_OWN_KEYS[kind])
        controls[""] = laid_out(Manifest, "manifest", words=_WORDS, offers=offers, without=unused)
    if kind in _PARTS:
        part, shape, rows = _PARTS[kind]
        path = f"manifest.{part}"
        controls[part] = laid_out(shape, path, words=_WORDS, offers=offers, without=rows)
    return controls


def manifest_of(fields: FieldSpecs, texts: Mapping[str, str], before: JsonObject) -> JsonObject:
    """The manifest of a form; parts of `before` that it has not stay. Raises ValidationError."""
    kind, manifest = _kind_of(texts), before
    for part, controls in _controls(kind, fields).items():
        settings = values_of(controls, texts, before.get(part) or {} if part else before)
        manifest = {**manifest, part: settings} if part else settings
    if kind is ViewKind.CHART:
        manifest = {**manifest, "chart": _chart(manifest["chart"], texts)}
    in_order = _typed_fields(fields, texts)
    if kind is ViewKind.FORM:
        questions = _questions(in_order, (before.get("form") or {}).get("fields"))
        return {**manifest, "form": {**manifest["form"], "fields": questions}}
    queried = {
        "groupBy": _group(texts, before),
        "sorts": _sorts(texts, before),
        "filter": _filter(fields, texts, before),
    }
    if in_order:
        widths = {one["key"]: one for one in before.get("fields") or ()}
        queried["fields"] = [
            {**widths.get(one.key, {}), "key": one.key, "visible": one.visible} for one in in_order
        ]
    others = {name: part for name, part in manifest.items() if name not in queried}
    return {**others, **{name: part for name, part in queried.items() if part}}


def _group(texts: Mapping[str, str], before: JsonObject) -> object:
    group = texts.get("manifest.groupBy.field")
    if not group:
        return None
    return before["groupBy"] if group == _group_key(before) else {"field": group}


def _chart(chart: JsonObject, texts: Mapping[str, str]) -> JsonObject:
    """The chart with the function that the form has; the rest of a stored one stays."""
    named = {name: texts.get(f"{_AGGREGATE}.{name}") for name in ("op", "field")}
    others = {name: one for name, one in chart.items() if name != "aggregate"}
    if not named["op"]:
        return others
    aggregate = {**(chart.get("aggregate") or {}), **named}
    return {**others, "aggregate": {name: one for name, one in aggregate.items() if one}}


def _questions(
    shown: Sequence[ShownField], before: Sequence[JsonObject] | None
) -> list[JsonObject]:
    """The questions of a form in their order; what it says about one that stays is kept."""
    stored = {one["key"]: one for one in before or ()}
    return [stored.get(one.key, {"key": one.key}) for one in shown if one.visible]


def _form(
    shown: Sequence[ShownField], entered: Entered, manifest: JsonObject, fields: FieldSpecs
) -> ViewForm:
    texts, kind = entered.texts, _kind(entered)
    if kind is ViewKind.FORM:
        shown = [one for one in shown if fields[one.key].stored or fields[one.key].relation]
    sorts = [n for n in range(_MOST_ROWS) if texts.get(f"manifest.sorts.{n}.field")]
    conditions = [n for n in range(_MOST_ROWS) if texts.get(f"filter.{n}.field")]
    return ViewForm(
        shown_fields=shown,
        sorts=min(_MOST_ROWS, max([-1, *sorts]) + 1 + _SPARE_SORTS),
        conditions=min(_MOST_ROWS, max([-1, *conditions]) + 1 + _SPARE_CONDITIONS),
        keeps_filter=_read_filter(manifest.get("filter"))[0] == KEPT,
        controls=[*chain.from_iterable(_controls(kind, fields).values())],
        aggregates=_AGGREGATES if kind is ViewKind.CHART else (),
        asks=kind is ViewKind.FORM,
        entered=entered,
    )


def _stored_fields(fields: FieldSpecs, manifest: JsonObject, kind: ViewKind) -> list[ShownField]:
    """The fields in the order of the view; behind them the others, shown where it names none."""
    part = (manifest.get("form") or {}) if kind is ViewKind.FORM else manifest
    listed: Sequence[JsonObject] = part.get("fields") or ()
    visible = {one["key"]: one.get("visible") is not False for one in listed}
    keys = [*(key for key in visible if key in fields), *(k for k in fields if k not in visible)]
    return [ShownField(key, fields[key].label, visible.get(key, not listed)) for key in keys]


def _typed_fields(fields: FieldSpecs, texts: Mapping[str, str]) -> list[ShownField]:
    keys = [texts.get(f"fields.{place}.key", "") for place in range(len(fields))]
    return [
        ShownField(key, fields[key].label, f"fields.{place}.visible" in texts)
        for place, key in enumerate(keys)
        if key in fields
    ]


def _group_key(manifest: JsonObject) -> str:
    """The field of the first level of groups."""
    groups = manifest.get("groupBy")
    first = groups[0] if isinstance(groups, list) and groups else groups
    return str(first.get("field", "")) if isinstance(first, dict) else ""


def _sorts(texts: Mapping[str, str], before: JsonObject) -> list[JsonObject]:
    sorts_before = {one.get("field"): one for one in before.get("sorts") or ()}
    sorts = []
    for place in range(_MOST_ROWS):
        key = texts.get(f"manifest.sorts.{place}.field")
        if key:
            direction = texts.get(f"manifest.sorts.{place}.direction", "asc")
            sorts.append({**sorts_before.get(key, {}), "field": key, "direction": direction})
    return sorts


def _filter(fields: FieldSpecs, texts: Mapping[str, str], before: JsonObject) -> JsonObject | None:
    """The filter of the rows, joined at one level. Raises ValidationError at a row."""
    if texts.get("join") == KEPT:
        kept: JsonObject | None = before.get("filter")
        return kept
    leaves = []
    for place in range(_MOST_ROWS):
        key = texts.get(f"filter.{place}.field")
        if not key:
            continue
        try:
            comparison = Comparison(texts.get(f"filter.{place}.comparison", ""))
            leaves.append(leaf_of(fields[key], comparison, texts.get(f"filter.{place}.value")))
        except (KeyError, ValueError):
            path = f"filter.{place}.comparison"
            raise ValidationError.at(path, "Choose a field and a comparison.") from None
        except ValidationError as refusal:
            details = [Detail(f"filter.{place}.value", one.message) for one in refusal.details]
            raise ValidationError(refusal.message, details) from None
    return {texts.get("join", "and"): leaves} if leaves else None


def _read_filter(tree: object) -> tuple[str, list[tuple[str, Comparison, str]]]:
    """The join and the rows of a filter; KEPT and none of one that rows cannot show."""
    if tree is None:
        return "and", []
    if not isinstance(tree, dict) or len(tree) < 1:
        return KEPT, []
    join = "or" if "or" in tree else "and"
    parts = tree.get(join, [tree])
    rows = [read_leaf(one) for one in parts if isinstance(one, dict)]
    shown = [row for row in rows if row is not None]
    if len(shown) < len(parts) or len(shown) > _MOST_ROWS:
        return KEPT, []
    return join, shown
