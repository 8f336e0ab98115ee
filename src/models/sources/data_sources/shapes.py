"""Data sources on the wire (decisions C10, C17)."""

from typing import Annotated, Any

from pydantic import Field

from models.core.base import Input, InputId, JsonObject, Label, Shape
from models.core.keys import PATTERN, Key
from models.data.fields.rules.kinds import FieldKind
from models.sources.data_sources.rules.configs import (
    DataSourceKind,
    FieldMapping,
    RemovedRows,
    Schedule,
    WriteMode,
)
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
    """Body of preview: a config as create data source takes it; more than 50 rows are 50."""

    kind: Annotated[DataSourceKind, Field(strict=False)]
    config: JsonObject
    limit: Annotated[int, Field(ge=1)] = 20


class PreviewColumn(Shape):
    """A column and the field it suggests; `samples` are its first values."""

    source_path: str
    suggested_key: str
    label: str
    kind: FieldKind
    null_count: int
    samples: list[Any]


class DataSourcePreview(Shape):
    """The first rows of a source: by `jsonPath` or from the sheet `sheetName`, whichever it has.

    `skippedCells` of the rows looked at have no form in the field that their column suggests.
    """

    rows: list[JsonObject]
    columns: list[PreviewColumn]
    json_path: str | None = None
    sheet_name: str | None = None
    sheets: list[str] | None = None
    skipped_cells: int = 0
    warning: str | None = None
