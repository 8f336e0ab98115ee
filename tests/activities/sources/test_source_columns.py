"""Refreshes of sources whose columns come, go and change, and of sources without rows.

Steps run without Temporal, on pages that were fetched already.
"""

import csv
import io
import json
import random
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from sqlalchemy import delete, select, text, update
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.data_source_runs import steps
from activities.data_source_runs.inputs import page_key
from activities.data_source_runs.steps import DataSourceRunActivities
from activities.sources.fetchers import Fetchers
from activities.sources.fetching import Fetched
from activities.sources.reading import reading
from models.core.base import Id
from models.data.databases.commands import create_database
from models.data.databases.field_changes import create_field
from models.data.databases.shapes import CreateDatabase
from models.data.fields.shapes import CreateField
from models.data.records.tables import record
from models.messages.notifications.tables import notification
from models.messages.workspace_events.tables import workspace_event
from models.sources.data_source_runs import staging
from models.sources.data_source_runs.acceptance import accept_refresh, cancel_run
from models.sources.data_source_runs.imports import Renewed, accept_import
from models.sources.data_source_runs.queries import get_run, shown_of
from models.sources.data_source_runs.reversal import revert_run
from models.sources.data_source_runs.rules import RunTrigger
from models.sources.data_source_runs.shapes import DataSourceRunDetail, ImportSpreadsheet
from models.sources.data_source_runs.tables import (
    data_source_run,
    source_columns,
    staged_row,
)
from models.sources.data_sources.commands import create_data_source, update_data_source
from models.sources.data_sources.queries import CreateDataSource, UpdateDataSource
from models.sources.data_sources.tables import data_source
from models.sources.tabular.rules.options import TableFormat
from runtime.crypto import KeyRing
from runtime.ids import new_id
from runtime.object_store import ObjectStore
from runtime.outbound.client import OutboundClient
from tests.support.cells import cells
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


@pytest.fixture
def source(space: Space, outbound: OutboundClient, tmp_path: Path) -> MakeSource:
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
        return Source(space, activities, store, tmp_path, form, made.id, made.target_database_id)

    return make


def names(run: DataSourceRunDetail, what: str) -> list[str]:
    return [one.source_path for one in getattr(run.columns, what)]


def mapped(**kinds: str) -> list[Json]:
    """Columns that fill fields of their names; `code` fills the title."""
    return [
        {"sourcePath": path, "fieldKey": "title" if path == "code" else path, "label": path}
        | {"kind": kind}
        for path, kind in {"code": "text", **kinds}.items()
    ]


@pytest.mark.parametrize("form", each(OF_OBJECTS))
@pytest.mark.parametrize("mode", ["upsert", "replace"])
async def test_a_row_means_the_same_whatever_its_neighbours_are(
    source: MakeSource, form: str, mode: str
) -> None:
    held: Source = await source(form, writeMode=mode)
    await held.read([{"code": "a", "hold": "yes"}, {"code": "b", "hold": "yes"}])
    await held.read([{"code": "a"}, {"code": "b", "hold": "yes"}])
    run = await held.read([{"code": "a"}, {"code": "b"}])
    assert run.stats.rows_updated == 1
    assert await held.records() == {"a": {}, "b": {}}
    assert names(run, "missing") == ["hold"]
    assert not run.columns.missing[0].values_kept


