"""Nodes that read and write records, on the real engine: effects, and failures by wrong data."""

from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import func, select

from models.core.base import Id
from models.data.databases.field_changes import create_field
from models.data.fields.shapes import CreateField
from models.data.records.commands import create_record
from models.data.records.rows import CHANGES_WITH_CREATIONS
from models.data.records.shapes import CreateRecord
from models.data.records.tables import record
from models.data.views.commands import create_view
from models.data.views.shapes import CreateView
from tests.support.engine import Engine, by_node, graph, node
from tests.support.goods import make_table
from tests.support.run_rows import error_codes

Json = dict[str, Any]


async def stored(engine: Engine, table: Id) -> list[Json]:
    async with engine.database.transaction() as work:
        rows = await work.rows(
            select(record.c.data).where(
                record.c.database_id == table, record.c.deleted_at.is_(None)
            )
        )
    return [row.data for row in rows]


def binding(type_: str, value: Any) -> Json:
    return {"type": type_, "value": value}


async def test_a_record_is_created_changed_found_and_deleted(engine: Engine, table: Id) -> None:
    id_ = str(table)
    run = await engine.run(
        graph(
            node(
                "make",
                "create_record",
                databaseId=id_,
                title="One",
                data={"code": binding("trigger", "code"), "price": 3},
            ),
            node(
                "change",
                "update_record",
                recordId=binding("node", "make.record.id"),
                data={"price": binding("expression", "nodes.make.record.data.price + 1")},
            ),
            node(
                "find",
                "query_records",
                databaseId=id_,
                query={"filter": {"field": "price", "op": "eq", "value": 4}, "limit": 5},
            ),
            node("drop", "delete_record", recordId=binding("node", "find.records[0].id")),
            edges=[("make", "change"), ("change", "find"), ("find", "drop")],
        ),
        {"code": "A1"},
    )
    assert run.status == "succeeded", run.error
    nodes = by_node(run)
    moments = [run.started_at]
    for name in ("make", "change", "find", "drop"):
        assert nodes[name].completed_at > nodes[name].started_at
        moments += [nodes[name].started_at, nodes[name].completed_at]
    assert moments == sorted(moments)
    assert moments[-1] <= run.completed_at
    made = nodes["make"].output
    assert (made["created"], made["record"]["title"]) == (True, "One")
    assert nodes["change"].output["record"]["data"]["price"] == 4
    assert (nodes["find"].output["count"], nodes["find"].output["cursor"]) == (1, None)
    assert nodes["drop"].output["record"]["id"] == made["record"]["id"]
    assert await stored(engine, table) == []


async def test_each_change_names_the_node_that_made_it(engine: Engine, table: Id) -> None:
    run = await engine.run(
        graph(
            node(
                "plain",
                "create_record",
                databaseId=str(table),
                title="Untouched",
                data={"code": "A"},
            ),
            node("make", "create_record", databaseId=str(table), data={"code": "B"}),
            node("drop", "delete_record", recordId=binding("node", "make.record.id")),
            edges=[("plain", "make"), ("make", "drop")],
        )
    )
    assert run.status == "succeeded", run.error
    changes = CHANGES_WITH_CREATIONS.c
    async with engine.database.transaction() as work:
        of_run = select(changes.node_id).where(changes.run_id == run.id).order_by(changes.id)
        assert [one.node_id for one in await work.rows(of_run)] == ["plain", "make", "drop"]


async def test_a_query_counts_and_groups(engine: Engine, table: Id) -> None:
    make = [
        node(
            f"make{price}",
            "create_record",
            databaseId=str(table),
            data={"code": f"A{price}", "price": price},
        )
        for price in (3, 4)
    ]
    query = {
        "aggregates": [{"op": "sum", "field": "price", "as": "total"}],
        "groupBy": {"field": "price"},
        "limit": 1,
    }
    find = node("find", "query_records", databaseId=str(table), query=query)
    run = await engine.run(graph(*make, find, edges=[("make3", "make4"), ("make4", "find")]))
    assert run.status == "succeeded", run.error
    found = by_node(run)["find"].output
    assert found["aggregates"] == {"total": 7}
    assert [group["count"] for group in found["groups"]] == [1, 1]
    assert (found["count"], found["cursor"] is None) == (1, False)


