"""The preview of an import: its first rows, its target, and the fields its columns go to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from starlette.responses import Response

from api.console.entered import Entered, Fields, Form, given, read_as, redisplays
from api.console.forms import paged
from api.console.integrations.resources import Outcome, outcome_of
from api.console.rendering import console_page, see_other
from api.console.routing import page_router
from api.console.words import named, queried
from api.kernel.routing import ApiRequest, QueryId
from api.routers.sources import spreadsheet_imports as api
from api.routers.sources.spreadsheet_imports import BRING_IN, IMPORTS
from models.content.files.commands import register_private_file
from models.core.access.rules import Scope
from models.core.base import Id, JsonObject
from models.core.keys import first_free, slug
from models.core.pagination import MAX_LIMIT
from models.data.databases.field_changes import create_field
from models.data.databases.store import list_databases
from models.data.fields.queries import load_schema, require_edit
from models.data.fields.rules import fields as field_specs
from models.data.fields.shapes import CreateField
from models.messages.jobs.store import JobRow, own_job
from models.sources.data_source_runs.imports import accept_import, accept_import_preview
from models.sources.data_source_runs.rules import ImportMode
from models.sources.data_source_runs.shapes import ImportSpreadsheet, PreviewImport
from models.sources.data_sources.commands import preview_outcome
from models.sources.data_sources.queries import DataSourcePreview, PreviewColumn
from models.sources.tabular.rules.options import TableFormat
from runtime.errors import NotFoundError, ValidationError
from runtime.ids import new_id, parse_id
from runtime.temporal.workflow_kinds import WorkflowKind

router = page_router()

_PREVIEWS = f"{IMPORTS.removeprefix('/v1')}/previews"
_PREVIEW = f"{_PREVIEWS}/{{previewId}}"
_LOOK = replace(paged(BRING_IN), idempotent=False)
_START = replace(paged(BRING_IN), joins=True)
_READ = replace(_START, scopes=[*BRING_IN.scopes, Scope.FILES_WRITE], upload=True, safe=True)
_CHECK = replace(_START, safe=True)
MOST_SHOWN_ROWS, MOST_SHOWN_COLUMNS = 10, 30
HEADER_ROWS = [
    ("", "Automatic"),
    ("0", "None"),
    *((str(row), f"Row {row}") for row in range(1, 21)),
]
DATE_ORDERS = [
    ("", "Automatic"),
    ("dmy", "Day, month, year"),
    ("mdy", "Month, day, year"),
    ("ymd", "Year, month, day"),
]
SEPARATORS = [("", "Automatic"), (".", "Point (1,234.5)"), (",", "Comma (1.234,5)")]
MODES = [
    (ImportMode.INSERT.value, "Add all rows"),
    (ImportMode.UPSERT.value, "Add new rows and update matching records"),
    (ImportMode.REPLACE.value, "Replace all records"),
]


class Source(Form):
    """A file beside the form, or the text of one, and the database it becomes or is added to."""

    label: str | None = None
    format: str | None = None
    text: str | None = None
    database: str | None = None


class Sheet(Form):
    """The way a file is to be read, and the database that was chosen; an empty option is open."""

    sheet_name: str | None = None
    header_row: str | None = None
    date_order: str | None = None
    decimal_separator: str | None = None
    yes_words: str | None = None
    no_words: str | None = None
    database: str | None = None


@router.post(_PREVIEWS, access=_READ, batch=True)
async def preview_by_form(request: ApiRequest, body: Source) -> Response:
    """Read the first rows of a file or a text, and lead to where they are shown."""
    fields: JsonObject = {"format": body.format}
    if request.uploaded is not None:
        fields |= {"kind": "file", "fileId": str(await _stored(request))}
    elif body.text is not None:
        known = body.format or TableFormat.CSV.value
        fields |= {"kind": "inline", "text": body.text, "format": known}
    else:
        raise ValidationError.at("text", "Choose a file, or paste rows.")
    file_name = None if request.uploaded is None else request.uploaded.name.rpartition(".")[0]
    return await _read(request, fields, body.label or file_name or "Imported rows", body.database)


@router.post(f"{_PREVIEW}/sheet", access=_CHECK, batch=True)
async def preview_sheet(request: ApiRequest, body: Sheet) -> Response:
    """Read the file again: another sheet, another header row, dates and numbers otherwise."""
    job = await _own(request)
    fields = _source(job.input)
    if body.sheet_name is not None:
        fields["sheetName"] = body.sheet_name
    row = body.header_row
    fields["headerRow"] = int(row) if row is not None and row.isdecimal() else None
    options: JsonObject = {
        "dateOrder": body.date_order,
        "decimalSeparator": body.decimal_separator,
        "booleanWords": _boolean_words(body.yes_words, body.no_words),
    }
    fields["options"] = {name: one for name, one in options.items() if one is not None}
    return await _read(request, fields, job.input["draft"]["label"], body.database)


def _boolean_words(yes: str | None, no: str | None) -> JsonObject | None:
    """The words with commas between them; None where the rows decide."""
    words = {
        name: [word.strip() for word in (text or "").split(",") if word.strip()]
        for name, text in (("true", yes), ("false", no))
    }
    return words if all(words.values()) else None


async def _mapping_again(request: ApiRequest, entered: Entered) -> Response:
    return await _shown(request, entered, parse_id(entered.texts.get("database", "")))


@router.post(f"{_PREVIEW}/check", access=_CHECK, batch=True)
@redisplays(_mapping_again)
async def check_mapping(request: ApiRequest, body: Fields) -> Response:
    """Read the rows again, and check them against the fields that the form maps them to."""
    target = parse_id(body.texts.get("database", ""))

    job, preview, mapped = await _mapped(request, target, body.texts)
    fields = {**_source(job.input), "fields": mapped.fields}
    if target is not None and not mapped.new_fields:
        fields |= {"targetDatabaseId": str(target), "keyFields": mapped.keys}
    entered = {f"into.{place}": "" for place in range(len(preview.columns))} | body.texts
    return await _read(request, fields, job.input["draft"]["label"], target, entered)


@router.get(_PREVIEW, access=_LOOK)
async def get_import_preview(request: ApiRequest, database: QueryId | None = None) -> Response:
    """Look at the first rows, and choose where their columns go."""
    return await _shown(request, None, database)


@router.post(f"{_PREVIEW}/start", access=_START, batch=True)
@redisplays(_mapping_again)
async def start_import_by_form(request: ApiRequest, body: Fields) -> Response:
    """Begin the import as the form maps it, and lead to where it is followed."""
    target = parse_id(body.texts.get("database", ""))

    job, preview, mapped = await _mapped(request, target, body.texts)
    if target is not None:
        for entry in mapped.new_fields:
            field = read_as(CreateField, given(field_body(entry)))
            await create_field(request.work, request.actor, target, field)
    values = {
        **_source(job.input),
        "options": _options_of(preview, job.input),
        "label": body.texts.get("label", ""),
        "targetDatabaseId": None if target is None else str(target),
        "fields": mapped.fields,
        "keyFields": mapped.keys,
        "mode": body.texts.get("mode", ImportMode.INSERT.value),
    }
    content = read_as(ImportSpreadsheet, given(values))
    outcome = await accept_import(request.work, request.actor, request.new_id, content)
    return see_other(f"/workspaces/{request.workspace_id}/imports/{outcome}")


async def _stored(request: ApiRequest) -> Id:
    """The id of the file that came with the form; only its sender and managers see it."""
    if request.upload.byte_size == 0:
        raise ValidationError.at("file", "The file is empty. Choose another file.")
    file_id, actor = new_id(), request.actor
    await register_private_file(
        request.work,
        request.upload,
        file_id=file_id,
        workspace_id=actor.workspace_id,
        user_id=actor.user_id,
    )
    return file_id


def _options_of(preview: DataSourcePreview, held: Mapping[str, Any]) -> JsonObject:
    """The options that the rows were shown with, so that all are read in the same way.

    Columns that are left out of the import may have decided them.
    """
    found = preview.proposed
    read_with = {} if found is None else found.model_dump(mode="json", by_alias=True)
    shown = {name: read_with[name] for name in _NOTATION if read_with.get(name) is not None}
    return {**shown, **held["draft"]["import"].get("options", {})}


_NOTATION = ("dateOrder", "decimalSeparator", "booleanWords")


async def _read(
    request: ApiRequest,
    fields: JsonObject,
    label: str,
    database: Id | str | None,
    entered: Mapping[str, str] | None = None,
) -> Response:
    """Accept a preview, and lead to it; it shows the form as it was `entered`."""
    body = read_as(PreviewImport, given(fields))
    kept = {name: one for name, one in fields.items() if name not in _NOT_KEPT}
    draft = {"label": label[:200], "import": kept, "entered": entered or {}}
    await accept_import_preview(request.work, request.actor, request.new_id, body, draft)
    path = f"/workspaces/{request.workspace_id}/imports/previews/{request.new_id}"
    return see_other(queried(path, database=database))


_NOT_KEPT = frozenset({"text", "content", "fields", "targetDatabaseId", "keyFields"})


async def _own(request: ApiRequest) -> JobRow:
    """The preview of the path. Raises NotFoundError, also for that of a data source."""
    job = await own_job(
        request.work, request.actor, WorkflowKind.DATA_SOURCE_PREVIEW, request.ids["previewId"]
    )
    if "import" not in job.input["draft"]:
        raise NotFoundError("import preview")
    return job


@dataclass(frozen=True, slots=True)
class Mapped:
    """The fields that columns fill, the new ones among them, and the keys of rows."""

    fields: Sequence[JsonObject]
    new_fields: Sequence[JsonObject]
    keys: Sequence[str]


async def _mapped(
    request: ApiRequest, target: Id | None, texts: Mapping[str, str]
) -> tuple[JobRow, DataSourcePreview, Mapped]:
    """The preview of the path, what it found, and the mapping of a form. Raises ValidationError."""
    job = await _own(request)
    preview = await preview_outcome(request.work, request.actor, job.id, last=True)
    assert preview is not None, "the last look raises while there is nothing"
    return job, preview, read_mapping(preview, await _fields(request, target), texts)


def _source(held: Mapping[str, Any]) -> JsonObject:
    """The source of a preview as a body names it; a text is kept with what was read."""
    source = {**held["draft"]["import"]}
    if "content" in held["config"]:
        source["content"] = held["config"]["content"]
    return source


async def _fields(request: ApiRequest, database_id: Id | None) -> field_specs.FieldSpecs | None:
    """The fields of the target; None for a new database. Raises DeniedError, NotFoundError."""
    if database_id is None:
        return None
    work, actor = request.work, request.actor
    await require_edit(work, actor, database_id, "You don't have permission to add records here.")
    return (await load_schema(work, actor.workspace_id, database_id)).fields


async def _shown(request: ApiRequest, refused: Entered | None, target: Id | None) -> Response:
    work, actor, preview_id = request.work, request.actor, request.ids["previewId"]
    job = await _own(request)
    entered = refused or Entered(job.input["draft"].get("entered", {}))
    outcome: Outcome[DataSourcePreview] = await outcome_of(
        preview_outcome(work, actor, preview_id, last=False)
    )
    fields = await _fields(request, target)
    listed = await list_databases(work, actor, request.page("databases", MAX_LIMIT, None))
    preview = outcome.value
    path = f"/workspaces/{request.workspace_id}/imports/previews/{preview_id}"
    lines = [] if preview is None else lines_of(preview, fields, entered)
    return await console_page(
        request,
        "import_preview.html",
        (api.preview_import, EXAMPLE),
        api.start_import,
        at=path,
        outcome=outcome,
        entered=entered,
        label=job.input["draft"]["label"],
        lines=lines,
        columns=[line.column.source_path for line in lines[:MOST_SHOWN_COLUMNS]],
        rows=[] if preview is None else preview.rows[:MOST_SHOWN_ROWS],
        target="" if target is None else str(target),
        databases=[("", "New database"), *((str(one.id), one.label) for one in listed.databases)],
        names=[] if fields is None else [one.label for one in fillable(fields)],
        kinds=NEW_KINDS,
        modes=MODES,
        chosen=_chosen(job.input["draft"]["import"]),
        header_rows=HEADER_ROWS,
        date_orders=DATE_ORDERS,
        separators=SEPARATORS,
    )


def _chosen(kept: Mapping[str, Any]) -> Mapping[str, str]:
    """The options of reading as the form has them."""
    options, row = kept.get("options", {}), kept.get("headerRow")
    words = options.get("booleanWords") or {}
    return {
        "yes_words": ", ".join(words.get("true", ())),
        "no_words": ", ".join(words.get("false", ())),
        "header_row": "" if row is None else str(row),
        "date_order": options.get("dateOrder", ""),
        "decimal_separator": options.get("decimalSeparator", ""),
    }


EXAMPLE = {"kind": "inline", "format": "csv", "text": "name,price\nTea,3"}

NEW_KINDS = {
    named(kind): kind
    for kind in (
        field_specs.FieldKind.TEXT,
        field_specs.FieldKind.LONG_TEXT,
        field_specs.FieldKind.NUMBER,
        field_specs.FieldKind.CURRENCY,
        field_specs.FieldKind.PERCENT,
        field_specs.FieldKind.CHECKBOX,
        field_specs.FieldKind.DATE,
        field_specs.FieldKind.DATETIME,
        field_specs.FieldKind.TIME,
        field_specs.FieldKind.DURATION,
        field_specs.FieldKind.SELECT,
        field_specs.FieldKind.MULTI_SELECT,
        field_specs.FieldKind.EMAIL,
        field_specs.FieldKind.URL,
        field_specs.FieldKind.PHONE,
        field_specs.FieldKind.JSON,
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


def fillable(fields: field_specs.FieldSpecs) -> list[field_specs.FieldSpec]:
    """The fields of a database that a column can fill."""
    return [spec for spec in fields.values() if spec.kind in field_specs.STORED_KINDS]


def lines_of(
    preview: DataSourcePreview, fields: field_specs.FieldSpecs | None, entered: Entered
) -> list[Line]:
    """The columns with the fields they go to; before a form was sent, as they suggest it.

    Without `fields` they go to a new database.
    """
    by_name = _by_name(fields or {})

    def line(place: int, column: PreviewColumn) -> Line:
        known = by_name.get(column.label.casefold()) or by_name.get(column.suggested_key)
        return Line(
            column,
            entered.text(f"into.{place}", column.label if known is None else known.label),
            entered.text(f"kind.{place}", column.kind.value),
            entered.ticked(f"key.{place}", f"key.{place}" in entered.texts),
            fields is None and column.suggested_key == field_specs.TITLE_KEY,
        )

    return [line(place, column) for place, column in enumerate(preview.columns)]


def read_mapping(
    preview: DataSourcePreview, fields: field_specs.FieldSpecs | None, texts: Mapping[str, str]
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
        raise ValidationError.at(
            "", "All columns are skipped. Enter a field name for at least one."
        )
    return Mapped(mapped, new_fields, keys)


def field_body(entry: JsonObject) -> JsonObject:
    """The body that creates a new field; its options follow from the rows."""
    body = {"label": entry["label"], "key": entry["fieldKey"], "kind": entry["kind"]}
    if entry["kind"] in field_specs.OPTION_KINDS:
        body["settings"] = {"allowCreate": True}
    return body


def _new(
    column: PreviewColumn, name: str, kind: str, taken: set[str], is_new_database: bool
) -> JsonObject:
    if is_new_database and column.suggested_key == field_specs.TITLE_KEY:
        return {
            "fieldKey": field_specs.TITLE_KEY,
            "label": name[:200],
            "kind": field_specs.FieldKind.TEXT.value,
        }
    field_kind = NEW_KINDS.get(named(kind))
    if field_kind is None:
        raise ValidationError.at("", f"Choose a kind for “{name}”.")
    key = first_free(slug(name, "column"), taken | {field_specs.TITLE_KEY})
    taken.add(key)
    return {"fieldKey": key, "label": name[:200], "kind": field_kind.value}


def _by_name(fields: field_specs.FieldSpecs) -> Mapping[str, field_specs.FieldSpec]:
    """The fields by their labels and keys, as people write them."""
    specs = fillable(fields)
    return {one.key: one for one in specs} | {one.label.casefold(): one for one in specs}
