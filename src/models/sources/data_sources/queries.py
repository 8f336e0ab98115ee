"""Data sources on the wire, and reading them."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, Protocol

import sqlalchemy as sa
from pydantic import Field

from models.content.items.joins import ITEM, live_item_of
from models.content.items.queries import placed, placement_of
from models.core.access.rules import Actor, Scope
from models.core.base import Id, Input, InputId, JsonObject, Label, Shape
from models.core.keys import PATTERN, Key
from models.core.openapi import documented_as
from models.core.references import rules as reference_rules
from models.data.fields.rules.fields import FieldKind
from models.sources.data_sources import rules
from models.sources.data_sources.tables import data_source
from models.sources.tabular.rules.formats import DateOrder, DecimalSeparator
from models.sources.tabular.rules.options import MAX_COLUMNS
from runtime.database import UnitOfWork

_Fields = Annotated[list[rules.FieldMapping], Field(max_length=MAX_COLUMNS, default_factory=list)]
KeyField = Annotated[str, Field(json_schema_extra={"pattern": PATTERN})]
"""A key of a field; what is none is refused with what to write in its place."""
_KeyFields = Annotated[list[KeyField], Field(max_length=10, default_factory=list)]
_Percent = Annotated[int, Field(ge=0, le=100)]


class DataSourceConfig(Input):
    """`config` of an item of the kind data_source: a data source without label and place."""

    key: Key | None = None
    kind: Annotated[rules.DataSourceKind, Field(strict=False)]
    config: JsonObject
    fields: _Fields
    target_database_id: InputId | None = None
    key_fields: _KeyFields
    write_mode: Annotated[rules.WriteMode, Field(strict=False)] = rules.WriteMode.UPSERT
    removed_rows: Annotated[rules.RemovedRows, Field(strict=False)] = rules.RemovedRows.ARCHIVE
    removal_guard_percent: _Percent = 30
    schedule: rules.Schedule | None = None
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
    write_mode: Annotated[rules.WriteMode, Field(strict=False)] = rules.WriteMode.UPSERT
    removed_rows: Annotated[rules.RemovedRows, Field(strict=False)] = rules.RemovedRows.ARCHIVE
    removal_guard_percent: _Percent = 30
    schedule: rules.Schedule | None = None
    enabled: bool = True


class PreviewDataSource(Input):
    """Body of preview: a config as create data source takes it; more than 50 rows are 50.

    With `fields` or `targetDatabaseId` the values are checked against these fields, otherwise
    against the suggested fields.
    """

    kind: Annotated[rules.DataSourceKind, Field(strict=False)]
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


class PreviewChanges(Shape):
    """The records that the checked rows would create, update and leave as they are."""

    new: int
    updated: int
    unchanged: int


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
    changes: PreviewChanges | None = None
    proposed: ProposedOptions | None = None
    warning: str | None = None


SOURCE = data_source.c
"""The columns of data sources in `data_sources_of` and `placed_data_sources`."""

visible = placement_of(data_source)
"""The placement of a data source.

