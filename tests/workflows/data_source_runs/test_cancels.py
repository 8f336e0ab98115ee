"""Cancelling runs: in each stage the work is stopped soon."""

import time
from typing import Any

import pytest
from sqlalchemy import text

from runtime.database import Database
from tests.support.client import Client
from tests.support.endpoint import never
from tests.support.engine import Engine
from tests.support.patience import eventually, promised
from tests.support.sources import goods
from tests.support.spaces import Space
from workflows.policies import HEARTBEAT_TIMEOUT


async def _cancelled(source: Any, run_id: str) -> None:
    answer = await source.client.post(f"{source.path}/runs/{run_id}/cancel")
    assert answer.json()["data"]["status"] == "cancelled"


@pytest.mark.long
async def test_a_cancelled_run_writes_nothing(source: Any) -> None:
    goods_of = await source()
    goods_of.answers(never)
    run = (await goods_of.client.post(f"{goods_of.path}/refresh", json={})).json()["data"]
    second = (await goods_of.client.post(f"{goods_of.path}/refresh", json={})).json()["data"]
    assert second["id"] == run["id"], "while one is open it is the answer"
    await goods_of.endpoint.reached.wait()
    await _cancelled(goods_of, run["id"])
    await goods_of.endpoint.left.wait()
    assert await goods_of.records() == {}


@pytest.mark.long
@pytest.mark.parametrize(
    ("table", "statement"),
    [
        pytest.param("staged_row", "COPY staged_row%", id="stage"),
        pytest.param("record_change", "%INSERT INTO record_change%", id="apply"),
    ],
)
async def test_a_statement_that_waits_is_aborted(
    source: Any, database: Database, table: str, statement: str
) -> None:
    goods_of = await source()
    goods_of.answers(goods(("a", "Apple", 1)))

    async with database.transaction() as holding:
        await holding.execute(text(f"LOCK TABLE {table} IN EXCLUSIVE MODE"))
        run = (await goods_of.client.post(f"{goods_of.path}/refresh", json={})).json()["data"]
        await _waits(database, statement)
        await _cancelled(goods_of, run["id"])
        await _given_up(database, statement)
    assert (await goods_of.run(run["id"]))["status"] == "cancelled"
    assert await goods_of.records() == {}


@pytest.mark.long
async def test_an_import_cancelled_while_rows_are_copied_leaves_nothing(
    client: Client, space: Space, engine: Engine
) -> None:
    database, statement = engine.database, "COPY record%"
    body = {"label": "Copied", "kind": "inline", "format": "csv", "text": "a,b\n1,2\n"}
    async with database.transaction() as holding:
        await holding.execute(text("LOCK TABLE record IN EXCLUSIVE MODE"))
        begun = (await client.post(f"{space.path}/imports", json=body)).json()["data"]
        await _waits(database, statement)
        path = f"{space.path}/imports/{begun['id']}"
        assert (await client.post(f"{path}/cancel", json={})).is_success
        await _given_up(database, statement)
    assert (await client.get(path)).json()["data"]["status"] == "cancelled"
    found = await client.get(f"{space.path}/databases")
    assert found.json()["data"]["databases"] == []


async def _is_waiting(database: Database, statement: str) -> bool:
    query = text(
        "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database()"
        " AND wait_event_type = 'Lock' AND query LIKE :statement)"
    )
    async with database.reading() as work:
        return bool(await work.scalar(query, {"statement": statement}))


async def _waits(database: Database, statement: str) -> None:
    async def waits() -> bool:
        return await _is_waiting(database, statement)

    await eventually(waits, what=f"a statement {statement} that waits")


async def _given_up(database: Database, statement: str) -> None:
    """Wait until a waiting statement is aborted, at most for the promised time."""

    async def stopped() -> bool:
        return not await _is_waiting(database, statement)

    began = time.monotonic()
    await eventually(stopped, what="the end of the statement")
    assert time.monotonic() - began < promised(2 * HEARTBEAT_TIMEOUT.total_seconds())


@pytest.mark.long
async def test_a_cancelled_run_is_retried_by_another(source: Any) -> None:
    goods_of = await source()
    goods_of.answers(never)
    client, path = goods_of.client, goods_of.path
    run = (await client.post(f"{path}/refresh", json={"force": True})).json()["data"]
    await goods_of.endpoint.reached.wait()
    retry = f"{path}/runs/{run['id']}/retry"
    assert (await client.post(retry)).json()["error"] == "conflict", "it is open"
    await _cancelled(goods_of, run["id"])
    await goods_of.endpoint.left.wait()
    goods_of.answers(goods(("a", "Apple", 1)))
    key = {"Idempotency-Key": "again"}
    answers = [await client.post(retry, headers=key) for _ in range(2)]
    assert answers[0].json() == answers[1].json()
    made = answers[0].json()["data"]
    assert (made["trigger"], made["retryOfRunId"]) == ("retry", run["id"])
    assert made["id"] != run["id"]
    ended = await goods_of.ended(made["id"])
    assert (ended["status"], ended["retryOfRunId"]) == ("succeeded", run["id"])
    assert "retryOfRunId" not in await goods_of.run(run["id"])
    again = await client.post(f"{path}/runs/{made['id']}/retry")
    assert (again.status_code, again.json()["error"]) == (409, "conflict"), "it succeeded"


async def test_no_run_is_retried_while_another_is_open(source: Any) -> None:
    goods_of = await source()
    goods_of.answers(never)
    first = (await goods_of.client.post(f"{goods_of.path}/refresh", json={})).json()["data"]
    await _cancelled(goods_of, first["id"])
    await goods_of.client.post(f"{goods_of.path}/refresh", json={})
    answer = await goods_of.client.post(f"{goods_of.path}/runs/{first['id']}/retry")
    assert (answer.status_code, answer.json()["error"]) == (409, "conflict")
