"""Refreshes beside others who write the same records."""

from collections.abc import Sequence
from typing import Any

import pytest
from sqlalchemy import text

from runtime.database import Database
from tests.support.client import Client
from tests.support.patience import eventually
from tests.support.sources import goods

WAITING = text(
    "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database()"
    " AND wait_event_type = 'Lock' AND query LIKE 'WITH %')"
)
PRICED = text("UPDATE record SET data = data || '{\"price\": 7}' WHERE id = :id")
TRASHED = text("UPDATE record SET deleted_at = now() WHERE id = :id")
RENAMED = text("UPDATE record SET title = 'Rye' WHERE id = :id")
STATE = text("SELECT title, archived FROM record WHERE id = :id")
KINDS = text("SELECT kind FROM record_change WHERE record_id = :id ORDER BY id")
HELD = text("SELECT FROM record WHERE id = :id FOR UPDATE NOWAIT")
TOLD = text("SELECT before, after FROM record_change WHERE record_id = :id AND kind = 'updated'")


async def _told(database: Database, record_id: str) -> Sequence[tuple[Any, Any]]:
    async with database.reading() as work:
        return [(one.before, one.after) for one in await work.rows(TOLD, {"id": record_id})]


async def _waiting(client: Client, path: str, database: Database) -> Any:
    """What a call started, once that waits for another writer of the records."""
    asked = await client.post(path, json={})

    async def waits() -> bool:
        async with database.reading() as work:
            return bool(await work.scalar(WAITING))

    await eventually(waits, what="work that waits for the other writer")
    return asked.json()["data"]


@pytest.mark.long
async def test_values_were_what_others_wrote_last(source: Any, database: Database) -> None:
    goods_of = await source()
    goods_of.answers(goods(("a", "Apple", 1), ("b", "Bread", 2), ("c", "Cake", 3)))
    await goods_of.refresh()
    apple, bread, cake = [(await goods_of.records())[code]["id"] for code in "abc"]
    assert apple < bread < cake, "records sort as their rows stood"
    goods_of.answers(goods(("c", "Cake", 6), ("b", "Bread", 5), ("a", "Apples", 4)))

    async with database.transaction() as other:
        await other.execute(PRICED, {"id": apple})
        await other.execute(TRASHED, {"id": bread})
        run = await _waiting(goods_of.client, f"{goods_of.path}/refresh", database)
        # The writer that holds the first record may take the last one: writers lock records in
        # order.
        await other.execute(HELD, {"id": cake})

    stats = (await goods_of.ended(run["id"]))["stats"]
    assert (stats["rowsUpdated"], stats["rowsUnchanged"]) == (2, 1)
    records = await goods_of.records()
    assert {code: one["data"]["price"] for code, one in records.items()} == {"a": 4, "c": 6}
    assert await _told(database, apple) == [
        ({"title": "Apple", "price": 7}, {"title": "Apples", "price": 4})
    ]
    assert await _told(database, bread) == []
    assert await _told(database, cake) == [({"price": 3}, {"price": 6})]


@pytest.mark.long
async def test_gone_rows_leave_what_others_wrote_last(source: Any, database: Database) -> None:
    goods_of = await source(removedRows="archive", removalGuardPercent=100)
    goods_of.answers(goods(("a", "Apple", 1), ("b", "Bread", 2)))
    await goods_of.refresh()
    bread = (await goods_of.records())["b"]["id"]
    goods_of.answers(goods(("a", "Apple", 1)))
    async with database.transaction() as other:
        await other.execute(PRICED, {"id": bread})

    async with database.transaction() as other:
        await other.execute(RENAMED, {"id": bread})
        run = await _waiting(goods_of.client, f"{goods_of.path}/refresh", database)

    ended = await goods_of.ended(run["id"])
    assert (ended["status"], ended["stats"]["rowsRemoved"]) == ("succeeded", 1)
    async with database.reading() as work:
        assert list(await work.rows(STATE, {"id": bread})) == [("Rye", True)]
        kinds = [one.kind for one in await work.rows(KINDS, {"id": bread})]
    assert kinds == ["created", "archived"]
