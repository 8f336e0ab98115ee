"""The form of a view: its texts, and the manifest that they stand for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from api.console.entered import Entered
from api.console.forms import moved_row, pressed_row
from api.console.records.entry import Comparison, leaf_of, read_leaf
from models.core.base import JsonObject
from models.data.fields.rules.fields import FieldSpecs
from models.data.views.rules.kinds import ViewKind
from models.data.views.shapes import ViewShape
from runtime.errors import Detail, ValidationError

FIELD_KEYS = ("stackFieldKey", "dateFieldKey", "endDateFieldKey", "coverFieldKey")
"""Keys of a manifest that name one field."""
_SPARE_SORTS, _SPARE_CONDITIONS = 2, 3
"""Empty rows behind the filled ones."""
_MOST_ROWS = 20
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
    entered: Entered

    @property
    def names(self) -> list[str]:
        """The inputs that show a fault of their own."""
        sorts = [f"manifest.sorts.{place}.field" for place in range(self.sorts)]
        parts = [f"filter.{place}" for place in range(self.conditions)]
        conditions = [f"{part}.{name}" for part in parts for name in ("comparison", "value")]
        singles = [f"manifest.{key}" for key in FIELD_KEYS]
        return ["label", "kind", "manifest.groupBy.field", *singles, *sorts, *conditions]


def view_form(fields: FieldSpecs, view: ViewShape | None) -> ViewForm:
    """The form of a view as it is stored, or of a new one."""
    manifest = {} if view is None else view.manifest
    texts = {"kind": (ViewKind.TABLE if view is None else view.kind).value}
    if view is not None:
        texts["label"] = view.label
    for key in FIELD_KEYS:
        texts[f"manifest.{key}"] = manifest.get(key) or ""
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
    return _form(_stored_fields(fields, manifest), Entered(texts), manifest)


def sent_view_form(fields: FieldSpecs, entered: Entered, view: ViewShape | None) -> ViewForm:
    """The form as it was sent, with a refusal or after a button of its fields."""
    manifest = {} if view is None else view.manifest
    in_order = _typed_fields(fields, entered.texts)
    in_order = moved_row(in_order, *pressed_row(entered.texts.get("row", "")))
    return _form(in_order, entered, manifest)


def manifest_of(fields: FieldSpecs, texts: Mapping[str, str], before: JsonObject) -> JsonObject:
    """The manifest of a form; parts of `before` that it has not stay. Raises ValidationError."""
    named = {*FIELD_KEYS, "groupBy", "sorts", "filter", "fields"}
    manifest = {key: part for key, part in before.items() if key not in named}
    for key in FIELD_KEYS:
        if text := texts.get(f"manifest.{key}"):
            manifest[key] = text
    group = texts.get("manifest.groupBy.field")
    if group:
        same = group == _group_key(before)
        manifest["groupBy"] = before["groupBy"] if same else {"field": group}
    if sorts := _sorts(texts, before):
        manifest["sorts"] = sorts
    condition = _filter(fields, texts, before)
    if condition is not None:
        manifest["filter"] = condition
    widths = {one["key"]: one for one in before.get("fields") or ()}
    shown = _typed_fields(fields, texts)
    if shown:
        manifest["fields"] = [
            {**widths.get(one.key, {}), "key": one.key, "visible": one.visible} for one in shown
        ]
    return manifest


def _form(shown: Sequence[ShownField], entered: Entered, manifest: JsonObject) -> ViewForm:
    texts = entered.texts
    sorts = [n for n in range(_MOST_ROWS) if texts.get(f"manifest.sorts.{n}.field")]
    conditions = [n for n in range(_MOST_ROWS) if texts.get(f"filter.{n}.field")]
    return ViewForm(
        shown_fields=shown,
        sorts=min(_MOST_ROWS, max([-1, *sorts]) + 1 + _SPARE_SORTS),
        conditions=min(_MOST_ROWS, max([-1, *conditions]) + 1 + _SPARE_CONDITIONS),
        keeps_filter=_read_filter(manifest.get("filter"))[0] == KEPT,
        entered=entered,
    )


def _stored_fields(fields: FieldSpecs, manifest: JsonObject) -> list[ShownField]:
    """The fields in the order of the view; behind them the others, shown where it names none."""
    listed: Sequence[JsonObject] = manifest.get("fields") or ()
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
