"""An Airtable-style base: `schema.json` and a CSV for each table, in a directory or a zip."""

import csv
import io
import json
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

from activities.sources.readers.delimited import read_lines
from cli.convert.bundle_file import BundleFile
from cli.convert.tables import Converted, Side, Table, Times, add_relation, convert_table
from models.core.keys import first_free, slug
from models.data.fields.rules.fields import FieldKind, Option
from models.sources.tabular.rules.formats import Conventions
from runtime.ids import new_id

_KINDS: Mapping[str, FieldKind] = {
    "singleLineText": FieldKind.TEXT,
    "multilineText": FieldKind.LONG_TEXT,
    "richText": FieldKind.RICH_TEXT,
    "email": FieldKind.EMAIL,
    "url": FieldKind.URL,
    "phoneNumber": FieldKind.PHONE,
    "number": FieldKind.NUMBER,
    "currency": FieldKind.CURRENCY,
    "percent": FieldKind.PERCENT,
    "rating": FieldKind.RATING,
    "duration": FieldKind.DURATION,
    "checkbox": FieldKind.CHECKBOX,
    "date": FieldKind.DATE,
    "dateTime": FieldKind.DATETIME,
    "singleSelect": FieldKind.SELECT,
    "multipleSelects": FieldKind.MULTI_SELECT,
    "autoNumber": FieldKind.NUMBER,
    "count": FieldKind.NUMBER,
    "createdTime": FieldKind.DATETIME,
    "lastModifiedTime": FieldKind.DATETIME,
}
_COMPUTED = frozenset({"formula", "rollup"})
_MOMENTS = frozenset({"date", "dateTime", "createdTime", "lastModifiedTime"})
_AS_TEXT = {
    "formula": "formulas become their last values",
    "rollup": "rollups become their last values",
    "multipleLookupValues": "lookups become their last values, as text",
    "count": "counts become their last values, as numbers",
    "autoNumber": "automatic numbers become plain numbers",
    "singleCollaborator": "collaborators become text",
    "multipleCollaborators": "collaborators become text",
    "createdBy": "collaborators become text",
    "lastModifiedBy": "collaborators become text",
    "createdTime": "created and modified times become plain times",
    "lastModifiedTime": "created and modified times become plain times",
    "multipleAttachments": "attachments become text: a CSV only has their URLs",
    "barcode": "barcodes become text",
    "aiText": "AI fields become plain text",
}
_LINK = "multipleRecordLinks"
_GONE = {"button": "buttons", "externalSyncSource": "names of synced sources"}
_ZONES = {"utc": "UTC", "client": None}
"""The values of a zone that are not names: `client` is the zone of the exporting person."""
_TRUE = {"checked": "true", "": "false"}

Files = Mapping[str, bytes]


def convert_base(source: Path, bundle: BundleFile, zone: str | None) -> None:
    """Add all tables of a base. Raises `ValueError` when it is none."""
    files = dict(_files(source))
    schema = next((files[name] for name in files if name.endswith("schema.json")), None)
    if schema is None:
        raise ValueError("schema.json is missing.")
    tables = json.loads(schema)["tables"]
    databases: dict[str, Converted] = {}
    times = Times(bundle.report, zone)
    sheets = {table["id"]: _read(files, table, times) for table in tables}
    for table in tables:
        _note(bundle, table)
        if _csv_of(files, table) is None:
            bundle.report.lose(f"{table['name']}: no CSV file, so no records")
        databases[table["id"]] = convert_table(bundle, _table(table, *sheets[table["id"]]), None)
    linked: set[str] = set()
    for table in tables:
        for field in table["fields"]:
            if field["type"] == _LINK and field["id"] not in linked:
                inverse = _inverse(tables, table, field)
                linked |= {field["id"], *({inverse["id"]} if inverse else ())}
                _relate(bundle, table, field, inverse, databases, sheets[table["id"]])


def _files(source: Path) -> Iterator[tuple[str, bytes]]:
    if source.is_dir():
        for path in sorted(source.rglob("*")):
            if path.is_file():
                yield path.name, path.read_bytes()
        return
    with zipfile.ZipFile(source) as archive:
        for name in archive.namelist():
            if not name.endswith("/"):
                yield name.rpartition("/")[2], archive.read(name)


def _read(
    files: Files, table: Mapping[str, Any], times: Times
) -> tuple[list[str], list[list[str | None]]]:
    """Headers and rows of a table's CSV; none when it has no file."""
    content = _csv_of(files, table) or b""
    rows = list(read_lines(io.StringIO(content.decode("utf-8-sig"), newline=""), longest=1 << 30))
    if not rows:
        return [field["name"] for field in table["fields"]], []
    headers = rows[0]
    readers_by_header = {field["name"]: _reader(times, table, field) for field in table["fields"]}
    readers = [readers_by_header.get(header, _as_it_is) for header in headers]
    return headers, [
        [read(cell) for read, cell in zip(readers, [*row, *[""] * len(headers)], strict=False)]
        for row in rows[1:]
        if row
    ]


def _csv_of(files: Files, table: Mapping[str, Any]) -> bytes | None:
    """The CSV of a table: by its name, or by that with the name of a view behind it."""
    letters = _letters(table["name"])
    for view in ("", *(view.get("name", "") for view in table.get("views", ()))):
        for name, content in files.items():
            if name.endswith(".csv") and _letters(name[:-4]) == letters + _letters(view):
                return content
    return None


def _letters(name: str) -> str:
    """A name without what no file may be called."""
    return "".join(sign for sign in name.casefold() if sign.isalnum())


def _as_it_is(text: str) -> str | None:
    return text or None


