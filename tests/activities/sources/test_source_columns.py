"""Refreshes of sources whose columns come, go and change, and of sources without rows."""

import json
import random
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from sqlalchemy import delete, select, text, update

from activities.data_source_runs import steps
from activities.sources.reading import reading
from models.data.databases.shapes import CreateDatabase
from models.data.databases.store import create_database
from models.data.records.tables import record
from models.messages.notifications.queries import notification
from models.messages.workspace_events.log import workspace_event
from models.sources.data_source_runs import staging
from models.sources.data_source_runs.acceptance import cancel_run
from models.sources.data_source_runs.imports import Renewed, accept_import
from models.sources.data_source_runs.queries import shown_of
from models.sources.data_source_runs.reversal import revert_run
from models.sources.data_source_runs.rules import RunTrigger
from models.sources.data_source_runs.shapes import DataSourceRunDetail, ImportSpreadsheet
from models.sources.data_source_runs.tables import data_source_run, source_columns, staged_row
from models.sources.tabular.rules.options import TableFormat
from runtime.ids import new_id
from tests.support.cells import cells
from tests.support.source_steps import FORMATS, OF_OBJECTS, MakeSource, Rows, Source, each

Json = dict[str, Any]


def names(run: DataSourceRunDetail, what: str) -> list[str]:
    return [one.source_path for one in getattr(run.columns, what)]


def mapped(**kinds: str) -> list[Json]:
    """Columns that fill fields of their names; `code` fills the title."""
    return [
        {"sourcePath": path, "fieldKey": "title" if path == "code" else path, "label": path}
        | {"kind": kind}
        for path, kind in {"code": "text", **kinds}.items()
    ]


@pytest.mark.long
@pytest.mark.parametrize("form", each(OF_OBJECTS))
@pytest.mark.parametrize("mode", ["upsert", "replace"])
async def test_a_row_means_the_same_with_any_neighbours(
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


@pytest.mark.long
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
    assert (run.status, run.error_kind) == ("failed", "mapping"), "they are other rows"


_LIST = b'[{"code": "a", "qty": 1}]'
_WRAPPED = b'{"order items": [{"code": "a", "qty": 1}], "warnings": []}'
_TABLE = b"code,qty\na,1\n"


@pytest.mark.long
@pytest.mark.parametrize(
    ("form", "before", "answer"),
    [
        ("json", _LIST, b'{"error": "rate limited", "code": "429"}'),
        ("json", _LIST, b'{"data": null, "errors": [{"message": "down"}]}'),
        ("json", _LIST, b'[{"error": "rate limited"}]'),
        ("json", _LIST, b'{"data": {"code": "a", "qty": 1}}'),
        ("json", _WRAPPED, b'{"error": "rate limited", "code": "429"}'),
        ("json", _WRAPPED, b'{"warnings": [{"code": "deprecated"}]}'),
        ("json", _WRAPPED, b'{"order items": {"code": "b", "qty": 2}}'),
        ("json", _WRAPPED, b'{"order items": "none"}'),
        ("json", _WRAPPED, b'{"order items": [{"message": "none"}]}'),
        ("ndjson", b'{"code": "a", "qty": 1}', b'{"error": "rate limited"}'),
        ("csv", _TABLE, b"<!DOCTYPE html>\n<html><body>Sign in</body></html>\n"),
        ("csv", _TABLE, b"error,reason\n429,rate limited\n"),
    ],
)
async def test_an_answer_of_another_kind_adds_neither_rows_nor_fields(
    source: MakeSource, form: str, before: bytes, answer: bytes
) -> None:
    goods: Source = await source(form, removedRows="keep")
    await goods.read_bytes(before)
    run = await goods.read_bytes(answer, force=True)
    assert (run.status, run.error_kind) in {("failed", "mapping"), ("failed", "parse")}
    again = await goods.read_bytes(before.replace(b"1", b"2"))
    assert (again.status, await goods.records()) == ("succeeded", {"a": {"qty": 2}}), again


@pytest.mark.long
@pytest.mark.parametrize(
    "key", ["items", "order items", "soap:Body", "@odata.value", "ü", "d'x", "*", ""]
)
async def test_rows_are_where_they_were_in_any_member(source: MakeSource, key: str) -> None:
    goods: Source = await source("json")
    other = [{"code": "size", "qty": 9}]
    for qty in (1, 2, 3):
        rows = {key: [{"code": "a", "qty": qty}], "z": other}
        run = await goods.read_bytes(json.dumps(rows).encode())
        assert (run.status, await goods.records()) == ("succeeded", {"a": {"qty": qty}}), run
    run = await goods.read_bytes(json.dumps({"z": other, key: None}).encode())
    assert (run.status, await goods.records()) == ("succeeded", {}), "null is a list without rows"


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


async def test_the_column_of_the_title_stays(source: MakeSource) -> None:
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


STATED: list[tuple[Json, int]] = [
    ({"total": 3}, 1),
    ({"total": 2}, 0),
    ({"total": 0}, 0),
    ({"meta": {"total_count": 5}}, 3),
    ({"pagination": {"totalItems": 3}}, 1),
    ({"count": 120, "next": "https://example.com/goods?page=2"}, 118),
    ({"@odata.count": 4}, 2),
    ({"total": "3"}, 0),
    ({"total": 3.5}, 0),
    ({"total": True}, 0),
    ({"summary": {"total": 9}}, 0),
]


@pytest.mark.parametrize(("around", "missing"), STATED)
async def test_rows_that_a_source_states_and_does_not_give_are_counted(
    source: MakeSource, around: Json, missing: int
) -> None:
    goods: Source = await source("auto")
    content = {"items": [{"code": "a"}, {"code": "b"}], **around}
    run = await goods.read_bytes(json.dumps(content).encode())
    assert (run.status, run.columns.rows_missing) == ("succeeded", missing), run
    wanted = select(notification.c.title).where(notification.c.workspace_id == goods.space.id)
    async with goods.space.database.transaction() as work:
        titles = [row.title for row in await work.rows(wanted)]
    assert titles == (["“Goods” was refreshed with missing rows"] if missing else [])


async def test_a_lone_object_states_no_rows(source: MakeSource) -> None:
    goods: Source = await source("json")
    run = await goods.read_bytes(b'{"code": "a", "total": 7}')
    assert (run.stats.rows_inserted, run.columns.rows_missing) == (1, 0)


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