@pytest.mark.parametrize("told_by", [[], ["title"]])
async def test_a_mapped_column_that_no_object_has_is_empty(
    source: MakeSource, told_by: list[str]
) -> None:
    goods: Source = await source("json", mapped(qty="number"), keyFields=told_by)
    run = await goods.read([{"code": "a"}])
    assert (run.status, names(run, "missing")) == ("succeeded", ["qty"]), run
    await goods.read([{"code": "a", "qty": 3}, {"code": "b", "qty": 4}])
    assert await goods.records() == {"a": {"qty": 3}, "b": {"qty": 4}}
    run = await goods.read([{"code": "a"}, {"code": "b"}], force=True)
    assert (run.status, await goods.records()) == ("succeeded", {"a": {}, "b": {}})


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ([{"message": "no rows here"}], "message"),
        ([{"qty": 3}], "key field title"),
        ([{"code": {"of": "a"}, "qty": 3}], "code.of"),
    ],
)
async def test_objects_of_another_kind_are_refused(
    source: MakeSource, answer: Rows, words: str
) -> None:
    goods: Source = await source("json", mapped(qty="number"))
    await goods.read([{"code": "a", "qty": 3}])
    run = await goods.read(answer, force=True)
    assert (run.status, run.error_kind) == ("failed", "mapping"), run
    assert words in (run.error or "")
    assert await goods.records() == {"a": {"qty": 3}}


@pytest.mark.parametrize("form", each(["csv", "xlsx", "sql"]))
async def test_a_mapped_column_that_a_table_lacks_is_refused(source: MakeSource, form: str) -> None:
    goods: Source = await source(form, mapped(qty="number"))
    await goods.read([{"code": "a", "qty": 3}])
    run = await goods.read([{"code": "a"}], ["code"])
    assert (run.status, run.error_kind) == ("failed", "mapping"), run
    assert run.error == "Column qty not found. Columns: code."


@pytest.mark.long
@pytest.mark.parametrize("form", each(["csv", "xlsx", "sql"]))
@pytest.mark.parametrize("removed", ["archive", "keep"])
async def test_a_column_that_comes_back_is_right_in_every_row(
    source: MakeSource, form: str, removed: str
) -> None:
    goods: Source = await source(form, removedRows=removed)
    await goods.read([{"code": "a", "qty": 3}, {"code": "b", "qty": 4}, {"code": "c", "qty": 5}])
    run = await goods.read([{"code": "a"}, {"code": "b"}, {"code": "c"}], ["code"])
    assert run.stats.rows_unchanged == 3
    assert names(run, "missing") == ["qty"]
    assert run.columns.missing[0].values_kept
    kept = {"a": {"qty": 3}, "b": {"qty": 4}, "c": {"qty": 5}}
    assert await goods.records() == kept
    again = await goods.read([{"code": "a"}, {"code": "b"}, {"code": "c", "qty": 5}], ["code"])
    assert (again.stats.rows_unchanged, names(again, "missing")) == (3, ["qty"])
    run = await goods.read([{"code": "a"}, {"code": "b", "qty": 5}])
    assert run.columns.missing == []
    await goods.read([{"code": "a"}, {"code": "b", "qty": 5}, {"code": "c"}])
    assert await goods.records() == {"a": {}, "b": {"qty": 5}, "c": {}}


async def test_a_field_that_is_mapped_again_is_right_in_every_row(source: MakeSource) -> None:
    goods: Source = await source("csv", mapped(qty="number"))
    await goods.read([{"code": "a", "qty": 3}])
    await goods.change(fields=mapped())
    await goods.read([{"code": "a", "qty": 4}])
    assert await goods.records() == {"a": {"qty": 3}}
    await goods.change(fields=mapped(qty="number"))
    await goods.read([{"code": "a"}])
    assert await goods.records() == {"a": {}}


@pytest.mark.parametrize("form", ["json", "csv"])
async def test_a_field_that_was_removed_is_filled_anew(source: MakeSource, form: str) -> None:
    goods: Source = await source(form)
    await goods.read([{"code": "a", "qty": 3}])
    space = goods.space
    async with space.database.transaction() as work:
        await work.execute(
            text("DELETE FROM field WHERE database_id = :id AND key = 'qty'"), {"id": goods.target}
        )
        await work.execute(
            update(record).where(record.c.database_id == goods.target).values(data={})
        )
    await goods.read([{"code": "a", "qty": 3}])
    assert await goods.records() == {"a": {"qty": 3}}


