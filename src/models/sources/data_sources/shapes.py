"""Data sources on the wire (decisions C10, C17)."""

from typing import Annotated, Any, Literal

from pydantic import Field

from models.core.base import Input, InputId, JsonObject, Label, Shape
from models.core.documented import documented_as
from models.core.keys import PATTERN, Key
from models.data.fields.rules.kinds import FieldKind
from models.sources.data_sources.rules.configs import (
    DataSourceKind,
    FieldMapping,
    RemovedRows,
    Schedule,
    WriteMode,
)
from models.sources.tabular.rules.formats import DateOrder, DecimalSeparator
from models.sources.tabular.rules.options import MAX_COLUMNS

_Fields = Annotated[list[FieldMapping], Field(max_length=MAX_COLUMNS, default_factory=list)]
KeyField = Annotated[str, Field(json_schema_extra={"pattern": PATTERN})]
"""A key of a field; what is none is refused with what to write in its place."""
_KeyFields = Annotated[list[KeyField], Field(max_length=10, default_factory=list)]
_Percent = Annotated[int, Field(ge=0, le=100)]


class DataSourceConfig(Input):
    """`config` of an item of the kind data_source: a data source without label and place."""

    key: Key | None = None
    kind: Annotated[DataSourceKind, Field(strict=False)]
    config: JsonObject
    fields: _Fields
    target_database_id: InputId | None = None
    key_fields: _KeyFields
    write_mode: Annotated[WriteMode, Field(strict=False)] = WriteMode.UPSERT
    removed_rows: Annotated[RemovedRows, Field(strict=False)] = RemovedRows.ARCHIVE
    removal_guard_percent: _Percent = 30
    schedule: Schedule | None = None
    enabled: bool = True


class CreateDataSource(DataSourceConfig):
    """Body of create data source; without `targetDatabaseId` a database is made for its rows.

    Without `fields` every column fills the field it suggests, and `keyFields` names fields by the
    `suggestedKey` of the preview.
    """

    label: Label
    parent_item_id: InputId | None = None


class UpdateDataSource(Input):
    """Body of update data source; the kind is fixed, and null takes the schedule away."""

    label: Annotated[Label, Field(default="")]
    key: Annotated[Key, Field(default="")]
    config: Annotated[JsonObject, Field(default_factory=dict)]
    fields: _Fields
    target_database_id: InputId | None = None
    key_fields: _KeyFields
    write_mode: Annotated[WriteMode, Field(strict=False)] = WriteMode.UPSERT
    removed_rows: Annotated[RemovedRows, Field(strict=False)] = RemovedRows.ARCHIVE
    removal_guard_percent: _Percent = 30
    schedule: Schedule | None = None
    enabled: bool = True


class PreviewDataSource(Input):
    """Body of preview: a config as create data source takes it; more than 50 rows are 50.

    With `fields` or `targetDatabaseId` the values are checked against these fields, otherwise
    against the suggested fields.
    """

    kind: Annotated[DataSourceKind, Field(strict=False)]
    config: JsonObject
    fields: _Fields
    target_database_id: InputId | None = None
    limit: Annotated[int, Field(ge=1)] = 20


class PreviewColumn(Shape):
    """A column and the field it suggests; `samples` are its first values.

    `options` are the names of the options that a column of choices would have.
    """

    source_path: str
    suggested_key: str
    label: str
    kind: FieldKind
    null_count: int
    samples: list[Any]
    options: list[str] | None = None


class UndecidedOption(Shape):
    """An option that the rows leave open.

    `ambiguous` says that its columns can be read in every way, `mixed` that they contradict each
    other. Choose the option to have them read.
    """

    option: Literal["dateOrder", "decimalSeparator"]
    reason: Literal["ambiguous", "mixed"]
    columns: list[str]


class ProposedOptions(Shape):
    """The options that the source was read with: from the config, or taken from its rows.

    An import or refresh with the same config takes the same ones. An option that nothing decides is
    absent; `undecided` has the ones to decide.
    """

    header_row: int | None = None
    delimiter: str | None = None
    encoding: str | None = None
    date_order: DateOrder | None = None
    decimal_separator: DecimalSeparator | None = None
    boolean_words: Annotated[JsonObject, documented_as("BooleanWords")] | None = None
    undecided: list[UndecidedOption]


class RejectedExample(Shape):
    """A value that would be left blank; `row` is that of the source, counted from 1."""

    row: int
    value: str
    reason: str


class RejectedColumn(Shape):
    """The values of a column that do not match its field and would be left blank."""

    source_path: str
    field_key: str
    kind: FieldKind
    count: int
    examples: list[RejectedExample]


class DataSourcePreview(Shape):
    """The first rows of a source: by `jsonPath` or from the sheet `sheetName`, whichever it has.

    Of `rowCount` rows that were read, `skippedCells` values do not match their field, and
    `skippedRowCount` rows make no record; `rejected` has the values by column, with up to 20
    examples each. When the source has more rows than were read, `sampled` is true.
    """

    rows: list[JsonObject]
    columns: list[PreviewColumn]
    json_path: str | None = None
    sheet_name: str | None = None
    sheets: list[str] | None = None
    row_count: int = 0
    sampled: bool = False
    skipped_cells: int = 0
    skipped_row_count: int = 0
    rejected: list[RejectedColumn] = Field(default_factory=list)
    proposed: ProposedOptions | None = None
    warning: str | None = None
