"""The trash of records is emptied: what is theirs goes with them, and nothing else."""

from typing import Any
from uuid import UUID

import pytest
import pytest_asyncio
from sqlalchemy import insert, select, update

from models.content.surfaces.queries import block, surface
from models.data.record_changes.history import record_change
from models.data.records.commands import purge_records
from models.data.records.tables import record, record_index
from models.sources.data_source_runs.tables import source_row
from runtime.ids import new_id
from tests.support.ageing import ago, ids_of, purged, rows_of
from tests.support.client import Client
from tests.support.related import add, change, get, linked, make_database, relate
from tests.support.spaces import Space

PAGE = {"surface", "block"}


@pytest_asyncio.fixture
async def projects(client: Client, space: Space) -> str:
    return await make_database(client, space, "Projects", {"label": "Size", "kind": "number"})


@pytest_asyncio.fixture
async def tasks(client: Client, space: Space, projects: str) -> str:
    """Tasks of projects, each with the sizes of its projects."""
    made = await make_database(client, space, "Tasks")
    await relate(client, made, projects, "Projects", inverseLabel="Tasks")
    return made


async def trash(client: Client, space: Space, record_id: str, days: float) -> None:
    """Delete a record this number of days ago."""
    answer = await client.delete(f"/v1/records/{record_id}")
    assert answer.status_code == 200, answer.text
    async with space.database.transaction() as work:
        own = (record.c.workspace_id == space.id, record.c.id == UUID(record_id))
        await work.execute(update(record).where(*own).values(deleted_at=ago(days)))


async def furnish(client: Client, space: Space, database_id: str, record_id: str) -> None:
    """Give a record one row of all that a record can have."""
    await change(client, record_id, title="Changed")
    answer = await client.post(f"/v1/records/{record_id}/comments", json={"body": "First"})
    assert answer.status_code == 201, answer.text
    own: dict[str, Any] = {"workspace_id": space.id, "record_id": UUID(record_id)}
    async with space.database.transaction() as work:
        await work.execute(insert(record_index).values(**own, index_id=new_id(), number=1))
        source = {"source_id": new_id(), "run_id": new_id(), "identity": b"1", "digest": b"2"}
        await work.execute(insert(source_row).values(**own, **source))
        moments = {"created_at": work.now, "updated_at": work.now}
        contents = {"id": new_id(), "database_id": UUID(database_id), "kind": "record", **moments}
        await work.execute(insert(surface).values(**own, **contents, settings={}))
        await work.execute(
            insert(block).values(
                id=new_id(),
                workspace_id=space.id,
                surface_id=contents["id"],
                kind="divider",
                position=0,
                content={},
                byte_size=2,
                **moments,
            )
        )


async def empty(space: Space, limit: int = 5_000) -> int:
    return await purged(space.database, purge_records, ago(30), limit)


async def changes_of(space: Space, record_id: str) -> int:
    async with space.database.transaction() as work:
        own = (
            record_change.c.workspace_id == space.id,
            record_change.c.record_id == UUID(record_id),
        )
        return len(await work.rows(select(record_change.c.id).where(*own)))


async def test_all_that_is_of_an_old_record_goes(
    client: Client, space: Space, foreign: Space, projects: str
) -> None:
    await empty(space)
    theirs = await rows_of(foreign)
    before = await rows_of(space)
    gone = await add(client, projects, "Gone")
    await furnish(client, space, projects, gone)
    added = (await rows_of(space)).keys() - before.keys()
    assert added == {
        "block",
        "record",
        "record_change",
        "record_comment",
        "record_index",
        "source_row",
        "surface",
    }
    await trash(client, space, gone, 31)
    assert await empty(space) == 9
    assert await rows_of(space) == before
    assert await rows_of(foreign) == theirs
    assert await empty(space) == 0


async def test_recent_rows_stay(client: Client, space: Space, projects: str) -> None:
    live, young, old = [await add(client, projects, name) for name in ("live", "young", "old")]
    archived = await add(client, projects, "archived")
    assert (await client.post(f"/v1/records/{archived}/archive", json={})).status_code == 200
    await trash(client, space, young, 29)
    await trash(client, space, old, 31)
    await empty(space)
    assert await ids_of(space, record) == {UUID(live), UUID(young), UUID(archived)}
    assert await changes_of(space, young) == 2
    assert await changes_of(space, old) == 0
    answer = await client.post(f"/v1/records/{young}/restore", json={})
    assert answer.status_code == 200, answer.text


async def test_links_go_from_the_other_side_and_nothing_else_of_it(
    client: Client, space: Space, projects: str, tasks: str
) -> None:
    gone, kept = await add(client, projects, "Gone"), await add(client, projects, "Kept")
    task = await add(client, tasks, "Task", relations={"projects": [gone, kept]})
    await trash(client, space, gone, 31)
    before = await get(client, task)
    assert (await rows_of(space))["record_link"] == 2
    await empty(space)
    assert (await rows_of(space))["record_link"] == 1
    assert await get(client, task) == before
    assert await linked(client, kept, "tasks") == [task]


@pytest.mark.long
async def test_one_call_is_bounded(client: Client, space: Space, projects: str) -> None:
    await empty(space)
    before = await rows_of(space)
    for number in range(5):
        made = await add(client, projects, str(number))
        await furnish(client, space, projects, made)
        await trash(client, space, made, 31)
    assert await empty(space, limit=3) == 5 * 9
    assert await rows_of(space) == before


async def test_a_record_that_another_holds_waits_for_the_next_call(
    client: Client, space: Space, projects: str
) -> None:
    await empty(space)
    held, free = [await add(client, projects, name) for name in ("held", "free")]
    for each in (held, free):
        await trash(client, space, each, 31)
    async with space.database.transaction() as work:
        holding = select(record.c.id).where(record.c.id == UUID(held)).with_for_update()
        await work.execute(holding)
        await empty(space)
        assert await ids_of(space, record) == {UUID(held)}
    await empty(space)
    assert await ids_of(space, record) == set()


async def test_a_record_goes_also_while_its_database_is_in_the_trash(
    client: Client, space: Space, projects: str
) -> None:
    gone, kept = [await add(client, projects, name) for name in ("gone", "kept")]
    await trash(client, space, gone, 31)
    assert (await client.delete(f"{space.path}/databases/{projects}")).status_code == 200
    await empty(space)
    assert await ids_of(space, record) == {UUID(kept)}
