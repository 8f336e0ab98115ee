"""Computed values after every way in which what they follow from can change."""

import asyncio
import math
import random
import statistics
import time
from collections.abc import Callable
from typing import Any

import pytest
import pytest_asyncio
from sqlalchemy import func, insert, select, update

from models.content.items.joins import item
from models.core.access.rules import Role
from models.core.base import Id
from models.data.fields.queries import load_schema
from models.data.fields.rules.settings import Aggregate
from models.data.formulas.rules import CompiledFormula
from models.data.records.commands import update_record
from models.data.records.computed_values import REQUEST_SECONDS, recompute_next
from models.data.records.shapes import UpdateRecord
from models.data.records.tables import record, record_link
from models.messages.jobs.store import job
from runtime.ids import new_id
from runtime.temporal.workflow_kinds import WorkflowKind
from tests.support.attacks import GROWING
from tests.support.client import Client
from tests.support.related import add, add_field, change, computed, make_database, relate
from tests.support.spaces import Space

pytestmark = pytest.mark.takes(seconds=20)

LINE: list[dict[str, Any]] = [
    {"label": "Price", "kind": "number"},
    {"label": "Day", "kind": "date"},
    {"label": "Done", "kind": "checkbox"},
    {"label": "Note", "kind": "text"},
    {"label": "Tags", "kind": "multi_select", "options": [{"name": "A"}, {"name": "B"}]},
]


@pytest_asyncio.fixture
async def orders(client: Client, space: Space) -> str:
    return await make_database(client, space, "Orders")


@pytest_asyncio.fixture
async def lines(client: Client, space: Space, orders: str) -> str:
    """Lines with a price, each of one order; an order shows its `lines`."""
    made = await make_database(client, space, "Lines", *LINE)
    await relate(client, made, orders, "Order", cardinality="one", inverseLabel="Lines")
    return made


async def rollup(
    client: Client, database_id: str, label: str, aggregate: str, target: str, way: str = "lines"
) -> dict[str, Any]:
    settings = {"relationFieldKey": way, "targetFieldKey": target, "aggregate": aggregate}
    return await add_field(client, database_id, label, "rollup", settings=settings)


async def lookup(client: Client, database_id: str, label: str, way: str, target: str) -> None:
    settings = {"relationFieldKey": way, "targetFieldKey": target}
    await add_field(client, database_id, label, "lookup", settings=settings)


async def formula(client: Client, database_id: str, label: str, text: str) -> None:
    await add_field(client, database_id, label, "formula", settings={"expression": text})


async def line(client: Client, lines: str, order: str, **data: Any) -> str:
    return await add(client, lines, data=data, relations={"order": [order]})


def _spread(values: list[float]) -> float | None:
    return statistics.stdev(values) if len(values) > 1 else None


NUMBERS: dict[Aggregate, Callable[[list[Any]], Any]] = {
    Aggregate.COUNT: len,
    Aggregate.COUNT_EMPTY: lambda all_: len([v for v in all_ if v is None]),
    Aggregate.COUNT_FILLED: lambda all_: len([v for v in all_ if v is not None]),
    Aggregate.COUNT_UNIQUE: lambda all_: len({v for v in all_ if v is not None}),
    Aggregate.PERCENT_EMPTY: lambda all_: 100 * sum(v is None for v in all_) / len(all_),
    Aggregate.PERCENT_FILLED: lambda all_: 100 * sum(v is not None for v in all_) / len(all_),
    Aggregate.SUM: lambda all_: sum(v for v in all_ if v is not None),
    Aggregate.AVG: lambda all_: statistics.mean([v for v in all_ if v is not None]),
    Aggregate.MIN: lambda all_: min(v for v in all_ if v is not None),
    Aggregate.MAX: lambda all_: max(v for v in all_ if v is not None),
    Aggregate.MEDIAN: lambda all_: statistics.median([v for v in all_ if v is not None]),
    Aggregate.RANGE: lambda all_: (
        max(v for v in all_ if v is not None) - min(v for v in all_ if v is not None)
    ),
    Aggregate.STDDEV: lambda all_: _spread([v for v in all_ if v is not None]),
}


