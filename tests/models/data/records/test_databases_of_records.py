"""A record names an existing database, in any order of the writers."""

import asyncio
from uuid import UUID, uuid4

import pytest
from sqlalchemy import delete, insert, text, update
from sqlalchemy.exc import IntegrityError

from models.data.fields.tables import database as databases
from models.data.fields.tables import field
from models.data.records.tables import record
from models.data.views.queries import view
from runtime.database import Database, UnitOfWork
from runtime.ids import new_id
from tests.support.client import Client
from tests.support.items import read
from tests.support.patience import eventually
from tests.support.spaces import Space

CONSTRAINT = "fk_record_workspace_id_database_id_database"


@pytest.fixture
async def database_id(client: Client, space: Space) -> UUID:
    """A database without anything else that refers to it."""
    made = read(await client.post(f"{space.path}/databases", json={"label": "Named"}), 201)
    found = UUID(made["id"])
    async with space.database.transaction() as work:
        for table in (field, view):
            await work.execute(delete(table).where(table.c.database_id == found))
    return found


async def put(work: UnitOfWork, workspace_id: UUID, database_id: UUID) -> None:
    values = {"title": "One", "data": {}, "archived": False}
    times = {"created_at": work.now, "updated_at": work.now}
    names = {"id": new_id(), "workspace_id": workspace_id, "database_id": database_id}
    await work.execute(insert(record).values(**names, **values, **times))


async def remove(work: UnitOfWork, database_id: UUID) -> None:
    await work.execute(delete(databases).where(databases.c.id == database_id))


def named(error: pytest.ExceptionInfo[IntegrityError]) -> str | None:
    diagnosis = getattr(error.value.orig, "diag", None)
    return None if diagnosis is None else diagnosis.constraint_name


async def waits(database: Database, statement: str) -> None:
    query = text(
        "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database()"
        " AND wait_event_type = 'Lock' AND query LIKE :statement)"
    )

    async def is_waiting() -> bool:
        async with database.reading() as work:
            return bool(await work.scalar(query, {"statement": statement}))

    await eventually(is_waiting, what=f"{statement} that waits")


async def test_a_record_of_no_database_is_refused(space: Space, database_id: UUID) -> None:
    for workspace_id, named_id in ((space.id, uuid4()), (uuid4(), database_id)):
        with pytest.raises(IntegrityError) as error:
            async with space.database.transaction() as work:
                await put(work, workspace_id, named_id)
        assert named(error) == CONSTRAINT


async def test_a_database_with_records_stays_and_keeps_them(
    space: Space, database_id: UUID
) -> None:
    async with space.database.transaction() as work:
        await put(work, space.id, database_id)
    elsewhere = update(record).where(record.c.database_id == database_id)
    renamed = update(databases).where(databases.c.id == database_id)
    for statement in (
        delete(databases).where(databases.c.id == database_id),
        renamed.values(id=uuid4()),
        elsewhere.values(database_id=uuid4()),
    ):
        with pytest.raises(IntegrityError) as error:
            async with space.database.transaction() as work:
                await work.execute(statement)
        assert named(error) == CONSTRAINT
    async with space.database.transaction() as work:
        await work.execute(delete(record).where(record.c.database_id == database_id))
        await remove(work, database_id)


async def test_a_deletion_waits_for_a_record_that_is_written(
    space: Space, database_id: UUID
) -> None:
    async def removing() -> None:
        async with space.database.transaction() as work:
            await remove(work, database_id)

    async with space.database.transaction() as work:
        await put(work, space.id, database_id)
        task = asyncio.create_task(removing())
        await waits(space.database, "DELETE FROM database%")
    with pytest.raises(IntegrityError) as error:
        await task
    assert named(error) == CONSTRAINT


async def test_a_record_waits_for_a_database_that_is_deleted(
    space: Space, database_id: UUID
) -> None:
    async def putting() -> None:
        async with space.database.transaction() as work:
            await put(work, space.id, database_id)

    async with space.database.transaction() as work:
        await remove(work, database_id)
        task = asyncio.create_task(putting())
        await waits(space.database, "INSERT INTO record %")
    with pytest.raises(IntegrityError) as error:
        await task
    assert named(error) == CONSTRAINT