async def test_fields_that_the_source_does_not_fill_are_peoples(source: MakeSource) -> None:
    goods: Source = await source("json")
    await goods.read([{"code": "a", "qty": 3}, {"code": "b", "qty": 4}])
    await goods.add_field("note")
    await goods.write("a", note="mine", qty=8)
    await goods.read([{"code": "a", "qty": 3}, {"code": "b", "qty": 5}])
    assert (await goods.records())["a"] == {"note": "mine", "qty": 8}, "its row is unchanged"
    await goods.read([{"code": "a"}, {"code": "b"}])
    assert await goods.records() == {"a": {"note": "mine"}, "b": {}}


@pytest.mark.parametrize("form", each(FORMATS))
async def test_a_source_may_become_empty(source: MakeSource, form: str) -> None:
    goods: Source = await source(form, removalGuardPercent=30)
    first = await goods.read([])
    assert (first.status, first.stats.rows_fetched) == ("succeeded", 0), first
    await goods.read([{"code": "a", "qty": 1}])
    stopped = await goods.read([])
    assert (stopped.status, stopped.error_kind) == ("failed", "guard"), stopped
    forced = await goods.read([], force=True)
    assert (forced.status, forced.stats.rows_removed) == ("succeeded", 1), forced
    assert await goods.records() == {}
    await goods.read([{"code": "a"}, {"code": "b", "qty": 2}])
    assert await goods.records() == {"a": {}, "b": {"qty": 2}}


async def test_rows_are_where_they_were(source: MakeSource) -> None:
    goods: Source = await source("auto")
    await goods.read([{"code": "a", "qty": 1}])
    facets = [{"code": "size", "qty": 3}]
    run = await goods.read_bytes(json.dumps({"items": [], "facets": facets}).encode())
    assert (run.status, run.stats.rows_removed, await goods.records()) == ("succeeded", 1, {})
    run = await goods.read_bytes(json.dumps({"facets": facets}).encode())
    assert await goods.records() == {"size": {"qty": 3}}, "where there is no list any more"


@pytest.mark.parametrize("form", each(["json", "ndjson", "csv", "xlsx"]))
async def test_an_answer_of_no_bytes_is_empty_where_there_were_rows(
    source: MakeSource, form: str
) -> None:
    goods: Source = await source(form, removalGuardPercent=30)
    if form != "ndjson":
        first = await goods.read_bytes(b"")
        assert (first.status, first.error_kind) == ("failed", "parse"), first
    await goods.read([{"code": "a", "qty": 1}])
    stopped = await goods.read_bytes(b"")
    assert (stopped.status, stopped.error_kind) == ("failed", "guard"), stopped
    forced = await goods.read_bytes(b"\n", force=True)
    assert (forced.status, forced.stats.rows_removed) == ("succeeded", 1), forced


async def test_what_fills_the_title_stays(source: MakeSource) -> None:
    goods: Source = await source("csv")
    await goods.read([{"code": "a", "qty": "1"}])
    run = await goods.read([{"code": "a", "name": "Nut"}], ["code", "name"])
    assert (run.status, names(run, "new_columns")) == ("succeeded", ["name"]), run
    assert await goods.records() == {"a": {"qty": 1, "name": "Nut"}}
    run = await goods.read([{"code": "7", "name": "Nut"}], ["name", "code"])
    assert set(await goods.records()) == {"7"}
    assert [(one.source_path, one.before, one.kind) for one in run.columns.changed_columns] == [
        ("code", "text", "number")
    ]


async def test_a_renamed_column_of_the_same_key_fills_the_same_field(source: MakeSource) -> None:
    goods: Source = await source("csv")
    await goods.read([{"code": "a", "qty": "1"}])
    run = await goods.read([{"code": "a", "Qty": "2"}], ["code", "Qty"])
    assert (names(run, "new_columns"), names(run, "missing")) == (["Qty"], [])
    assert await goods.records() == {"a": {"qty": 2}}