@pytest.mark.long
async def test_every_aggregate_is_what_plain_python_says(
    client: Client, orders: str, lines: str
) -> None:
    for aggregate in NUMBERS:
        await rollup(client, orders, f"n {aggregate}", aggregate, "price")
    for aggregate in (Aggregate.EARLIEST, Aggregate.LATEST):
        await rollup(client, orders, f"d {aggregate}", aggregate, "day")
    for aggregate in (Aggregate.CHECKED, Aggregate.UNCHECKED):
        await rollup(client, orders, f"c {aggregate}", aggregate, "done")
    chance = random.Random(7)  # noqa: S311  # the same values in every run
    order = await add(client, orders)
    prices: list[Any] = [chance.choice([None, chance.randint(-5, 5), 2.5]) for _ in range(12)]
    days = [f"2026-01-{chance.randint(1, 28):02}" for _ in prices]
    done = [chance.random() < 0.5 for _ in prices]
    for price, day, ticked in zip(prices, days, done, strict=True):
        data = {"day": day, "done": ticked} | ({} if price is None else {"price": price})
        await line(client, lines, order, **data)
    values = await computed(client, order)
    for aggregate, expected in NUMBERS.items():
        assert math.isclose(values[f"n_{aggregate}"], expected(prices)), aggregate
    assert (values["d_earliest"], values["d_latest"]) == (min(days), max(days))
    assert (values["c_checked"], values["c_unchecked"]) == (sum(done), len(done) - sum(done))


@pytest.mark.long
async def test_of_nothing_only_counts_have_a_value(client: Client, orders: str, lines: str) -> None:
    assert lines
    for aggregate in NUMBERS:
        await rollup(client, orders, aggregate, aggregate, "price")
    values = await computed(client, await add(client, orders))
    counts = {"count", "count_empty", "count_filled", "count_unique"}
    assert values == {key: 0 if key in counts else None for key in NUMBERS}


async def test_a_rollup_follows_values_links_and_the_trash(
    client: Client, orders: str, lines: str
) -> None:
    await rollup(client, orders, "Total", "sum", "price")
    first, second = await add(client, orders), await add(client, orders)
    one = await line(client, lines, first, price=2)
    two = await line(client, lines, first, price=3)
    assert await computed(client, first) == {"total": 5}
    await change(client, one, data={"price": 10})
    assert await computed(client, first) == {"total": 13}
    await change(client, two, relations={"order": [second]})
    assert (await computed(client, first), await computed(client, second)) == (
        {"total": 10},
        {"total": 3},
    )
    await change(client, second, relations={"lines": [one, two]})
    assert (await computed(client, first), await computed(client, second)) == (
        {"total": None},
        {"total": 13},
    )
    await client.delete(f"/v1/records/{one}")
    assert await computed(client, second) == {"total": 3}
    await client.post(f"/v1/records/{one}/restore")
    assert await computed(client, second) == {"total": 13}
    await change(client, second, relations={"lines": None})
    assert await computed(client, second) == {"total": None}


async def test_the_answer_to_a_write_holds_what_follows_from_it(
    client: Client, orders: str, lines: str
) -> None:
    await rollup(client, orders, "Total", "sum", "price")
    await formula(client, orders, "Twice", "record.total * 2")
    some = [await add(client, lines, data={"price": price}) for price in (1, 2)]
    body = {"relations": {"lines": some}}
    made = await client.post(f"/v1/databases/{orders}/records", json=body)
    assert made.json()["data"]["computed"] == {"total": 3, "twice": 6}


