"""Data sources on the wire (decisions C10, C17)."""

from typing import Annotated

from pydantic import Field

from models.core.base import Id, Input, InputId, JsonObject, Label, Moment, Nullable, Shape
from models.core.keys import Key
from models.sources.data_sources.rules.configs import (
    MAX_COLUMNS,
    DataSourceKind,
    FieldMapping,
    RemovedRows,
    Schedule,
    WriteMode,
)

_Fields = Annotated[list[FieldMapping], Field(max_length=MAX_COLUMNS, default_factory=list)]
_KeyFields = Annotated[list[Key], Field(max_length=10, default_factory=list)]
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
    """Body of create data source; without `targetDatabaseId` a database is made for its rows."""

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


class DataSourceDetail(Shape):
    """A data source; what its last run did is absent until it has run."""

    id: Id
    workspace_id: Id
    item_id: Id
    key: str
    label: str
    kind: DataSourceKind
    config: JsonObject
    fields: list[JsonObject]
    target_database_id: Id | None
    key_fields: list[str]
    write_mode: WriteMode
    removed_rows: RemovedRows
    removal_guard_percent: int
    schedule: JsonObject | None
    enabled: bool
    latest_run: JsonObject | None = None
    latest_status: str | None = None
    last_run_at: Moment | None = None
    next_run_at: Moment | None = None
    created_at: Moment
    updated_at: Moment


class DataSourceList(Shape):
    data_sources: list[DataSourceDetail]
    cursor: Nullable[str]
