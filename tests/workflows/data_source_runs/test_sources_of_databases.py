"""A query of a database as a data source, from the request to the records."""

from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest
from sqlalchemy import select

from models.sources.connections.providers import CreateConnection
from models.sources.connections.store import create_connection
from models.sources.data_source_runs.tables import data_source_run
from tests.support.client import Client
from tests.support.engine import KEYS
from tests.support.foreign_databases import PASSWORD, READER, ForeignDatabase, over_tcp
from tests.support.items import read, refused
from tests.support.spaces import Space

pytestmark = pytest.mark.long

Json = dict[str, Any]
QUERY = "SELECT code, name, price FROM foreign_shop.goods WHERE price < $1 ORDER BY code"


@pytest.fixture
async def shop(database_url: str) -> AsyncIterator[ForeignDatabase]:
    """A table of another server."""
    async with over_tcp(database_url) as database:
        with psycopg.connect(database_url, autocommit=True) as connection:
            connection.execute("CREATE SCHEMA foreign_shop")
            connection.execute(f"GRANT USAGE ON SCHEMA foreign_shop TO {READER}")
            connection.execute(
                "CREATE TABLE foreign_shop.goods (code text, name text, price numeric(9, 2))"
            )
            connection.execute(f"GRANT SELECT ON foreign_shop.goods TO {READER}")
            yield database
            connection.execute("DROP SCHEMA foreign_shop CASCADE")


def write(database_url: str, statement: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(statement)


@pytest.fixture
async def config(space: Space, shop: ForeignDatabase, database_url: str) -> Json:
    """A query of the shop, which has two goods that answer it and one that does not."""
    connection = {
        "provider": "postgresql",
        "label": "Shop",
        "config": shop.config(),
        "credentials": {"password": PASSWORD},
    }
    async with space.database.transaction() as work:
        body = CreateConnection.model_validate(connection)
        made = await create_connection(work, space.actor, KEYS, body)
    write(
        database_url,
        "INSERT INTO foreign_shop.goods VALUES"
        " ('a', 'Apple', 1.50), ('b', 'Bread', 2), ('z', 'Zebra', 900)",
    )
    return {"connectionId": str(made.id), "query": QUERY, "params": [100]}


async def test_a_query_is_previewed(client: Client, space: Space, config: Json) -> None:
    path = f"{space.path}/data-sources/preview"
    shown = read(await client.post(path, json={"kind": "sql", "config": config}))
    assert [row["code"] for row in shown["rows"]] == ["a", "b"]
    kinds = {one["sourcePath"]: one["kind"] for one in shown["columns"]}
    assert kinds == {"code": "text", "name": "text", "price": "number"}
    two = {"kind": "sql", "config": {**config, "query": "SELECT 1; SELECT 2"}}
    answer = await client.post(path, json=two)
    assert refused(answer) == (400, "validation_error")
    assert "multiple commands" in answer.text


async def test_the_rows_of_a_query_become_records(
    source: Any, space: Space, config: Json, database_url: str
) -> None:
    goods = await source(kind="sql", config=config)
    first = await goods.refresh()
    assert (first["status"], first["stats"]["rowsInserted"]) == ("succeeded", 2), first
    assert first["stats"]["bytesFetched"] > 0
    write(database_url, "UPDATE foreign_shop.goods SET price = 3.25 WHERE code = 'b'")
    second = await goods.refresh()
    assert (second["stats"]["rowsUpdated"], second["stats"]["rowsUnchanged"]) == (1, 1)
    before = await goods.records()
    assert before["b"]["data"]["price"] == 3.25

    write(database_url, "ALTER TABLE foreign_shop.goods DROP COLUMN price")
    third = await goods.refresh()
    assert (third["status"], third["errorKind"]) == ("failed", "mapping")
    assert 'column "price" does not exist' in third["error"]
    assert await goods.records() == before, "a query that fails removes nothing"

    write(database_url, f"ALTER ROLE {READER} PASSWORD 'another'")
    fourth = await goods.refresh()
    write(database_url, f"ALTER ROLE {READER} PASSWORD '{PASSWORD}'")
    assert (fourth["errorKind"], PASSWORD in fourth["error"]) == ("auth", False)
    async with space.database.transaction() as work:
        kept = await work.rows(
            select(data_source_run).where(data_source_run.c.workspace_id == space.id)
        )
    assert len(kept) == 4
    assert PASSWORD not in str(kept), "a run keeps no password"
