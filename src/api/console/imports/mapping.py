"""The columns of a file and the fields they go to: as a form has them, as an import takes them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from api.console.entered import Entered
from models.core.base import JsonObject
from models.core.keys import first_free, slug
from models.data.fields.rules.fields import FieldSpec, FieldSpecs
from models.data.fields.rules.kinds import OPTION_KINDS, STORED_KINDS, TITLE_KEY, FieldKind
from models.sources.data_sources.shapes import DataSourcePreview, PreviewColumn
from runtime.errors import ValidationError

NEW_KINDS = {
    kind.value.replace("_", " "): kind
    for kind in (
        FieldKind.TEXT,
        FieldKind.LONG_TEXT,
        FieldKind.NUMBER,
        FieldKind.CURRENCY,
        FieldKind.PERCENT,
        FieldKind.CHECKBOX,
        FieldKind.DATE,
        FieldKind.DATETIME,
        FieldKind.TIME,
        FieldKind.DURATION,
        FieldKind.SELECT,
        FieldKind.MULTI_SELECT,
        FieldKind.EMAIL,
        FieldKind.URL,
        FieldKind.PHONE,
        FieldKind.JSON,
    )
}
"""The kinds that a column can have which fills a new field, by their words."""


@dataclass(frozen=True, slots=True)
class Line:
    """A column in the form: the name of its field, the kind of a new one, whether it is a key."""

    column: PreviewColumn
    into: str
    kind: str
    is_key: bool
    is_title: bool


@dataclass(frozen=True, slots=True)
class Mapped:
    """The fields that columns fill, the new ones among them, and the keys of rows."""

    fields: Sequence[JsonObject]
    new_fields: Sequence[JsonObject]
    keys: Sequence[str]


def fillable(fields: FieldSpecs) -> list[FieldSpec]:
    """The fields of a database that a column can fill."""
    return [spec for spec in fields.values() if spec.kind in STORED_KINDS]


def lines_of(preview: DataSourcePreview, fields: FieldSpecs | None, entered: Entered) -> list[Line]:
    """The columns with the fields they go to; before a form was sent, as they suggest it.

    Without `fields` they go to a new database.
    """
    named = _by_name(fields or {})

    def line(place: int, column: PreviewColumn) -> Line:
        known = named.get(column.label.casefold()) or named.get(column.suggested_key)
        return Line(
            column,
            entered.text(f"into.{place}", column.label if known is None else known.label),
            entered.text(f"kind.{place}", column.kind.value),
            entered.ticked(f"key.{place}", f"key.{place}" in entered.texts),
            fields is None and column.suggested_key == TITLE_KEY,
        )

    return [line(place, column) for place, column in enumerate(preview.columns)]


def read_mapping(
    preview: DataSourcePreview, fields: FieldSpecs | None, texts: Mapping[str, str]
) -> Mapped:
    """The mapping that a form describes; a column without a name is left out.

    Raises ValidationError.
    """
    known_fields, used_keys = _by_name(fields or {}), set(fields or {})
    mapped: list[JsonObject] = []
    new_fields: list[JsonObject] = []
    keys: list[str] = []
    for place, column in enumerate(preview.columns):
        name = texts.get(f"into.{place}", "").strip()
        if not name:
            continue
        known = known_fields.get(name.casefold())
        if known is None:
            entry = _new(column, name, texts.get(f"kind.{place}", ""), used_keys, fields is None)
            new_fields.append(entry)
        else:
            entry = {"fieldKey": known.key, "label": known.label, "kind": known.kind.value}
        mapped.append({"sourcePath": column.source_path, **entry})
        if f"key.{place}" in texts:
            keys.append(entry["fieldKey"])
    if not mapped:
        raise ValidationError.at("", "Every column is left out: name a field for one of them.")
    return Mapped(mapped, new_fields, keys)


def field_body(entry: JsonObject) -> JsonObject:
    """The body that creates a new field; its options follow from the rows."""
    body = {"label": entry["label"], "key": entry["fieldKey"], "kind": entry["kind"]}
    if entry["kind"] in OPTION_KINDS:
        body["settings"] = {"allowCreate": True}
    return body


def _new(
    column: PreviewColumn, name: str, kind: str, taken: set[str], is_new_database: bool
) -> JsonObject:
    if is_new_database and column.suggested_key == TITLE_KEY:
        return {"fieldKey": TITLE_KEY, "label": name[:200], "kind": FieldKind.TEXT.value}
    field_kind = NEW_KINDS.get(kind)
    if field_kind is None:
        raise ValidationError.at("", f"Choose a kind for “{name}”.")
    key = first_free(slug(name, "column"), taken | {TITLE_KEY})
    taken.add(key)
    return {"fieldKey": key, "label": name[:200], "kind": field_kind.value}


def _by_name(fields: FieldSpecs) -> Mapping[str, FieldSpec]:
    """The fields by their labels and keys, as people write them."""
    specs = fillable(fields)
    return {one.key: one for one in specs} | {one.label.casefold(): one for one in specs}