`await visible(work, workspace_ids, data_source_id, user_id)` gives it.
"""


def placed_data_sources() -> sa.Select[Any]:
    """The start of a `PlacementOf`, for what belongs to a data source."""
    return placed(data_source)


class DataSourceRow(Protocol):
    """A data source with its label, which is the title of its item."""

    id: Id
    workspace_id: Id
    item_id: Id
    kind: str
    key: str
    label: str
    config: JsonObject
    fields: list[JsonObject]
    target_database_id: Id | None
    key_fields: list[str]
    write_mode: str
    removed_rows: str
    removal_guard_percent: int
    schedule: JsonObject | None
    next_run_at: datetime | None
    skipped_fires: int
    missed_fires: int
    joined_fires: int
    enabled: bool
    created_by_user_id: Id | None
    created_at: datetime
    updated_at: datetime


async def find_data_source(work: UnitOfWork, workspace_id: Id, data_source_id: Id) -> DataSourceRow:
    """A data source with its label. Raises `NotFoundError`."""
    statement = data_sources_of(workspace_id).where(data_source.c.id == data_source_id)
    return await work.one(statement, "data source", of=DataSourceRow)


class SourceItem(Protocol):
    """The item of a data source."""

    id: Id
    title: str


async def source_item(work: UnitOfWork, workspace_id: Id, data_source_id: Id) -> SourceItem:
    """The item of a data source that exists, be it in the trash."""
    row = await work.first(
        sa.select(ITEM.id, ITEM.title)
        .join(data_source, data_source.c.item_id == ITEM.id)
        .where(
            ITEM.workspace_id == workspace_id,
            data_source.c.workspace_id == workspace_id,
            data_source.c.id == data_source_id,
        ),
        of=SourceItem,
    )
    assert row is not None, "a run refers to it"
    return row


async def data_source_label(work: UnitOfWork, workspace_id: Id, data_source_id: Id) -> str | None:
    """The label of a data source outside the trash."""
    label: str | None = await work.scalar(
        sa.select(ITEM.title)
        .select_from(data_source)
        .join(*live_item_of(data_source))
        .where(data_source.c.workspace_id == workspace_id, data_source.c.id == data_source_id)
    )
    return label


def existing_data_sources(workspace_id: Id, data_source_ids: Collection[Id]) -> sa.Select[Id]:
    """The ids of the given data sources that exist outside the trash."""
    return (
        sa.select(data_source.c.id)
        .join(*live_item_of(data_source))
        .where(
            data_source.c.workspace_id == workspace_id,
            data_source.c.id.in_(data_source_ids),
        )
    )


def data_sources_of(workspace_id: Id) -> sa.Select[Any]:
    """The `DataSourceRow` of each data source outside the trash."""
    return (
        sa.select(data_source, ITEM.title.label("label"))
        .join(*live_item_of(data_source))
        .where(data_source.c.workspace_id == workspace_id)
    )


async def data_source_definitions(
    work: UnitOfWork, actor: Actor, sought: reference_rules.Sought
) -> Sequence[reference_rules.Definition]:
    """The data sources that may name a thing."""
    source = data_source.c
    target = sa.cast(source.target_database_id, sa.Text)
    columns = {
        reference_rules.SubjectKind.CONNECTION: source.config["connectionId"].astext,
        reference_rules.SubjectKind.FILE: source.config["fileId"].astext,
        reference_rules.SubjectKind.SECRET: source.config["auth"]["secretName"].astext,
        reference_rules.SubjectKind.MEMBER: sa.cast(source.created_by_user_id, sa.Text),
        reference_rules.SubjectKind.DATABASE: target,
        reference_rules.SubjectKind.FIELD: target,
        reference_rules.SubjectKind.OPTION: target,
    }
    ids: defaultdict[reference_rules.SubjectKind, list[str]] = defaultdict(list)
    for one in sought.subjects:
        ids[one.kind].append(one.id)
    conditions = [
        column == sa.any_(sa.literal(ids[kind], sa.ARRAY(sa.Text)))
        for kind, column in columns.items()
        if kind in ids
    ]
    if not conditions:
        return []
    rows = await work.rows(
        data_sources_of(actor.workspace_id)
        .where(sa.or_(*conditions))
        .order_by(ITEM.title, source.id),
        of=DataSourceRow,
    )
    return [
        reference_rules.Definition(
            kind="data_source",
            id=row.id,
            label=row.label,
            scope=Scope.DATA_SOURCES_READ,
            item_id=row.item_id,
            document={"fields": row.fields, "keyFields": row.key_fields},
            references=list(_references(row)),
        )
        for row in rows
    ]


def _references(row: DataSourceRow) -> Iterator[reference_rules.Reference]:
    """The target, the fields that columns fill, and what the config names."""
    config = row.config
    yield from reference_rules.named_at(
        reference_rules.SubjectKind.CONNECTION, config.get("connectionId"), "config", "connectionId"
    )
    yield from reference_rules.named_at(
        reference_rules.SubjectKind.FILE, config.get("fileId"), "config", "fileId"
    )
    secret = (config.get("auth") or {}).get("secretName")
    if isinstance(secret, str):
        place = ("config", "auth", "secretName")
        yield reference_rules.Reference(
            subject=reference_rules.Subject(reference_rules.SubjectKind.SECRET, secret), place=place
        )
    if row.created_by_user_id is not None:
        # Its schedule refreshes in the name of its creator.
        creator = str(row.created_by_user_id)
        yield from reference_rules.named_at(
            reference_rules.SubjectKind.MEMBER, creator, "createdByUserId"
        )
    if row.target_database_id is None:
        return
    database = str(row.target_database_id)
    yield from reference_rules.named_at(
        reference_rules.SubjectKind.DATABASE, database, "targetDatabaseId"
    )
    for index, mapping in enumerate(row.fields):
        key = mapping.get("fieldKey")
        yield from reference_rules.key_at(
            database, key, "fields", index, "fieldKey", access=reference_rules.Access.WRITE
        )
    yield from reference_rules.key_at(database, row.key_fields, "keyFields")
