"""Runs on the wire (interface.md#data-source-run, interface.md#spreadsheet-imports)."""

from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field, WithJsonSchema

from models.core.base import Id, Input, InputId, JsonObject, Label, Moment, Nullable, Shape
from models.core.http_requests import CallableUrl, Headers
from models.core.openapi import TEMPORAL, object_of
from models.core.pauses.store import WAITING_FOR
from models.data.fields.rules.fields import FieldKind
from models.messages.jobs.rules import JobStatus
from models.sources.data_source_runs import rules
from models.sources.data_sources.queries import KeyField
from models.sources.data_sources.rules import FieldMapping, TableOptions
from models.sources.external_resources.rules.resources import ProviderResource
from models.sources.tabular.rules.options import MAX_COLUMNS, ErrorKind, TableFormat

MAX_INLINE_ROWS = 10_000


class RefreshDataSource(Input):
    """Body of refresh: `force` removes rows even where the guard would stop the run."""

    force: bool = False


class RunStats(Shape):
    """The counts of a run so far; a row fetched is inserted, updated, unchanged or skipped.

    `cellsSkipped` could not be read as values of their fields, which are empty.
    """

    rows_fetched: int = 0
    rows_inserted: int = 0
    rows_updated: int = 0
    rows_unchanged: int = 0
    rows_removed: int = 0
    rows_skipped: int = 0
    cells_skipped: int = 0
    bytes_fetched: int = 0
    duration_ms: int = 0


class RunColumn(Shape):
    """A column of a source by its header or path, and the field that it fills, if it fills one."""

    source_path: str
    field_key: str | None = None


class MissingColumn(RunColumn):
    """A column that the source no longer has; `valuesKept` says that its field was left as it is.

    JSON leaves empty keys out, so there the field is emptied.
    """

    values_kept: bool


class ChangedColumn(RunColumn):
    """A column whose cells suggest another kind of field than they did `before`."""

    before: FieldKind
    kind: FieldKind


class SkippedCells(RunColumn):
    """The number of cells of a column that could not be read as values of its field."""

    cells: int


class RunColumns(Shape):
    """The columns that a run found otherwise than the runs before it, and those it could not read.

    The first run of a source has nothing to compare with. `rowsMissing` is the total of rows
    that the source states, less the rows that it gave.
    """

    new_columns: list[RunColumn] = Field(default_factory=list, alias="added")
    missing: list[MissingColumn] = Field(default_factory=list)
    changed_columns: list[ChangedColumn] = Field(default_factory=list, alias="changed")
    skipped_cells: list[SkippedCells] = Field(default_factory=list)
    rows_missing: int = 0


class RunProgress(Shape):
    """The progress of a run: the stage it is in, or ended in, and what it has read so far."""

    stage: rules.Stage
    rows: int
    bytes: int


class Reversal(Shape):
    """The outcome of reverting a run; records that changed since were kept."""

    reverted: int
    kept: int


class DataSourceRunDetail(Shape):
    """One run of a data source; with the trigger `retry` it tries `retryOfRunId` again.

    `note` says why it was due at another time than its schedule names, as at a clock change.
    """

    id: Id
    workspace_id: Id
    data_source_id: Id
    status: JobStatus
    trigger: rules.RunTrigger
    retry_of_run_id: Id | None = None
    actor_user_id: Id | None = None
    progress: RunProgress | None = None
    stats: RunStats
    note: str | None = None
    columns: RunColumns
    error: str | None = None
    error_kind: ErrorKind | None = None
    created_at: Moment
    started_at: Moment | None = None
    completed_at: Moment | None = None
    reverted_at: Moment | None = None
    reversal: Reversal | None = None
    waiting_for_worker_since: Moment | None = None
    page_url: str


class ImportSource(Input):
    """The rows to import, with the keys that their `kind` needs.

    `fileId` for file, `url` for url, `rows` or `format` with `content` or `text` for inline,
    `connectionId` and `resource` for connection. `content` is a file in base64, `text` the text of
    one: exactly one of `rows`, `content` and `text`. The format of a URL is `format`, else
    that of its name, else of its `Content-Type`, else of its content.
    """

    kind: Annotated[rules.ImportKind, Field(strict=False)]
    file_id: InputId | None = None
    url: CallableUrl | None = None
    headers: Headers = Field(default_factory=dict)
    format: Annotated[TableFormat, Field(strict=False)] | None = None
    content: (
        Annotated[str, Field(min_length=1, json_schema_extra={"contentEncoding": "base64"})] | None
    ) = None
    text: Annotated[str, Field(min_length=1)] | None = None
    rows: Annotated[list[Any], Field(min_length=1, max_length=MAX_INLINE_ROWS)] | None = None
    connection_id: InputId | None = None
    resource: ProviderResource | None = None
    options: TableOptions = Field(default_factory=lambda: TableOptions.model_validate({}))
    sheet_name: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    header_row: Annotated[int, Field(ge=0, le=1_000)] | None = None


