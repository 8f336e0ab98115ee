"""The number of records follows every statement, and merging its parts changes nothing."""

from typing import Any
from uuid import UUID

from sqlalchemy import delete, func, select, update

from models.data.records.queries import merge_counts, number_of_records
from models.data.records.tables import record, record_count
from tests.support.client import Client
from tests.support.items import read
from tests.support.spaces import Space


async def counted(space: Space) -> int:
    """The number as it is kept; it is that of the rows themselves."""
    async with space.database.transaction() as work:
        kept = int(await work.scalar(number_of_records(space.id)))
        rows = select(func.count()).where(
            record.c.workspace_id == space.id, record.c.deleted_at.is_(None)
        )
        assert kept == await work.scalar(rows)
        return kept


async def test_the_number_of_records_is_kept_through_every_change(
    client: Client, space: Space
) -> None:
    made = read(await client.post(f"{space.path}/databases", json={"label": "Counted"}), 201)
    path = f"/v1/databases/{made['id']}/records"
    creates: Any = [{"op": "create", "title": f"Record {number}"} for number in range(5)]
    read(await client.post(f"{path}/batch", json={"operations": creates}))
    first = read(await client.post(path, json={"title": "First"}), 201)
    assert await counted(space) == 6
    read(await client.patch(f"/v1/records/{first['id']}", json={"title": "Renamed"}))
    assert await counted(space) == 6
    assert (await client.delete(f"/v1/records/{first['id']}")).is_success
    assert await counted(space) == 5
    usage = read(await client.get(f"{space.path}/usage"))
    assert usage["holds"]["records"] == 5
    async with space.database.transaction() as work:
        restored = update(record).where(record.c.id == UUID(first["id"])).values(deleted_at=None)
        await work.execute(restored)
    assert await counted(space) == 6
    async with space.database.transaction() as work:
        await work.execute(delete(record).where(record.c.id == UUID(first["id"])))
    assert await counted(space) == 5
    while True:
        async with space.database.transaction() as work:
            if not await merge_counts(work):
                break
    assert await counted(space) == 5
    async with space.database.transaction() as work:
        parts = select(record_count.c.number).where(record_count.c.database_id == UUID(made["id"]))
        assert [row.number for row in await work.rows(parts)] == [5]


async def test_records_of_a_database_in_the_trash_do_not_count(
    client: Client, space: Space
) -> None:
    made = read(await client.post(f"{space.path}/databases", json={"label": "Counted"}), 201)
    read(await client.post(f"/v1/databases/{made['id']}/records", json={"title": "One"}), 201)
    assert (await client.delete(f"{space.path}/databases/{made['id']}")).is_success
    usage = read(await client.get(f"{space.path}/usage"))
    assert usage["holds"]["records"] == 0
