"""The source of a run's rows, and the fields that the columns of its table fill (ADR 0125).

The rows come from fetched pages, a stored file or the body of the caller. A column that was
read before keeps its field. JSON leaves empty keys out: a column that no row has is empty in all of
them. Any other table says which columns it has: a field whose column it lacks keeps its values.
"""

import asyncio
import base64
import hashlib
import shutil
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from pathlib import Path

from pydantic_core import to_json

from activities.sources.fetchers import Wanted, copied, file_at
from activities.sources.fetching import FORMATS, Fetched, is_blank
from activities.sources.readers.table import column_named
from activities.sources.reading import Mapped
from activities.sources.reading_process import Fill
from models.core.base import JsonObject
from models.core.keys import first_free, slug
from models.data.fields.rules.fields import TITLE_KEY, FieldKind, FieldSpec
from models.sources.data_source_runs.rules import KnownColumn, KnownColumns
from models.sources.data_source_runs.tables import SourceRunRow
from models.sources.data_source_runs.targets import is_read_again, known_columns
from models.sources.data_sources.rules import DataSourceKind, FieldMapping, WriteMode
from models.sources.tabular.rules import options as file_options
from models.sources.tabular.rules.conversion import StagedLines
from models.sources.tabular.rules.formats import Conventions
from models.sources.tabular.rules.options import ReadOptions, TableFormat, read_options
from models.sources.tabular.rules.rejections import MAX_REJECTIONS
from runtime.database import Database
from runtime.object_store import ObjectStore

PAGES = "data-source-runs"
"""The prefix of the keys of all fetched pages."""


def page_key(run: SourceRunRow, page: int) -> str:
    """The object of a fetched page."""
    return f"{PAGES}/{run.workspace_id}/{run.id}/{page}"


def wanted_by(run: SourceRunRow) -> Wanted:
    """The source of a run, as it is fetched in the name of the user who requested it."""
    mapping, keys = run.plan["fields"], run.plan["keyFields"]
    return Wanted(
        run.workspace_id,
        run.actor_user_id,
        DataSourceKind(run.plan["kind"]),
        run.plan["config"],
        [one["sourcePath"] for one in mapping if one["fieldKey"] in keys],
    )


def read_options_of(request: Wanted, fetched: Fetched) -> ReadOptions:
    """The options that read the files of a source, by its config and by what it said of them."""
    named = fetched.format or request.config.get("format")
    usual = FORMATS.get(request.kind, TableFormat.JSON)
    options = read_options(request.config, TableFormat(named or usual), fetched.charset)
    if not fetched.queried:
        return options
    return replace(options, query=request.config["query"], params=request.config["params"])


def fetched_by(run: SourceRunRow) -> Fetched:
    """The part of a run's source that has been fetched."""
    return Fetched(**run.progress.get("fetched", {}))


def content_with(before: str, page: Path, state: Fetched) -> str:
    """The digest of all pages with this one: equal ones are read as the same rows."""
    with page.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    read_as = f"{before} {digest} {state.charset} {state.format}"
    return hashlib.sha256(read_as.encode()).hexdigest()


@asynccontextmanager
async def scratch() -> AsyncIterator[Path]:
    """A directory that is removed when the block ends."""
    directory = Path(tempfile.mkdtemp(prefix="workspace-source-"))
    try:
        yield directory
    finally:
        # A directory that cannot be removed must not fail a run that has succeeded.
        shutil.rmtree(directory, ignore_errors=True)


def bytes_in(directory: Path) -> int:
    """The bytes of the files of a directory, while others write and remove them."""
    size = 0
    for path in directory.iterdir():
        # A page that was sent is removed while others are counted.
        with suppress(FileNotFoundError):
            size += path.stat().st_size
    return size


def are_blank(files: Sequence[Path]) -> bool:
    """True when files hold nothing but white space."""
    return all(is_blank(path) for path in files)


async def options_as_before(
    database: Database, run: SourceRunRow, source: Wanted, files: Sequence[Path]
) -> tuple[ReadOptions, KnownColumns]:
    """The options that read a source as it was read before, and its known columns.

    A blank file of such a source has no rows in any format.
    """
    async with database.transaction() as work:
        history = await known_columns(work, run)
    options = read_options_of(source, fetched_by(run))
    if options.query is None and history.columns and await asyncio.to_thread(are_blank, files):
        options = replace(options, format=TableFormat.NDJSON)
    if history.config == config_digest(run):
        options = replace(options, usual_path=history.json_path)
    return options, history