class PreviewImport(ImportSource):
    """Body of preview import: the rows as an import takes them; more than 50 rows are 50.

    With `fields` or `targetDatabaseId` the values are checked against these fields, otherwise
    against the suggested fields. With `keyFields`, `fields` and `targetDatabaseId` the rows are
    compared with the records of the database: `changes` counts new, updated and unchanged ones.
    """

    fields: Annotated[list[FieldMapping], Field(max_length=MAX_COLUMNS, default_factory=list)]
    target_database_id: InputId | None = None
    key_fields: Annotated[list[KeyField], Field(max_length=10, default_factory=list)]
    limit: Annotated[int, Field(ge=1)] = 20


class ImportSpreadsheet(ImportSource):
    """Body of import spreadsheet, with the keys that its `kind` needs.

    `fileId` for file, `url` for url, `rows` or `format` with `content` or `text` for inline,
    `connectionId` and `resource` for connection. `content` is a file in base64, `text` the text of
    one: exactly one of `rows`, `content` and `text`. The format of a URL is `format`, else
    that of its name, else of its `Content-Type`, else of its content. Without `fields` every column
    fills the field it suggests. Without `targetDatabaseId` a database is created, visible
    when the import is done.
    """

    label: Label
    fields: Annotated[list[FieldMapping], Field(max_length=MAX_COLUMNS, default_factory=list)]
    client_mutation_id: Annotated[str, Field(min_length=1, max_length=255)] | None = None
    parent_item_id: InputId | None = None
    target_database_id: InputId | None = None
    key_fields: Annotated[list[KeyField], Field(max_length=10, default_factory=list)]
    mode: Annotated[rules.ImportMode, Field(strict=False)] = rules.ImportMode.INSERT


class SpreadsheetImportResult(Shape):
    """The outcome of an import; rows are records or skipped, cells without a form are empty.

    `sheetNameUsed` is absent where the format has no sheets.
    """

    database_id: Id
    item_id: Id
    label: str
    sheet_name_used: str | None = None
    field_count: int
    record_count: int
    skipped_row_count: int
    skipped_cells: int
    import_id: Id


class SpreadsheetImportDetail(Shape):
    """The current state of an import; `result` when it has succeeded."""

    id: Id
    workspace_id: Id
    status: JobStatus
    progress: RunProgress | None = None
    stats: RunStats
    columns: RunColumns
    result: SpreadsheetImportResult | None = None
    error: str | None = None
    error_kind: ErrorKind | None = None
    created_at: Moment
    started_at: Moment | None = None
    completed_at: Moment | None = None
    reverted_at: Moment | None = None
    reversal: Reversal | None = None
    waiting_for_worker_since: Moment | None = None
    page_url: str


class RejectFormat(StrEnum):
    JSON = "json"
    CSV = "csv"


class RejectType(StrEnum):
    CELL = "cell"
    ROW = "row"


class Reject(Shape):
    """A value that was left blank, or with the type `row` a row that makes no record, and why.

    `row` is that of the file, counted from 1; for JSON that among the rows. A `value` of more than
    1,000 characters is cut.
    """

    type: RejectType
    row: int
    column: str | None = None
    field_key: str | None = None
    value: str | None = None
    reason: str


class RejectList(Shape):
    """The values and rows that a run left out, in the order of its rows.

    The first 10,000 are kept, until the run can no longer be undone, and of a data source until
    its next run has succeeded; `kept` counts them. `skippedCells` and `skippedRowCount` count all.
    """

    rejects: list[Reject]
    skipped_cells: int
    skipped_row_count: int
    kept: int
    cursor: Nullable[str]


class SourceRunState(Shape):
    """The changing part of a run that is watched; `skippedCells` did not match their field.

    `advice` says what to do about the error. An open run may wait for a lost worker, since
    `waitingForWorkerSince`, and for a connection or a host: `waitingFor`.
    """

    status: JobStatus
    progress: RunProgress | None = None
    stats: RunStats
    columns: RunColumns
    skipped_cells: int
    error: str | None = None
    error_kind: ErrorKind | None = None
    advice: str | None = None
    started_at: Moment | None = None
    completed_at: Moment | None = None
    reverted_at: Moment | None = None
    reversal: Reversal | None = None
    waiting_for_worker_since: Moment | None = None
    waiting_for: Annotated[JsonObject, WithJsonSchema(WAITING_FOR)] | None = None


class SourceRunOverview(Shape):
    """A run of a data source, or an import, as its page shows it.

    `title` says from where rows go where. An import has no data source; the database is there once
    rows are.
    """

    id: Id
    workspace_id: Id
    title: str
    trigger: rules.RunTrigger
    data_source_id: Id | None = None
    database_id: Id | None = None
    created_at: Moment
    run: SourceRunState
    metadata: Annotated[JsonObject, WithJsonSchema(object_of("", temporal=TEMPORAL))]
