"""Records are written in place while their page has room."""

from typing import Any

from sqlalchemy import text, update

from models.data.records.tables import record
from runtime.ids import new_id
from tests.support.client import Client
from tests.support.items import read
from tests.support.spaces import Space

WRITTEN_IN_PLACE = text("SELECT pg_stat_get_xact_tuples_hot_updated('record'::regclass)")


async def test_a_change_of_few_records_touches_no_index(client: Client, space: Space) -> None:
    made = read(await client.post(f"{space.path}/databases", json={"label": "Notes"}), 201)
    creates: Any = [{"op": "create", "title": f"{number} {new_id()}"} for number in range(100)]
    path = f"/v1/databases/{made['id']}/records"
    read(await client.post(f"{path}/batch", json={"operations": creates}))
    records = read(await client.get(f"{path}?limit=100"))["records"]

    chosen = [one["id"] for one in records[::25]]
    async with space.database.transaction() as work:
        # A connection reports its earlier transactions, too, until it has handed their counts in.
        before = await work.scalar(WRITTEN_IN_PLACE)
        await work.execute(update(record).where(record.c.id.in_(chosen)).values(title="Changed"))
        assert await work.scalar(WRITTEN_IN_PLACE) == before + len(chosen)
