"""Reading data sources."""

from collections.abc import Collection
from datetime import datetime
from typing import Any, Protocol

from sqlalchemy import Select, select

from models.content.items.joins import ITEM, live_item_of
from models.content.items.queries import placed, placement_of
from models.core.base import Id, JsonObject
from models.sources.data_sources.tables import data_source
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError

SOURCE = data_source.c
"""The columns of data sources in `data_sources_of` and `placed_data_sources`."""

visible = placement_of(data_source)
"""The placement of a data source.

`await visible(work, workspace_ids, data_source_id, user_id)` gives it.
"""


def placed_data_sources() -> Select[Any]:
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
    found = await work.first(statement, of=DataSourceRow)
    if found is None:
        raise NotFoundError("data source")
    return found


class SourceItem(Protocol):
    """The item of a data source."""

    id: Id
    title: str


async def source_item(work: UnitOfWork, workspace_id: Id, data_source_id: Id) -> SourceItem:
    """The item of a data source that exists, be it in the trash."""
    row = await work.first(
        select(ITEM.id, ITEM.title)
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
        select(ITEM.title)
        .select_from(data_source)
        .join(*live_item_of(data_source))
        .where(data_source.c.workspace_id == workspace_id, data_source.c.id == data_source_id)
    )
    return label


def existing_data_sources(workspace_id: Id, data_source_ids: Collection[Id]) -> Select[Id]:
    """The ids of the given data sources that exist outside the trash."""
    return (
        select(data_source.c.id)
        .join(*live_item_of(data_source))
        .where(
            data_source.c.workspace_id == workspace_id,
            data_source.c.id.in_(data_source_ids),
        )
    )


def data_sources_of(workspace_id: Id) -> Select[Any]:
    """The `DataSourceRow` of each data source outside the trash."""
    return (
        select(data_source, ITEM.title.label("label"))
        .join(*live_item_of(data_source))
        .where(data_source.c.workspace_id == workspace_id)
    )