def _reader(
    times: Times, table: Mapping[str, Any], field: Mapping[str, Any]
) -> Callable[[str], str | None]:
    """The reader of the cells of a field: a CSV has them as the base shows them."""
    kind, options = _type(field)
    if kind == "checkbox":
        return lambda text: _TRUE.get(text, text)
    if kind in _MOMENTS:
        day_first = (options.get("dateFormat") or {}).get("name") == "european"
        conventions = Conventions("dmy" if day_first else "mdy")
        zone = _ZONES.get(options.get("timeZone", ""), options.get("timeZone"))
        label = table["name"]
        return lambda text: times.plain(label, text.strip(), conventions, zone) or text or None
    return _as_it_is


def _type(field: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """The type of the values of a field and how they are written; of a computed one, its result."""
    options = field.get("options") or {}
    result = options.get("result")
    if field["type"] in _COMPUTED and isinstance(result, Mapping) and result.get("type") in _KINDS:
        return result["type"], result.get("options") or {}
    return field["type"], options


def _table(table: Mapping[str, Any], headers: list[str], rows: list[list[str | None]]) -> Table:
    kinds: dict[str, FieldKind | None] = dict.fromkeys(headers, FieldKind.TEXT)
    options = {field["name"]: _options(field) for field in table["fields"]}
    title = None
    for field in table["fields"]:
        kinds[field["name"]] = _KINDS.get(_type(field)[0], FieldKind.LONG_TEXT)
        if field["type"] == _LINK or field["type"] in _GONE:
            kinds[field["name"]] = None
        if field["id"] == table.get("primaryFieldId"):
            title = field["name"]
    return Table(table["name"], headers, rows, kinds, title, options)


def _options(field: Mapping[str, Any]) -> list[Option]:
    """The choices of a field, as the base has them; their colors by the first word of each."""
    keys: set[str] = set()
    options = []
    for place, choice in enumerate((field.get("options") or {}).get("choices") or ()):
        name = str(choice.get("name") or "").strip()[:200]
        if name:
            key = first_free(slug(name, "option"), keys)
            keys.add(key)
            color = re.match(r"[a-z]*", str(choice.get("color") or ""))
            shade = color[0] if color and color[0] else "gray"
            options.append(Option(id=str(new_id()), key=key, name=name, color=shade, order=place))
    return options


def _note(bundle: BundleFile, table: Mapping[str, Any]) -> None:
    """Report the parts of a table without an equivalent."""
    for field in table["fields"]:
        if warning := _AS_TEXT.get(field["type"]):
            bundle.report.lose(f"{table['name']}: {warning}")
        elif warning := _GONE.get(field["type"]):
            bundle.report.lose(f"{table['name']}: {warning} are left out")
        elif field["type"] not in _KINDS and field["type"] != _LINK:
            bundle.report.lose(f"{table['name']}: fields of the kind {field['type']} become text")
    views = len(table.get("views") or ())
    bundle.report.lose(f"{table['name']}: views: a schema only has their names", views)
    described = sum(bool(part.get("description")) for part in (table, *table["fields"]))
    bundle.report.lose(f"{table['name']}: descriptions", described)


def _inverse(
    tables: list[dict[str, Any]], table: Mapping[str, Any], field: Mapping[str, Any]
) -> Mapping[str, Any] | None:
    """The field that shows a link from the other side; the only one there, where none is named."""
    options = field.get("options") or {}
    links = [
        (target, link)
        for target in tables
        for link in target["fields"]
        if link["type"] == _LINK and link["id"] != field["id"]
    ]
    inverse_id = options.get("inverseLinkFieldId")
    if inverse_id is not None:
        return next((link for _, link in links if link["id"] == inverse_id), None)
    back = [
        link
        for target, link in links
        if target["id"] == options.get("linkedTableId")
        and (link.get("options") or {}).get("linkedTableId") == table["id"]
        and (link.get("options") or {}).get("inverseLinkFieldId") is None
    ]
    return back[0] if len(back) == 1 else None


def _relate(
    bundle: BundleFile,
    table: Mapping[str, Any],
    field: Mapping[str, Any],
    inverse: Mapping[str, Any] | None,
    databases: Mapping[str, Converted],
    sheet: tuple[list[str], list[list[str | None]]],
) -> None:
    """Add a relation, the field that shows it from the other side, and its links."""
    other_id = str((field.get("options") or {}).get("linkedTableId"))
    if other_id not in databases:
        bundle.report.lose(f"{table['name']}: links to tables of other bases")
        return
    own, other = databases[table["id"]], databases[other_id]
    label = table["name"] if inverse is None else inverse["name"]
    field_id = add_relation(bundle, Side(own, field["name"]), Side(other, label))
    _link(bundle, table["name"], field["name"], field_id, own, other, sheet)


def _link(
    bundle: BundleFile,
    table: str,
    header: str,
    field_id: UUID,
    own: Converted,
    other: Converted,
    sheet: tuple[list[str], list[list[str | None]]],
) -> None:
    """Add the links of a column, which names other records by their titles."""
    headers, rows = sheet
    if header not in headers:
        return
    place = headers.index(header)
    for record, row in zip(own.records, rows, strict=True):
        names = next(csv.reader([row[place] or ""]), []) if record is not None else []
        targets = dict.fromkeys(other.titles.get(name.strip()) for name in names)
        for number, target in enumerate(targets):
            if target is None:
                bundle.report.lose(f"{table}: links in {header} to missing records")
            else:
                bundle.link(field_id, str(record), target, number)
        twice = sum(name.strip() in other.twice for name in names)
        bundle.report.lose(
            f"{table}: links in {header} by an ambiguous title go to the first match",
            twice,
        )
