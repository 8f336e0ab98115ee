"""What is past its time goes, and only that, when the schedule says so."""

import asyncio
import os
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import pytest_asyncio
from sqlalchemy import insert, update
from temporalio.testing import WorkflowEnvironment

from models.automation.automation_runs.tables import automation_run
from models.content.files.commands import register_file, register_private_file
from models.content.files.queries import file
from models.content.files.rules import Content
from models.content.items.commands import trash_item
from models.content.items.joins import item
from models.core.idempotency import claim_key, idempotency_reply
from models.data.databases.shapes import CreateDatabase
from models.data.databases.store import create_database
from models.data.records.commands import create_record, delete_record
from models.data.records.shapes import CreateRecord
from models.data.records.tables import record
from models.messages.jobs.store import job
from models.people.request_logs import request_log
from models.workspace.targets.items import create_item
from models.workspace.targets.shapes import CreateItem
from runtime.database import Database
from runtime.ids import new_id
from runtime.object_store import ObjectStore
from tests.support.ageing import ago, ids_of, make_automation, old_job, old_run
from tests.support.engine import KEYS, RETENTION, Engine, running_engine
from tests.support.patience import ENOUGH, eventually
from tests.support.spaces import Space, make_space


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("objects")


@pytest_asyncio.fixture(scope="module")
async def engine(
    own_database: Database, url: str, temporal: WorkflowEnvironment, objects: Path
) -> AsyncIterator[Engine]:
    """An engine whose objects a test can see."""
    store = objects.as_uri()
    async with running_engine(own_database, url, temporal.client, store=store) as engine:
        yield engine


@pytest_asyncio.fixture
async def space(engine: Engine) -> Space:
    return await make_space(engine.database, KEYS)


async def sweep(engine: Engine) -> dict[str, int]:
    """What the sweep removed that the schedule starts when it is triggered."""
    schedule = engine.client.get_schedule_handle(RETENTION)
    done = (await schedule.describe()).info.num_actions
    await schedule.trigger()

    async def started() -> bool:
        return (await schedule.describe()).info.num_actions > done

    await eventually(started)
    action: Any = (await schedule.describe()).info.recent_actions[-1].action
    handle = engine.client.get_workflow_handle(action.workflow_id, result_type=dict[str, int])
    async with asyncio.timeout(ENOUGH):
        removed: dict[str, int] = await handle.result()
    return removed


async def stored(space: Space, store: ObjectStore, *, private: bool = False) -> UUID:
    """The id of a file with an object of its own."""

    async def chunks() -> AsyncIterator[bytes]:
        yield b"bytes"

    file_id = new_id()
    key = f"files/{space.id}/{file_id}"
    await store.put(key, chunks())
    content = Content(
        name="a.txt", mime_type="text/plain", byte_size=5, sha256=b"x" * 32, object_key=key
    )
    whose = {"file_id": file_id, "workspace_id": space.id, "user_id": space.user_id}
    async with space.database.transaction() as work:
        if private:
            await register_private_file(work, content, **whose)
        else:
            await register_file(work, KEYS, content, **whose)
    return file_id


async def age(space: Space, table: Any, row_id: UUID, **moments: float) -> None:
    """Set times of a row to this number of days ago."""
    values = {name: ago(days) for name, days in moments.items()}
    async with space.database.transaction() as work:
        await work.execute(update(table).where(table.c.id == row_id).values(values))


async def make_item(space: Space, kind: str, **body: Any) -> UUID:
    given = CreateItem.model_validate({"kind": kind, "title": "Thing", **body})
    async with space.database.transaction() as work:
        return (await create_item(work, space.actor, KEYS, given)).item.id


async def trash(space: Space, item_id: UUID, days: float) -> None:
    async with space.database.transaction() as work:
        await trash_item(work, space.actor, item_id)
    await age(space, item, item_id, deleted_at=days)