async def test_other_keys_of_objects_are_other_fields(source: MakeSource) -> None:
    goods: Source = await source("json")
    await goods.read([{"code": "a", "qty": 1}])
    await goods.read([{"code": "a", "Qty": 2}])
    await goods.read([{"code": "a", "qty": 1, "Qty": 2}])
    assert await goods.records() == {"a": {"qty": 1, "qty_2": 2}}


UNREADABLE: Mapping[str, tuple[Any, Any]] = {
    "number": (1, "1 pcs"),
    "currency": (2.5, "many"),
    "percent": (5, "half"),
    "date": ("2024-01-02", "1/2/2024"),
    "datetime": ("2024-01-02T03:04:05Z", "soon"),
    "time": ("10:00", "late"),
    "checkbox": (True, "perhaps"),
    "email": ("a@example.com", "a at example"),
    "url": ("https://example.com", "nowhere at all"),
}


@pytest.mark.parametrize("form", each(["json", "ndjson", "csv", "xlsx", "sql"]))
async def test_cells_that_cannot_be_read_are_counted_by_column(
    source: MakeSource, form: str
) -> None:
    goods: Source = await source(form, mapped(**{kind: kind for kind in UNREADABLE}))
    headers = ["code", *UNREADABLE]
    good = {kind: value for kind, (value, _) in UNREADABLE.items()}
    bad = {kind: value for kind, (_, value) in UNREADABLE.items()}
    run = await goods.read([{"code": name, **good} for name in "abc"], headers)
    assert (run.stats.cells_skipped, run.columns.skipped_cells) == (0, []), run
    run = await goods.read([{"code": name, **bad} for name in "abc"], headers)
    assert run.stats.cells_skipped == 3 * len(UNREADABLE), run
    counted = {one.source_path: one.cells for one in run.columns.skipped_cells}
    assert counted == dict.fromkeys(UNREADABLE, 3)
    assert await goods.records() == {code: {} for code in "abc"}


LONG_KEYS = [1147386954405658704, 1147386954405658705, 1147386954405658706]


@pytest.mark.parametrize("form", each(["json", "ndjson", "csv"]))
async def test_long_keys_tell_rows_apart_and_are_never_merged(
    source: MakeSource, form: str
) -> None:
    rows = [{"code": f"r{number}", "ref": key} for number, key in enumerate(LONG_KEYS)]
    texts: Source = await source(form, mapped(ref="text"), keyFields=["ref"])
    for _ in range(2):
        await texts.read(rows, ["code", "ref"])
        found = await texts.records()
        assert [one["ref"] for _, one in sorted(found.items())] == [*map(str, LONG_KEYS)]
    numbers: Source = await source(form, mapped(ref="number"), keyFields=["ref"])
    run = await numbers.read([*rows, {"code": "short", "ref": 7}], ["code", "ref"])
    counts = (run.stats.rows_fetched, run.stats.rows_skipped, run.stats.cells_skipped)
    assert (counts, await numbers.records()) == ((4, 3, 3), {"short": {"ref": 7}})


