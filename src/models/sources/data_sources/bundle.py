"""Data sources in a bundle, without secrets. They come in switched off."""

from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import Select, select

from models.content.items.joins import live_item_of
from models.core.base import Id
from models.core.bundles.kinds import BundleKind, Row
from models.core.bundles.rules import USER, Stage, shape_problem
from models.core.credentials import hidden
from models.sources.data_sources.rules.configs import CONFIGS, DataSourceKind
from models.sources.data_sources.tables import data_source

_SCHEDULE = "follows from the schedule"


def _rows(workspace_id: Id) -> Select[Any]:
    return (
        select(data_source)
        .join(*live_item_of(data_source))
        .where(data_source.c.workspace_id == workspace_id)
    )


def _shown(row: Row) -> Row:
    return {**row, "config": hidden(row["config"])}


def _problem(row: Row) -> str | None:
    if row["kind"] not in set(DataSourceKind):
        return f"nothing is known of a data source of the kind {row['kind'][:50]}"
    shape = TypeAdapter(CONFIGS[DataSourceKind(row["kind"])])
    return shape_problem(shape, row["config"], "config")


DATA_SOURCES = BundleKind(
    name="data_source",
    stage=Stage.AUTOMATIONS,
    file="data_sources.ndjson",
    table=data_source,
    rows=_rows,
    references={"item_id": "item", "target_database_id": "database", "created_by_user_id": USER},
    contents=("config", "fields"),
    lists=("fields", "key_fields"),
    left_out={
        "next_run_at": _SCHEDULE,
        "skipped_fires": _SCHEDULE,
        "missed_fires": _SCHEDULE,
        "joined_fires": _SCHEDULE,
        "last_joined_at": _SCHEDULE,
    },
    # What the source still fetches must not be fetched twice; secrets are to be given first.
    imported_as={"enabled": False},
    unique_key=True,
    redact=_shown,
    check=_problem,
)