async def test_a_lookup_lists_the_values_in_the_order_of_the_links(
    client: Client, orders: str, lines: str
) -> None:
    await lookup(client, orders, "Notes", "lines", "note")
    await lookup(client, orders, "Tags", "lines", "tags")
    await lookup(client, orders, "Titles", "lines", "title")
    await add_field(client, lines, "Born", "created_at")
    await lookup(client, orders, "Births", "lines", "born")
    order = await add(client, orders)
    assert (await computed(client, order))["notes"] == []
    b = await line(client, lines, order, note="b", tags=["a", "b"])
    empty = await line(client, lines, order, note="")
    a = await line(client, lines, order, note="a", tags=["b"])
    await change(client, order, relations={"lines": [a, empty, b]})
    values = await computed(client, order)
    assert values["notes"] == ["a", "b"]
    assert values["tags"] == ["b", "a", "b"]
    assert values["titles"] == []
    born = (await client.get(f"/v1/records/{a}")).json()["data"]["system"]["born"]
    assert values["births"][0] == born
    assert len(values["births"]) == 3


async def test_a_lookup_keeps_the_first_hundred_values(
    client: Client, orders: str, lines: str
) -> None:
    await lookup(client, orders, "Prices", "lines", "price")
    order = await add(client, orders)
    operations = [
        {"op": "create", "data": {"price": price}, "relations": {"order": [order]}}
        for price in range(120)
    ]
    answer = await client.post(
        f"/v1/databases/{lines}/records/batch", json={"operations": operations}
    )
    assert answer.status_code == 200
    assert len((await computed(client, order))["prices"]) == 100


async def test_a_formula_over_a_rollup_of_a_formula_over_three_databases(
    client: Client, space: Space, orders: str, lines: str
) -> None:
    await formula(client, lines, "Gross", "record.price * 1.5")
    await rollup(client, orders, "Sum", "sum", "gross")
    await formula(client, orders, "Due", "record.sum == null ? 0 : record.sum + 1")
    customers = await make_database(client, space, "Customers")
    await relate(client, orders, customers, "Customer", inverseLabel="Orders")
    await rollup(client, customers, "Debt", "sum", "due", "orders")
    customer = await add(client, customers)
    order = await add(client, orders, relations={"customer": [customer]})
    assert await computed(client, customer) == {"debt": 0}
    one = await line(client, lines, order, price=2)
    assert await computed(client, customer) == {"debt": 4}
    await change(client, one, data={"price": 4})
    assert await computed(client, customer) == {"debt": 7}
    await client.delete(f"/v1/records/{order}")
    assert await computed(client, customer) == {"debt": None}


async def test_a_record_linked_to_itself_counts_once(client: Client, space: Space) -> None:
    people = await make_database(client, space, "People", {"label": "Age", "kind": "number"})
    await relate(client, people, people, "Friends", symmetric=True)
    await rollup(client, people, "Ages", "sum", "age", "friends")
    one, two = [await add(client, people, data={"age": age}) for age in (1, 2)]
    await change(client, one, relations={"friends": [one, two]})
    assert await computed(client, one) == {"ages": 3}
    assert await computed(client, two) == {"ages": 1}
    await change(client, one, data={"age": 5})
    assert await computed(client, one) == {"ages": 7}
    assert await computed(client, two) == {"ages": 5}


async def test_formulas_read_what_the_platform_writes(client: Client, space: Space) -> None:
    things = await make_database(
        client, space, "Things", {"label": "Serial", "kind": "auto_number"},
        {"label": "Born", "kind": "created_at"}, {"label": "Seen", "kind": "updated_at"},
    )  # fmt: skip
    await formula(client, things, "Name", 'record.title + "-" + string(int(record.serial))')
    await formula(client, things, "Age", "record.seen - record.born")
    thing = await add(client, things, "T")
    assert await computed(client, thing) == {"name": "T-1", "age": 0}
    await asyncio.sleep(0.01)
    changed = await change(client, thing, title="U")
    assert changed["computed"]["name"] == "U-1"
    assert changed["computed"]["age"] > 0


async def test_a_formula_that_fails_gives_null_and_refuses_no_write(
    client: Client, lines: str
) -> None:
    await formula(client, lines, "Share", "1.0 / record.price")
    await formula(client, lines, "First", "record.tags[0]")
    made = await add(client, lines, data={"price": 0})
    assert await computed(client, made) == {"share": None, "first": None}
    changed = await change(client, made, data={"price": 4, "tags": ["b"]})
    assert changed["computed"] == {"share": 0.25, "first": "b"}


