"""An Airtable-style base: `schema.json` and a CSV for each table, in a directory or a zip."""

import csv
import io
import json
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cli.convert.bundle_file import BundleFile
from cli.convert.tables import Converted, Table, convert_table
from models.core.keys import first_free, slug
from models.data.databases.rules.fields import FieldSpec
from models.data.databases.rules.kinds import FieldKind
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
}
_AS_TEXT = {
    "formula": "formulas come in as the text they last gave",
    "rollup": "rollups come in as the text they last gave",
    "multipleLookupValues": "lookups come in as the text they last gave",
    "count": "counts come in as the number they last gave",
    "autoNumber": "automatic numbers come in as plain numbers",
    "singleCollaborator": "collaborators come in as text",
    "multipleCollaborators": "collaborators come in as text",
    "createdBy": "collaborators come in as text",
    "lastModifiedBy": "collaborators come in as text",
    "createdTime": "times of changes come in as text",
    "lastModifiedTime": "times of changes come in as text",
    "multipleAttachments": "attachments come in as text: a CSV has their addresses alone",
    "barcode": "bar codes come in as text",
    "aiText": "texts of AI fields come in as plain text",
}
_LINK = "multipleRecordLinks"
_GONE = {"button": "buttons", "externalSyncSource": "names of synchronised sources"}
_TRUE = {"checked": "true", "": "false"}

Files = Mapping[str, bytes]


def convert_base(source: Path, bundle: BundleFile) -> None:
    """Add all tables of a base. Raises `ValueError` when it is none."""
    files = dict(_files(source))
    schema = next((files[name] for name in files if name.endswith("schema.json")), None)
    if schema is None:
        raise ValueError("There is no schema.json in it.")
    tables = json.loads(schema)["tables"]
    made: dict[str, Converted] = {}
    read = {table["id"]: _read(files, table) for table in tables}
    for table in tables:
        _note(bundle, table)
        made[table["id"]] = convert_table(bundle, _table(table, *read[table["id"]]), None)
    taken = {own: set(one.keys) for own, one in made.items()}
    known: set[str] = set()
    for table in tables:
        for field in table["fields"]:
            if field["type"] == _LINK and field["id"] not in known:
                known |= {field["id"], field.get("options", {}).get("inverseLinkFieldId", "")}
                _relate(bundle, tables, table, field, made, taken, read[table["id"]])


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


def _read(files: Files, table: Mapping[str, Any]) -> tuple[list[str], list[list[str | None]]]:
    """Headers and rows of a table's CSV; none when it has no file."""
    content = files.get(f"{table['name']}.csv", b"")
    rows = list(csv.reader(io.StringIO(content.decode("utf-8-sig"))))
    if not rows:
        return [field["name"] for field in table["fields"]], []
    headers = rows[0]
    checkboxes = {field["name"] for field in table["fields"] if field["type"] == "checkbox"}
    return headers, [
        [
            _TRUE.get(value, value) if header in checkboxes else value or None
            for header, value in zip(headers, [*row, *[""] * len(headers)], strict=False)
        ]
        for row in rows[1:]
    ]


def _table(table: Mapping[str, Any], headers: list[str], rows: list[list[str | None]]) -> Table:
    kinds: dict[str, FieldKind | None] = dict.fromkeys(headers, FieldKind.TEXT)
    title = None
    for field in table["fields"]:
        kinds[field["name"]] = _KINDS.get(field["type"], FieldKind.LONG_TEXT)
        if field["type"] == _LINK or field["type"] in _GONE:
            kinds[field["name"]] = None
        if field["id"] == table.get("primaryFieldId"):
            title = field["name"]
    return Table(table["name"], headers, rows, kinds, title)


def _note(bundle: BundleFile, table: Mapping[str, Any]) -> None:
    """Tell what of a table has no equivalent."""
    for field in table["fields"]:
        if told := _AS_TEXT.get(field["type"]):
            bundle.report.lose(f"{table['name']}: {told}")
        elif told := _GONE.get(field["type"]):
            bundle.report.lose(f"{table['name']}: {told} are left out")
        elif field["type"] not in _KINDS and field["type"] != _LINK:
            bundle.report.lose(f"{table['name']}: fields of the kind {field['type']} are text")
    views = [view for view in table.get("views", ()) if view.get("type") != "grid"]
    bundle.report.lose(f"{table['name']}: views, of which a schema has the names alone", len(views))


def _relate(  # both sides of a relation
    bundle: BundleFile,
    tables: list[dict[str, Any]],
    table: Mapping[str, Any],
    field: Mapping[str, Any],
    made: Mapping[str, Converted],
    taken: dict[str, set[str]],
    read: tuple[list[str], list[list[str | None]]],
) -> None:
    """Add a relation, the field that shows it from the other side, and its links."""
    other_id = field.get("options", {}).get("linkedTableId")
    if other_id not in made:
        bundle.report.lose(f"{table['name']}: links to tables of other bases")
        return
    own, other = made[table["id"]], made[other_id]
    inverse_id = field["options"].get("inverseLinkFieldId")
    named = next(
        (one["name"] for each in tables for one in each["fields"] if one["id"] == inverse_id),
        table["name"],
    )
    one, two = new_id(), new_id()
    sides = (
        (table["id"], own, field["name"], one, other, two),
        (other_id, other, named, two, own, one),
    )
    for table_id, side, label, field_id, target, inverse in sides:
        key = first_free(slug(label, "field"), taken[table_id] | {"title"})
        taken[table_id].add(key)
        settings = {
            "databaseId": target.id,
            "cardinality": "many",
            "symmetric": False,
            "onDelete": "unlink",
            "inverseFieldId": str(inverse),
        }
        spec = FieldSpec(
            id=field_id,
            key=key,
            label=label,
            kind=FieldKind.RELATION,
            settings=settings,
            position=len(taken[table_id]) + 1000,
        )
        bundle.field(side.id, spec)
    _link(bundle, table["name"], field["name"], one, own, other, read)


def _link(  # both sides of a relation
    bundle: BundleFile,
    table: str,
    header: str,
    field_id: Any,
    own: Converted,
    other: Converted,
    read: tuple[list[str], list[list[str | None]]],
) -> None:
    """Add the links of a column, which names other records by their titles."""
    headers, rows = read
    if header not in headers:
        return
    place = headers.index(header)
    for record, row in zip(own.records, rows, strict=True):
        names = next(csv.reader([row[place] or ""]), []) if record is not None else []
        targets = dict.fromkeys(other.titles.get(name.strip()) for name in names)
        for number, target in enumerate(targets):
            if target is None:
                bundle.report.lose(f"{table}: links of {header} to records that are not there")
            else:
                bundle.link(field_id, str(record), target, number)