async def input_files(
    database: Database, store: ObjectStore, run: SourceRunRow, directory: Path
) -> Sequence[Path]:
    """The files of a run in a directory. Raises SourceProblem when one was deleted."""
    config = run.plan["config"]
    if "content" in config:
        path = directory / "content"
        path.write_bytes(base64.b64decode(config["content"]))
        return [path]
    if "fileId" in config:
        async with database.transaction() as work:
            return [await file_at(work, store, run.workspace_id, config, directory)]
    pages = range(run.progress["pages"])
    return [await copied(store, page_key(run, page), directory / f"{page}") for page in pages]


MAX_HEADERS = 1_000
"""Names of columns that are remembered: rows may bring new ones without end."""
_TEXTS = frozenset({FieldKind.TEXT, FieldKind.LONG_TEXT, FieldKind.SELECT})
"""Kinds that columns of text suggest, depending on the number of rows."""


@dataclass(frozen=True, slots=True)
class ReadColumns:
    """The columns of a table as a run reads them.

    `mapping` says which fields its rows fill, `places` the header of the column of each; a field
    without one is empty in every row. The fields of `unfilled` were filled before, and keep their
    values. `suggests` says that no mapping was given. `head` is the part of the progress about the
    table: its changes, for people, and its columns, for the next run.
    """

    mapping: Sequence[FieldMapping]
    places: Mapping[str, str]
    unfilled: Sequence[KnownColumn]
    has_rows: bool
    suggests: bool
    head: JsonObject = field(default_factory=dict)


def config_digest(run: SourceRunRow) -> str:
    """A digest that identifies the config of a run."""
    return sha256(to_json(run.plan["config"])).hexdigest()


def looked_for(
    run: SourceRunRow,
    history: KnownColumns,
    fields: Mapping[str, FieldSpec],
    before: Conventions | None,
) -> Mapped:
    """The fields that columns fill, as a table is asked how their cells are read.

    `fields` are the fields of the schema. A column that was read before fills the same field again.
    """
    targets = {key: spec.kind for key, spec in fields.items()}
    for column in history.columns:
        if column.field_key in fields:
            targets[slug(column.source_path, "column")] = fields[column.field_key].kind
    mapped = run.plan["fields"]
    return {
        "sources": kinds_of(mapped, fields),
        "targets": targets,
        "only_mapped": bool(mapped),
        "before": before,
        "row_keys": run.plan["keyFields"],
    }


def kinds_of(
    mapped: Sequence[JsonObject], fields: Mapping[str, FieldSpec]
) -> Mapping[str, FieldKind]:
    """The kinds of the fields that columns are mapped to; a field that is there has its own."""
    return {
        entry["sourcePath"]: fields[entry["fieldKey"]].kind
        if entry["fieldKey"] in fields
        else FieldKind(entry["kind"])
        for entry in mapped
    }


def mapping_of(mapped: Sequence[JsonObject], described: JsonObject) -> list[FieldMapping]:
    """The mapping of a table that is read for the first time."""
    if mapped:
        return [FieldMapping.model_validate(entry) for entry in mapped]
    return _suggested(described["columns"], KnownColumns(), described["headers"], stays=False)


def described_columns(
    run: SourceRunRow,
    described: JsonObject,
    options: file_options.ReadOptions,
    history: KnownColumns,
) -> ReadColumns:
    """The way to read the columns of a table, as it describes them. Raises SourceProblem."""
    of_objects = options.format in {file_options.TableFormat.JSON, file_options.TableFormat.NDJSON}
    # A mapping is read as it is from a table that has its columns without any rows.
    by_rows = of_objects or not run.plan["fields"]
    has_rows = described["rowsRead"] > 0 or described["sampled"]
    return read_columns(
        run,
        described,
        history,
        sparse=of_objects and run.plan["kind"] != DataSourceKind.SQL and is_read_again(run),
        has_rows=has_rows if by_rows else bool(described["headers"]),
    )