async def test_a_repeat_asks_for_page_after_page(engine: Engine, table: Id) -> None:
    make = node("make", "create_record", databaseId=str(table), data={"code": binding("item", "")})
    query = {"limit": 2, "cursor": binding("node", "page.cursor")}
    run = await engine.run(
        graph(
            node("each", "for_each", items=["a", "b", "c", "d", "e"]),
            make,
            node("again", "repeat", **{"while": "index == 0 || nodes.page.cursor != null"}),
            node("page", "query_records", databaseId=str(table), query=query),
            edges=[("each", "make", "item"), ("each", "again", "done"), ("again", "page", "item")],
        )
    )
    assert run.status == "succeeded", run.error
    pages = [one.output for one in run.node_runs if one.node_id == "page" and one.output]
    assert [page["count"] for page in pages] == [2, 2, 1]
    found = {record["data"]["code"] for page in pages for record in page["records"]}
    assert found == {"a", "b", "c", "d", "e"}


async def test_upsert_creates_once_and_then_changes(engine: Engine, table: Id) -> None:
    automation = await engine.publish(
        graph(
            node(
                "put",
                "create_record",
                databaseId=str(table),
                upsertBy=["code"],
                data={"code": "A1", "price": binding("trigger", "price")},
            )
        )
    )
    created = []
    for price in (1, 2, 3):
        run_id = await engine.start(automation.id, {"price": price})
        run = await engine.ended(automation.id, run_id)
        created.append(by_node(run)["put"].output["created"])
    assert created == [True, False, False]
    assert await stored(engine, table) == [{"code": "A1", "price": 3}]


@pytest.mark.parametrize(
    ("config", "code", "message"),
    [
        (
            {"data": {"code": "A", "price": binding("trigger", "text")}},
            "validation_error",
            "data.price",
        ),
        (
            {"data": {"code": "A", "price": binding("trigger", "debt")}},
            "validation_error",
            "data.price",
        ),
        ({"data": binding("trigger", "codeless")}, "validation_error", "data.code"),
        ({"data": binding("trigger", "unknown")}, "validation_error", "data.nope"),
        ({"data": binding("trigger", "text")}, "binding_error", "data"),
        (
            {"upsertBy": ["code"], "data": binding("trigger", "codeless")},
            "validation_error",
            "data.code",
        ),
    ],
)
async def test_wrong_data_fails_the_node_and_writes_nothing(
    engine: Engine, table: Id, config: Json, code: str, message: str
) -> None:
    run = await engine.run(
        graph(
            node("put", "create_record", label="Put", databaseId=str(table), **config),
            node("oops", "transform", output={"ok": True}),
            edges=[("put", "oops", "failure")],
        ),
        {"unknown": {"nope": 1}, "text": "x", "debt": -1, "codeless": {"price": 1}},
    )
    assert (run.status, run.output) == ("succeeded", {"oops": {"ok": True}})
    assert await error_codes(engine, run) == {"put": code}
    assert message in by_node(run)["put"].error
    assert await stored(engine, table) == []


@pytest.mark.parametrize("kind", ["update_record", "delete_record"])
async def test_a_record_that_is_not_there_fails_the_node(
    engine: Engine, table: Id, kind: str
) -> None:
    run = await engine.run(
        graph(node("it", kind, databaseId=str(table), recordId=str(uuid4()))), {}
    )
    assert (run.status, await error_codes(engine, run)) == ("failed", {"it": "not_found"})


@pytest.mark.parametrize("kind", ["update_record", "delete_record"])
async def test_a_record_of_another_database_is_not_touched(
    engine: Engine, table: Id, kind: str
) -> None:
    other = await make_table(engine)
    run = await engine.run(
        graph(
            node("make", "create_record", databaseId=str(table), data={"code": "A", "price": 1}),
            node("it", kind, databaseId=str(other), recordId=binding("node", "make.record.id")),
            edges=[("make", "it")],
        )
    )
    assert await error_codes(engine, run) == {"it": "not_found"}
    assert await stored(engine, table) == [{"code": "A", "price": 1}]