async def trashed_record(space: Space, days: float) -> UUID:
    async with space.database.transaction() as work:
        body = CreateDatabase.model_validate({"label": "Things", "fields": []})
        made = await create_database(work, space.actor, body)
        row = await create_record(work, space.actor, made.id, CreateRecord(title="Row"))
        await delete_record(work, space.actor, row.id)
    await age(space, record, row.id, deleted_at=days)
    return row.id


async def logged(space: Space, days: float) -> UUID:
    values = {
        "id": new_id(),
        "workspace_id": space.id,
        "principal_type": "session",
        "principal_id": space.user_id,
        "method": "GET",
        "path": "/",
        "status": 200,
        "duration_ms": 1,
        "created_at": ago(days),
    }
    async with space.database.transaction() as work:
        await work.execute(insert(request_log).values(values))
    return UUID(str(values["id"]))


@pytest.mark.long
async def test_everything_past_its_time_goes_and_nothing_else(engine: Engine, space: Space) -> None:
    version = await make_automation(space)
    kept: dict[Any, UUID] = {}
    for days in (31.0, 29.0):
        folder = await make_item(space, "folder")
        await trash(space, folder, days)
        kept = {
            item: folder,
            record: await trashed_record(space, days),
            request_log: await logged(space, days),
            job: await old_job(space, days),
            automation_run: await old_run(space, version, days + 60),
        }
    before = {table: await ids_of(space, table) for table in kept}
    async with space.database.transaction() as work:
        reply = await claim_key(work, KEYS, b"f" * 32, b"request")
        assert isinstance(reply, UUID)
    await age(space, idempotency_reply, reply, expires_at=0.1)
    removed = await sweep(engine)
    assert removed == {
        "files": 0,
        "items": 1,
        "records": 3,  # and what its history says: made, deleted
        "replies": 1,
        "request logs": 1,
        "time entries": 0,
        "jobs": 1,
        "runs": 3,  # and its node, and that node's first attempt
        "orphans": 0,
    }
    for table, young in kept.items():
        after = await ids_of(space, table)
        assert young in after
        assert len(before[table] - after) == 1, table
    assert not any((await sweep(engine)).values())


@pytest.mark.long
async def test_objects_go_with_their_last_file(engine: Engine, space: Space, objects: Path) -> None:
    store = ObjectStore(objects.as_uri())
    live, young, old, copied, exported = [await stored(space, store) for _ in range(4)] + [
        await stored(space, store, private=True)
    ]
    placed, hidden = await stored(space, store), await stored(space, store)
    places = [
        await make_item(space, "file", config={"fileId": str(each)}) for each in (placed, hidden)
    ]
    await trash(space, places[0], 31)
    await trash(space, places[1], 29)
    copy = new_id()
    async with space.database.transaction() as work:
        row = await work.first(file.select().where(file.c.id == copied))
        assert row is not None
        await work.execute(insert(file).values({**row._mapping, "id": copy}))
    for file_id, days in ((young, 29), (old, 31), (copied, 31)):
        await age(space, file, file_id, deleted_at=days)
    await age(space, file, exported, created_at=31)
    own = objects / "files" / str(space.id)
    for name, age_in_days in (("orphan", 2), ("upload", 0.5)):
        (own / name).write_bytes(b"left behind")
        moment = ago(age_in_days).timestamp()
        os.utime(own / name, (moment, moment))
    removed = await sweep(engine)
    assert (removed["files"], removed["items"], removed["orphans"]) == (4, 1, 1)
    assert await ids_of(space, file) == {live, young, hidden, copy}
    there = {path.name for path in own.iterdir()}
    assert there == {*map(str, (live, young, hidden, copied)), "upload"}
    assert places[1] in await ids_of(space, item)
    assert places[0] not in await ids_of(space, item)


@pytest.mark.long
async def test_the_schedule_sweeps_every_hour(engine: Engine) -> None:
    schedule = (await engine.client.get_schedule_handle(RETENTION).describe()).schedule
    (every,) = schedule.spec.intervals
    assert every.every == timedelta(hours=1)