def read_columns(
    run: SourceRunRow,
    described: JsonObject,
    history: KnownColumns,
    *,
    sparse: bool,
    has_rows: bool,
) -> ReadColumns:
    """The way to read the columns of a described table; a `sparse` one leaves empty cells out.

    Raises SourceProblem for a missing column.
    """
    headers = described["headers"]
    if run.plan["fields"]:
        mapping = [FieldMapping.model_validate(entry) for entry in run.plan["fields"]]
        places = places_of(mapping, headers, sparse=sparse)
    else:
        stays = not has_rows or (sparse and history.config in {"", config_digest(run)})
        mapping = _suggested(
            described["columns"] if has_rows else [], history, headers, stays=stays
        )
        places = {entry.field_key: entry.source_path for entry in mapping}
        if sparse or not headers:
            mapping += [
                _kept(column) for column in history.columns if column.field_key not in places
            ]
        left_out = run.plan.get("leftOut", ())
        mapping = [entry for entry in mapping if entry.field_key not in left_out]
    if has_rows and mapping and not any(entry.field_key in places for entry in mapping):
        raise _missing(mapping[0].source_path, headers)
    if has_rows and not run.plan["fields"]:
        _check_known(run, history, headers)
    filled = {entry.field_key for entry in mapping}
    columns = ReadColumns(
        mapping=mapping,
        places=places,
        unfilled=[column for column in history.columns if column.field_key not in filled],
        has_rows=has_rows,
        suggests=not run.plan["fields"],
    )
    return replace(columns, head=_head(run, columns, described, history))


def _check_known(run: SourceRunRow, history: KnownColumns, headers: Sequence[str]) -> None:
    """Refuse a table without any column that its source had: it is another one, or an error."""
    before = {slug(column.source_path, "column") for column in history.columns}
    is_same = history.config in {"", config_digest(run)}
    if before and is_same and before.isdisjoint(slug(name, "column") for name in headers):
        raise _missing(history.columns[0].source_path, headers)


def _head(
    run: SourceRunRow, columns: ReadColumns, described: JsonObject, history: KnownColumns
) -> JsonObject:
    """The part of the progress about the table."""
    remembered = _remembered(run, columns, described, history) if columns.has_rows else None
    return {
        "sheetName": described["sheetName"],
        "sheets": described["sheets"][: file_options.MAX_SHEETS],
        "mapping": [entry.to_json() for entry in columns.mapping],
        "conventions": described["conventions"],
        "columns": _notes(columns, described, history),
        "unfilled": [column.field_key for column in columns.unfilled],
        "remembered": remembered,
        "stated": max(described["stated"] or 0, fetched_by(run).stated or 0),
    }


def _notes(columns: ReadColumns, described: JsonObject, history: KnownColumns) -> JsonObject:
    """The remarks on the columns, as `RunColumns` has them."""
    headers = described["headers"]
    absent = [entry for entry in columns.mapping if entry.field_key not in columns.places]
    named = columns.unfilled if columns.suggests and headers else ()
    return {
        "added": _added(headers, history, columns.places) if columns.has_rows else [],
        "missing": [
            *(_noted(entry, valuesKept=False) for entry in absent if columns.has_rows),
            *(_noted(column, valuesKept=True) for column in named),
        ],
        "changed": _changed(described, history) if columns.suggests else [],
    }


def filling(run: SourceRunRow, specs: Sequence[FieldSpec], columns: ReadColumns) -> Fill:
    """The request for rows as values of the fields of a mapping."""
    filled = [spec for spec in specs if spec.key in columns.places or spec.required]
    unfilled = [column.field_key for column in columns.unfilled]
    # Appended rows are new records, also with keys that others have.
    is_keyed = WriteMode(run.plan["writeMode"]) is not WriteMode.APPEND
    row_keys = run.plan["keyFields"] if is_keyed else ()
    return Fill(
        sources=[columns.places.get(spec.key) for spec in filled],
        fields=filled,
        lines=StagedLines(run.id, row_keys, unfilled),
        conventions=Conventions.of(columns.head["conventions"]),
        rejections=MAX_REJECTIONS,
    )