async def test_people_are_notified_once_of_the_same(source: MakeSource) -> None:
    goods: Source = await source("csv")
    space = goods.space

    async def told() -> list[str]:
        mine = notification.c.workspace_id == space.id
        order = notification.c.created_at
        async with space.database.transaction() as work:
            found = await work.rows(select(notification).where(mine).order_by(order))
        assert {one.kind for one in found} <= {"data_source_failed"}
        return [one.body for one in found]

    by_itself = RunTrigger.SCHEDULE
    await goods.read([{"code": "a", "qty": 3, "day": "2024-01-02"}], ["code", "qty", "day"])
    assert await told() == []
    rows = [{"code": "a", "qty": "3 pcs", "size": "L"}]
    for _ in range(2):
        await goods.read(rows, ["code", "qty", "size"], trigger=by_itself)
    [body] = await told()
    assert body == (
        "Unreadable values, left blank: qty (1). Columns missing from the source, fields keep their"
        " values: day. Columns of a different kind: qty (number to text). New columns: size."
    )
    rows[0]["day"] = "1/2/2024"
    await goods.read(rows, ["code", "qty", "day", "size"], trigger=by_itself)
    assert (await told())[1:] == [
        (
            "Unreadable values, left blank: day (1), qty (1)."
            " Columns of a different kind: day (date to text)."
        )
    ]
    wanted = select(workspace_event.c.data).where(
        workspace_event.c.workspace_id == space.id, workspace_event.c.type == "data_source.run"
    )
    async with space.database.transaction() as work:
        ends = await work.rows(wanted.order_by(workspace_event.c.seq))
    facts = {"cellsSkipped": 1, "columnsAdded": 1, "columnsMissing": 1, "columnsChanged": 1}
    assert facts.items() <= ends[3].data.items(), ends


@pytest.mark.parametrize("form", ["json", "csv"])
async def test_a_run_that_is_reverted_leaves_what_was_there(source: MakeSource, form: str) -> None:
    goods: Source = await source(form)
    await goods.read([{"code": "a", "qty": 3}, {"code": "b", "qty": 4}])
    before = await goods.records()
    headers = ["code"] if form == "csv" else []
    for rows in ([{"code": "a"}, {"code": "b"}], [{"code": "a", "size": "L"}], []):
        extra = ["size"] if rows and "size" in rows[0] else []
        run = await goods.read(rows, [*headers, *extra])
        async with goods.space.database.transaction() as work:
            await revert_run(work, goods.space.actor, run.id)
        assert await goods.records() == before, rows
    await goods.read([{"code": "a"}, {"code": "b", "qty": 4}])
    assert await goods.records() == {"a": {}, "b": {"qty": 4}}


async def test_a_source_of_an_older_platform_is_read_without_surprise(source: MakeSource) -> None:
    goods: Source = await source("csv")
    await goods.read([{"code": "a", "qty": 3}])
    async with goods.space.database.transaction() as work:
        await work.execute(delete(source_columns).where(source_columns.c.source_id == goods.id))
    await goods.write("a", qty=8)
    run = await goods.read([{"code": "a", "qty": 3}])
    assert (run.stats.rows_unchanged, run.columns.new_columns) == (1, [])
    assert await goods.records() == {"a": {"qty": 8}}


@pytest.mark.long
@pytest.mark.parametrize("form", ["json", "csv"])
async def test_an_import_that_is_renewed_keeps_what_the_source_said(
    source: MakeSource, form: str
) -> None:
    goods: Source = await source(form)
    space, renewed = goods.space, new_id()
    async with space.database.transaction() as work:
        made = await create_database(
            work, space.actor, CreateDatabase.model_validate({"label": "Goods"})
        )
    goods.target = made.id

    async def read(rows: Rows, headers: Sequence[str] = ("code", "qty")) -> Json:
        run_id = new_id()
        content = FORMATS[form][2](rows, headers)
        body = {"label": "Goods", "kind": "url", "url": "https://example.com/goods"}
        body |= {"format": form, "targetDatabaseId": str(made.id)}
        async with space.database.transaction() as work:
            given = ImportSpreadsheet.model_validate(body)
            await accept_import(work, space.actor, run_id, given, Renewed(renewed))
        await goods.carry_out(run_id, content, format=TableFormat(form))
        async with space.database.transaction() as work:
            run = await staging.find_run(work, run_id)
        assert run.status == "succeeded", run.error
        return shown_of(run)

    await read([{"code": "a", "qty": 3}, {"code": "b", "qty": 4}, {"code": "c", "qty": 5}])
    await goods.write("c", qty=9)
    shown = await read([{"code": "a"}, {"code": "b"}, {"code": "c"}], ["code"])
    assert [one["sourcePath"] for one in shown["columns"]["missing"]] == ["qty"]
    kept = form == "csv"
    now = {"a": {"qty": 3}, "b": {"qty": 4}} if kept else {"a": {}, "b": {}}
    assert await goods.records() == {**now, "c": {"qty": 9}}
    await read([{"code": "a"}, {"code": "b", "qty": 5}, {"code": "c", "qty": 6}])
    assert await goods.records() == {"a": {}, "b": {"qty": 5}, "c": {"qty": 9}}