@pytest.mark.long
@pytest.mark.parametrize("text", GROWING.values(), ids=GROWING.keys())
async def test_a_formula_that_grows_without_end_is_not_saved(
    client: Client, lines: str, text: str
) -> None:
    body = {"label": "Bomb", "kind": "formula", "settings": {"expression": text}}
    answer = await client.post(f"/v1/databases/{lines}/fields", json=body)
    assert answer.status_code == 400, answer.text
    (detail,) = answer.json()["details"]
    assert detail["path"] == "settings.expression"
    assert "Select less" in detail["message"] or "time or memory" in detail["message"]


async def test_a_field_named_alone_is_answered_with_how_to_read_it(
    client: Client, lines: str
) -> None:
    body = {"label": "Twice", "kind": "formula", "settings": {"expression": "Price * 2"}}
    answer = await client.post(f"/v1/databases/{lines}/fields", json=body)
    assert answer.status_code == 400, answer.text
    assert "The field is read as record.price" in answer.json()["message"]


@pytest.mark.long
async def test_a_record_with_which_a_formula_grows_without_end_is_not_written(
    client: Client, lines: str
) -> None:
    await formula(client, lines, "Bomb", "record.tags" + ".map(x,[x,x])" * 30)
    made = await add(client, lines, data={"price": 1})
    tags = {"data": {"tags": ["a", "b"]}}
    answer = await client.patch(f"/v1/records/{made}", json=tags)
    assert answer.status_code == 400, answer.text
    assert [detail["path"] for detail in answer.json()["details"]] == ["data.bomb"]
    assert (await change(client, made, data={"price": 2}))["data"]["price"] == 2


