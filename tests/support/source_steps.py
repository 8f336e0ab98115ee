"""Data sources whose runs are executed without Temporal, on pages that were fetched already."""

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from sqlalchemy import select, update
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.data_source_runs.inputs import page_key
from activities.data_source_runs.steps import DataSourceRunActivities
from activities.sources.fetchers import Fetchers
from activities.sources.fetching import Fetched
from models.core.base import Id
from models.data.databases.field_changes import create_field
from models.data.fields.shapes import CreateField
from models.data.records.tables import record
from models.sources.data_source_runs import staging
from models.sources.data_source_runs.acceptance import accept_refresh
from models.sources.data_source_runs.queries import get_run
from models.sources.data_source_runs.shapes import DataSourceRunDetail
from models.sources.data_sources.commands import create_data_source, update_data_source
from models.sources.data_sources.queries import CreateDataSource, UpdateDataSource
from models.sources.data_sources.tables import data_source
from runtime.crypto import KeyRing
from runtime.ids import new_id
from runtime.object_store import ObjectStore
from runtime.outbound.client import OutboundClient
from tests.support.spaces import MASTER_SECRET, Space

Json = dict[str, Any]
Rows = Sequence[Json]


def as_csv(rows: Rows, headers: Sequence[str]) -> bytes:
    out = io.StringIO()
    written = csv.DictWriter(out, headers, extrasaction="ignore")
    written.writeheader()
    written.writerows(rows)
    return out.getvalue().encode()


def as_workbook(rows: Rows, headers: Sequence[str]) -> bytes:
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("S")
    for row in [list(headers), *([row.get(name) for name in headers] for row in rows)]:
        sheet.append(row)
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


FORMATS: Mapping[str, tuple[str, Json, Callable[[Rows, Sequence[str]], bytes]]] = {
    "json": ("http_json", {}, lambda rows, _: json.dumps(list(rows)).encode()),
    "path": (
        "http_json",
        {"jsonPath": "$.data.items"},
        lambda rows, _: json.dumps({"data": {"items": list(rows)}}).encode(),
    ),
    "wildcard": (
        "http_json",
        {"jsonPath": "$.items[*]"},
        lambda rows, _: json.dumps({"items": list(rows)}).encode(),
    ),
    "auto": (
        "http_json",
        {},
        lambda rows, _: json.dumps({"items": list(rows), "total": len(rows)}).encode(),
    ),
    "ndjson": (
        "http_json",
        {"format": "ndjson"},
        lambda rows, _: b"".join(json.dumps(row).encode() + b"\n" for row in rows),
    ),
    "csv": ("http_csv", {}, as_csv),
    "sql": (
        "http_json",
        {},
        lambda rows, headers: b"".join(
            json.dumps({name: row.get(name) for name in headers}).encode() + b"\n" for row in rows
        ),
    ),
    "xlsx": ("http_xlsx", {}, as_workbook),
}
OF_OBJECTS = ("json", "path", "wildcard", "auto", "ndjson")
QUICK = {"json", "csv"}
"""The formats that stand for the others in a quick run of the tests."""


def each(formats: Iterable[str]) -> list[Any]:
    """The formats, the others than the quick ones for the long tests alone."""
    return [one if one in QUICK else pytest.param(one, marks=pytest.mark.long) for one in formats]


@dataclass
class Source:
    """A data source, and the steps of its refreshes."""

    space: Space
    steps: DataSourceRunActivities
    store: ObjectStore
    scratch: Path
    format: str
    id: Id
    target: Id

    async def read(
        self, rows: Rows, headers: Sequence[str] = ("code", "qty"), **how: Any
    ) -> DataSourceRunDetail:
        """A refresh that has ended; the source has these rows."""
        return await self.read_bytes(FORMATS[self.format][2](rows, headers), **how)

    async def read_bytes(self, content: bytes, **how: Any) -> DataSourceRunDetail:
        run_id = new_id()
        actor, database = self.space.actor, self.space.database
        async with database.transaction() as work:
            await accept_refresh(work, actor, self.id, run_id, **how)
        await self.carry_out(run_id, content)
        async with database.transaction() as work:
            return await get_run(work, self.space.id, self.id, run_id)

    async def carry_out(self, run_id: Id, content: bytes, **fetched: Any) -> None:
        database = self.space.database
        async with database.transaction() as work:
            held = await staging.hold_run(work, run_id)
            assert held is not None
            state = asdict(Fetched(pages=1, bytes=len(content), next=None, **fetched))
            await staging.record_progress(work, run_id, pages=1, fetched=state)
        page = self.scratch / "page"
        page.write_bytes(content)
        await self.store.put_file(page_key(held, 0), page)
        environment = ActivityEnvironment()
        with suppress(ApplicationError):
            if (await environment.run(self.steps.stage, str(run_id))).status == "continue":
                await environment.run(self.steps.apply, str(run_id))

    async def records(self) -> dict[str, Json]:
        """The values of the records that are not archived, by their titles."""
        wanted = select(record.c.title, record.c.data).where(
            record.c.database_id == self.target,
            record.c.deleted_at.is_(None),
            record.c.archived.is_(False),
        )
        async with self.space.database.transaction() as work:
            return {row.title: row.data for row in await work.rows(wanted)}

    async def write(self, title: str, **data: Any) -> None:
        """A person's edit of a record."""
        async with self.space.database.transaction() as work:
            await work.execute(
                update(record)
                .where(record.c.database_id == self.target, record.c.title == title)
                .values(data=record.c.data.op("||")(data))
            )

    async def change(self, **settings: Any) -> None:
        body = UpdateDataSource.model_validate(settings)
        async with self.space.database.transaction() as work:
            await update_data_source(work, self.space.actor, self.id, body)

    async def add_field(self, key: str, kind: str = "text") -> None:
        body = CreateField.model_validate({"label": key, "key": key, "kind": kind})
        async with self.space.database.transaction() as work:
            await create_field(work, self.space.actor, self.target, body)


MakeSource = Callable[..., Any]


def source_maker(space: Space, outbound: OutboundClient, scratch: Path) -> MakeSource:
    """Makes data sources of a format, keyed by their title, that may become empty."""
    keys, store = KeyRing([MASTER_SECRET]), ObjectStore("memory://")
    fetchers = Fetchers(outbound, keys, store, None)
    activities = DataSourceRunActivities(space.database, store, fetchers)

    async def make(form: str = "json", fields: Sequence[Json] = (), **settings: Any) -> Source:
        kind, config, _ = FORMATS[form]
        body = {
            "label": "Goods",
            "kind": kind,
            "config": {"url": "https://example.com/goods", **config},
            "fields": list(fields),
            "keyFields": ["title"],
            "removalGuardPercent": 100,
            **settings,
        }
        async with space.database.transaction() as work:
            made = await create_data_source(
                work, space.actor, CreateDataSource.model_validate(body)
            )
            if form == "sql":
                # Its pages are what a database answered; none is asked here.
                this = data_source.c.id == made.id
                config = {"query": "SELECT", "params": []}
                change = update(data_source).where(this).values(kind="sql", config=config)
                await work.execute(change)
        assert made.target_database_id is not None
        return Source(space, activities, store, scratch, form, made.id, made.target_database_id)

    return make