COLUMNS = ("x", "y", "z")


class Model:
    """The last statement of a source on each field, and what people wrote."""

    def __init__(self, *, sparse: bool, keeps: bool) -> None:
        self.sparse, self.keeps = sparse, keeps
        self.values: dict[str, Json] = {}
        self.live: set[str] = set()

    def read(self, rows: Rows, headers: Sequence[str]) -> None:
        said = [name for name in COLUMNS if self.sparse or name in headers]
        for row in rows:
            values = self.values.setdefault(row["code"], {})
            for name in said:
                values.pop(name, None)
                if name in row and (self.sparse or name in headers):
                    values[name] = row[name]
        codes = {row["code"] for row in rows}
        self.live = self.live | codes if self.keeps else codes

    @property
    def records(self) -> dict[str, Json]:
        return {code: self.values[code] for code in self.live}


@pytest.mark.long
@pytest.mark.parametrize("form", each(["json", "ndjson", "csv", "sql"]))
@pytest.mark.parametrize("removed", ["archive", "keep"])
async def test_every_order_of_statements_ends_with_the_last_one(
    source: MakeSource, form: str, removed: str
) -> None:
    with cells() as cell:
        for seed in range(4):
            with cell(seed):
                goods: Source = await source(form, removedRows=removed)
                dice = random.Random(seed)  # noqa: S311  # the same walk every time
                await _walk(goods, dice, keeps=removed == "keep")


async def test_a_run_cancelled_while_its_rows_are_read_stages_nothing(
    source: MakeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    goods = await source()

    @asynccontextmanager
    async def cancelled(*arguments: Any) -> AsyncIterator[Any]:
        async with reading(*arguments) as table:
            async with goods.space.database.transaction() as work:
                of_source = data_source_run.c.data_source_id == goods.id
                run_id = await work.scalar(select(data_source_run.c.id).where(of_source))
                await cancel_run(work, goods.space.actor, goods.id, run_id)
            yield table

    monkeypatch.setattr(steps, "reading", cancelled)
    run = await goods.read([{"code": "a", "qty": 1}])
    assert (run.status, run.error) == ("cancelled", None)
    assert await goods.records() == {}
    async with goods.space.database.transaction() as work:
        staged = select(staged_row.c.position).where(staged_row.c.run_id == run.id)
        assert await work.rows(staged) == []


async def _walk(goods: Source, chance: random.Random, *, keeps: bool) -> None:
    model = Model(sparse=goods.format in OF_OBJECTS, keeps=keeps)
    owned = False
    for step in range(10):
        headers = ["code", *(name for name in COLUMNS if chance.random() < 0.6)]
        rows = [
            {"code": code, **{one: chance.choice("uv") for one in headers[1:] if coin(chance)}}
            for code in "abcd"
            if coin(chance)
        ]
        model.read(rows, headers)
        run = await goods.read(rows, headers)
        assert run.status == "succeeded", run.error
        found = await goods.records()
        own = {code: values.pop("own") for code, values in found.items() if "own" in values}
        assert found == model.records, (step, headers, rows)
        assert set(own.values()) <= {"mine"}
        assert not owned or "a" not in found or own == {"a": "mine"}
        if not owned and "a" in found:
            await goods.add_field("own")
            await goods.write("a", own="mine")
            owned = True


def coin(chance: random.Random) -> bool:
    return chance.random() < 0.5