async def test_a_query_that_means_nothing_fails_the_node(engine: Engine, table: Id) -> None:
    query = {"filter": {"field": "price", "op": binding("trigger", "op"), "value": 1}}
    run = await engine.run(
        graph(node("find", "query_records", databaseId=str(table), query=query)),
        {"op": "resembles"},
    )
    assert (run.status, await error_codes(engine, run)) == (
        "failed",
        {"find": "validation_error"},
    )


@pytest.mark.long
async def test_an_effect_and_its_node_run_are_one_transaction(engine: Engine, table: Id) -> None:
    """The record is there exactly as often as its node run, however often the node is asked for."""
    runs = [
        await engine.run(
            graph(node("make", "create_record", databaseId=str(table), data={"code": str(n)}))
        )
        for n in range(3)
    ]
    assert [run.status for run in runs] == ["succeeded"] * 3
    async with engine.database.transaction() as work:
        count = await work.scalar(select(func.count()).where(record.c.database_id == table))
    assert count == 3


async def test_a_query_through_a_view_asks_what_the_view_asks(engine: Engine, table: Id) -> None:
    manifest = {"search": "wanted", "sorts": [{"field": "price", "direction": "desc"}]}
    async with engine.database.transaction() as work:
        body = CreateView.model_validate({"label": "Wanted", "manifest": manifest})
        view = await create_view(work, engine.actor, table, body)
        for code, price in (("wanted", 1), ("wanted", 2), ("other", 3)):
            made = CreateRecord.model_validate({"data": {"code": code, "price": price}})
            await create_record(work, engine.actor, table, made)
    query = {"viewId": str(view.id), "limit": binding("trigger", "limit")}
    run = await engine.run(
        graph(node("find", "query_records", databaseId=str(table), query=query)),
        {"limit": 1_000},
    )
    found = by_node(run)["find"].output["records"]
    assert [one["data"]["price"] for one in found] == [2, 1]


async def test_records_are_linked_and_unlinked(engine: Engine, table: Id) -> None:
    settings = {"databaseId": str(table)}
    async with engine.database.transaction() as work:
        body = CreateField.model_validate(
            {"label": "Parts", "key": "parts", "kind": "relation", "settings": settings}
        )
        await create_field(work, engine.actor, table, body)
    id_ = str(table)
    run = await engine.run(
        graph(
            node("part", "create_record", databaseId=id_, data={"code": "P"}),
            node(
                "whole",
                "create_record",
                databaseId=id_,
                data={"code": "W"},
                relations={"parts": [binding("node", "part.record.id")]},
            ),
            node(
                "apart",
                "update_record",
                databaseId=id_,
                recordId=binding("node", "whole.record.id"),
                relations={"parts": None},
            ),
            edges=[("part", "whole"), ("whole", "apart")],
        )
    )
    assert run.status == "succeeded", run.error
    nodes = by_node(run)
    (linked,) = nodes["whole"].output["record"]["relations"]["parts"]
    assert linked == nodes["part"].output["record"]["id"]
    assert nodes["apart"].output["record"]["relations"]["parts"] == []


async def test_a_title_of_null_is_cleared(engine: Engine, table: Id) -> None:
    run = await engine.run(
        graph(
            node("make", "create_record", databaseId=str(table), title="T", data={"code": "A"}),
            node(
                "keep",
                "update_record",
                recordId=binding("node", "make.record.id"),
                data={"code": "B"},
            ),
            node(
                "clear",
                "update_record",
                recordId=binding("node", "make.record.id"),
                title=binding("trigger", "nothing"),
            ),
            edges=[("make", "keep"), ("keep", "clear")],
        )
    )
    assert run.status == "succeeded", run.error
    kept, cleared = (by_node(run)[name].output["record"] for name in ("keep", "clear"))
    assert (kept["title"], kept["data"]["code"]) == ("T", "B")
    assert (cleared["title"], cleared["data"]["code"]) == ("", "B")