def _suggested(
    described: Sequence[JsonObject], history: KnownColumns, headers: Sequence[str], *, stays: bool
) -> list[FieldMapping]:
    """The mapping of the present columns: known ones first, others to the remaining fields.

    A new column takes the field of a known one that is missing, unless that `stays` with its field.
    """
    known_paths = {column.source_path for column in history.columns}
    used_keys = {
        column.field_key for column in history.columns if stays or column.source_path in headers
    }
    kinds = {suggestion["source_path"]: suggestion["kind"] for suggestion in described}
    mapping = [
        _kept(column, kinds.get(column.source_path))
        for column in history.columns
        if column.source_path in headers
    ]
    for suggestion in described:
        if suggestion["source_path"] in known_paths:
            continue
        key = suggestion["suggested_key"]
        if key in used_keys:
            key = first_free(slug(suggestion["source_path"], "column"), {*used_keys, TITLE_KEY})
        used_keys.add(key)
        new = KnownColumn(suggestion["source_path"], key, suggestion["label"], suggestion["kind"])
        mapping.append(_kept(new))
    return mapping


def _kept(column: KnownColumn, kind: str | None = None) -> FieldMapping:
    """A column with the field that it fills."""
    entry = {"sourcePath": column.source_path, "fieldKey": column.field_key, "label": column.label}
    return FieldMapping.model_validate(
        {**entry, "kind": kind or column.kind or FieldKind.TEXT.value}
    )


def places_of(
    mapping: Sequence[FieldMapping], headers: Sequence[str], *, sparse: bool = False
) -> dict[str, str]:
    """The header of the column that fills each field: named by itself, or by its letter.

    Raises SourceProblem for a missing column, unless it is left out as empty.
    """
    places: dict[str, str] = {}
    for entry in mapping if headers else ():
        source = entry.source_path
        header = column_named(headers, source) if source in headers or not sparse else None
        if header is not None:
            places[entry.field_key] = header
        elif not sparse or any(name.startswith(f"{source}.") for name in headers):
            raise _missing(source, headers)
    return places


def _missing(source: str, headers: Sequence[str]) -> file_options.SourceProblem:
    names = ", ".join(headers[:20])
    return file_options.SourceProblem(
        file_options.ErrorKind.MAPPING,
        f"Column {source[:100]} not found. Columns: {names}.",
        final=True,
    )


def _added(
    headers: Sequence[str], history: KnownColumns, places: Mapping[str, str]
) -> list[JsonObject]:
    """The columns that the source never had before; none when it is read for the first time."""
    keys = {header: key for key, header in places.items()}
    new = [name for name in headers if name not in history.headers] if history.headers else []
    return [{"sourcePath": name, "fieldKey": keys.get(name)} for name in new]


def _noted(column: FieldMapping | KnownColumn, **facts: object) -> JsonObject:
    return {"sourcePath": column.source_path, "fieldKey": column.field_key, **facts}


def _changed(described: JsonObject, history: KnownColumns) -> list[JsonObject]:
    """The columns whose cells suggest another kind than they did."""
    kinds = _kinds(described)
    return [
        _noted(column, before=column.kind, kind=kinds[column.source_path])
        for column in history.columns
        if column.kind is not None
        and column.source_path in kinds
        and _comparable(column.kind) != _comparable(kinds[column.source_path])
    ]


def _comparable(kind: str) -> str:
    """The kind of a column; all kinds of text are one."""
    return FieldKind.TEXT if kind in _TEXTS else kind


def _kinds(described: JsonObject) -> dict[str, str]:
    """The kinds that columns suggest, without empty ones."""
    rows = described["rowsRead"]
    columns = described["columns"]
    return {
        column["source_path"]: column["kind"] for column in columns if column["null_count"] < rows
    }


def _remembered(
    run: SourceRunRow, columns: ReadColumns, described: JsonObject, history: KnownColumns
) -> JsonObject:
    """The columns for the next run, as `SourceColumns` has them, but for ids of fields."""
    before = {column.source_path: column.kind for column in history.columns}
    kinds = {**before, **_kinds(described)} if columns.suggests else {}
    read = []
    for entry in columns.mapping:
        path = columns.places.get(entry.field_key, entry.source_path)
        is_there = entry.field_key in columns.places
        read.append(
            KnownColumn(path, entry.field_key, entry.label, kinds.get(path), found=is_there)
        )
    read += [replace(column, found=False) for column in columns.unfilled]
    headers = [*history.headers, *described["headers"]]
    return {
        "columns": [asdict(column) for column in read],
        "headers": [*dict.fromkeys(headers)][:MAX_HEADERS],
        "config": config_digest(run),
        "json_path": described["jsonPath"],
    }