async def test_a_machine_that_stands_still_leaves_no_formula_to_a_job(
    client: Client, lines: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await formula(client, lines, "Twice", "record.price * 2")
    evaluate = CompiledFormula.evaluate

    def late(given: CompiledFormula, values: dict[str, Any]) -> Any:
        time.sleep(REQUEST_SECONDS)
        return evaluate(given, values)

    monkeypatch.setattr(CompiledFormula, "evaluate", late)
    operations = [{"op": "create", "data": {"price": price}} for price in range(3)]
    answer = await client.post(
        f"/v1/databases/{lines}/records/batch", json={"operations": operations}
    )
    assert answer.status_code == 200, answer.text
    made = answer.json()["data"]["records"]
    assert [one["computed"]["twice"] for one in made] == [0, 2, 4]


async def test_a_new_and_a_changed_field_have_values_at_once(
    client: Client, orders: str, lines: str
) -> None:
    order = await add(client, orders)
    await line(client, lines, order, price=2)
    await line(client, lines, order, price=3)
    await rollup(client, orders, "Total", "sum", "price")
    made = await add_field(
        client, orders, "Text", "formula", settings={"expression": "record.total * 2"}
    )
    assert await computed(client, order) == {"total": 5, "text": 10}
    path = f"/v1/databases/{orders}/fields/{made['id']}"
    answer = await client.patch(path, json={"settings": {"expression": "record.total + 1"}})
    assert answer.status_code == 200, answer.text
    assert await computed(client, order) == {"total": 5, "text": 6}


async def test_a_formula_that_depends_on_itself_is_refused(
    client: Client, orders: str, lines: str
) -> None:
    total = await rollup(client, orders, "Total", "sum", "price")
    await lookup(client, lines, "Totals", "order", "total")
    settings = {**total["settings"], "aggregate": "count", "targetFieldKey": "totals"}
    answer = await client.patch(
        f"/v1/databases/{orders}/fields/{total['id']}", json={"settings": settings}
    )
    assert answer.status_code == 400
    assert "depends on itself" in answer.json()["message"]


async def test_a_timer_shows_what_it_will_hold(client: Client, space: Space) -> None:
    things = await make_database(client, space, "Things", {"label": "Spent", "kind": "timer"})
    values = await computed(client, await add(client, things))
    assert values == {"spent": {"totalMs": 0, "runningEntryId": None}}


async def close(space: Space, database_id: str) -> None:
    async with space.database.transaction() as work:
        await work.execute(
            update(item).where(item.c.target_id == database_id).values(access_mode="restricted")
        )


async def test_values_computed_from_a_closed_database_are_not_shown(
    client: Client, space: Space, orders: str, lines: str
) -> None:
    await rollup(client, orders, "Total", "sum", "price")
    await formula(client, orders, "Twice", "record.total * 2")
    await formula(client, orders, "Own", "record.title")
    customers = await make_database(client, space, "Customers")
    await relate(client, orders, customers, "Customer", inverseLabel="Orders")
    await rollup(client, customers, "Debt", "sum", "twice", "orders")
    await lookup(client, customers, "Names", "orders", "title")
    customer = await add(client, customers)
    order = await add(client, orders, "O", relations={"customer": [customer]})
    await line(client, lines, order, price=2)
    await close(space, lines)
    _, token = await space.member(Role.EDITOR)
    member = client.with_token(token)
    assert await computed(member, order) == {"total": None, "twice": None, "own": "O"}
    assert await computed(member, customer) == {"debt": None, "names": ["O"]}
    assert await computed(client, customer) == {"debt": 4, "names": ["O"]}


@pytest.mark.long
async def test_parallel_changes_below_one_record_are_all_counted(
    client: Client, space: Space, orders: str, lines: str
) -> None:
    await rollup(client, orders, "Total", "sum", "price")
    order = await add(client, orders)
    some = [await line(client, lines, order, price=0) for _ in range(8)]
    # Who cannot wait any longer for the others leaves the order to a job.
    await asyncio.gather(*(change(client, one, data={"price": 1}) for one in some))
    await finish_jobs(space)
    assert await computed(client, order) == {"total": 8}
    await asyncio.gather(*(line(client, lines, order, price=1) for _ in range(8)))
    await finish_jobs(space)
    assert await computed(client, order) == {"total": 16}


async def test_linking_a_record_waits_for_its_writer(
    client: Client, space: Space, orders: str, lines: str
) -> None:
    await rollup(client, orders, "Total", "sum", "price")
    one = await add(client, lines, data={"price": 1})
    async with space.database.transaction() as work:
        body = UpdateRecord.model_validate({"data": {"price": 7}})
        await update_record(work, space.actor, Id(one), body)
        linking = asyncio.create_task(add(client, orders, relations={"lines": [one]}))
        await asyncio.sleep(0.3)
        assert not linking.done()
    assert await computed(client, await linking) == {"total": 7}


async def test_a_new_field_waits_for_those_who_write_what_it_reads(
    client: Client, space: Space, orders: str, lines: str
) -> None:
    order = await add(client, orders)
    one = await line(client, lines, order, price=1)
    async with space.database.transaction() as work:
        body = UpdateRecord.model_validate({"data": {"price": 7}})
        await update_record(work, space.actor, Id(one), body)
        making = asyncio.create_task(rollup(client, orders, "Total", "sum", "price"))
        await asyncio.sleep(0.3)
        assert not making.done()
    await making
    assert await computed(client, order) == {"total": 7}


@pytest.mark.long
async def test_writers_that_follow_from_each_other_both_go_through(
    client: Client, space: Space, orders: str, lines: str
) -> None:
    await add_field(client, orders, "Factor", "number")
    await rollup(client, orders, "Total", "sum", "price")
    await lookup(client, lines, "Factors", "order", "factor")
    order = await add(client, orders)
    some = [await line(client, lines, order, price=1) for _ in range(3)]
    for turn in range(5):
        answers = await asyncio.gather(
            client.patch(f"/v1/records/{order}", json={"data": {"factor": turn}}),
            *(client.patch(f"/v1/records/{one}", json={"data": {"price": turn}}) for one in some),
        )
        assert {answer.status_code for answer in answers} == {200}
    await finish_jobs(space)
    assert await computed(client, order) == {"total": 12}
    assert [await computed(client, one) for one in some] == [{"factors": [4]}] * 3


async def finish_jobs(space: Space) -> int:
    """Do what recomputation jobs do, chunk by chunk; gives the number of chunks."""
    chunks = 0
    while True:
        async with space.database.transaction() as work:
            asked = await work.first(
                select(job)
                .where(
                    job.c.workspace_id == space.id,
                    job.c.workflow_kind == WorkflowKind.RECOMPUTATION.value,
                    job.c.status == "queued",
                )
                .order_by(job.c.created_at)
                .limit(1)
            )
            if asked is None:
                return chunks
            progress = await recompute_next(work, asked)
            values = {"status": "failed"} if progress is None else {"progress": progress}
            await work.execute(update(job).where(job.c.id == asked.id).values(**values))
            chunks += 1


async def fill(space: Space, lines: str, order: str, size: int) -> None:
    """Many lines of one order, put straight into the tables."""
    async with space.database.transaction() as work:
        schema = await load_schema(work, space.id, Id(lines))
        relation = schema.fields["order"]
        ids = [new_id() for _ in range(size)]
        await work.execute(
            insert(record),
            [
                {"id": each, "workspace_id": space.id, "database_id": Id(lines), "title": "",
                 "data": {"price": 1}, "archived": False, "created_at": work.now,
                 "updated_at": work.now}
                for each in ids
            ],
        )  # fmt: skip
        ordered = {"workspace_id": space.id, "position": 0, "target_position": 0}
        stored, flipped = relation.id, relation.inverse_id < relation.id
        await work.execute(
            insert(record_link),
            [
                {**ordered, "field_id": relation.inverse_id if flipped else stored,
                 "record_id": Id(order) if flipped else each,
                 "target_id": each if flipped else Id(order)}
                for each in ids
            ],
        )  # fmt: skip


@pytest.mark.long
async def test_a_change_that_twenty_thousand_records_follow_from_is_a_job(
    client: Client, space: Space, orders: str, lines: str
) -> None:
    await add_field(client, orders, "Factor", "number")
    await lookup(client, lines, "Factors", "order", "factor")
    order = await add(client, orders)
    await fill(space, lines, order, 20_000)
    await change(client, order, data={"factor": 5})
    await change(client, order, data={"factor": 7})
    async with space.database.transaction() as work:
        statement = select(func.count()).where(job.c.workspace_id == space.id)
        assert await work.scalar(statement) == 1
    assert await finish_jobs(space) == 41
    async with space.database.transaction() as work:
        statement = select(func.count()).where(
            record.c.workspace_id == space.id, record.c.computed["factors"].astext == "[7]"
        )
        assert await work.scalar(statement) == 20_000


async def test_a_new_field_of_a_large_database_is_computed_by_a_job(
    client: Client, space: Space, orders: str, lines: str
) -> None:
    order = await add(client, orders)
    await fill(space, lines, order, 1_200)
    await formula(client, lines, "Twice", "record.price * 2")
    assert await finish_jobs(space) == 4
    async with space.database.transaction() as work:
        statement = select(func.count()).where(
            record.c.workspace_id == space.id, record.c.computed["twice"].astext == "2"
        )
        assert await work.scalar(statement) == 1_200


@pytest.mark.parametrize("size", [1, 40])
async def test_a_batch_sends_the_same_statements_for_any_number_of_records(
    client: Client, orders: str, lines: str, sent: list[Any], size: int
) -> None:
    await rollup(client, orders, "Total", "sum", "price")
    await formula(client, orders, "Twice", "record.total * 2")
    await formula(client, lines, "Half", "record.price / 2")
    order = await add(client, orders)
    operations = [
        {"op": "create", "data": {"price": 1}, "relations": {"order": [order]}} for _ in range(size)
    ]
    sent.clear()
    path = f"/v1/databases/{lines}/records/batch"
    answer = await client.post(path, json={"operations": operations})
    assert answer.status_code == 200
    assert len(sent) <= 30
    assert await computed(client, order) == {"total": size, "twice": 2 * size}
