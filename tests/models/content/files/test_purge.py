"""The trash is emptied: everything of what is old goes, and nothing else."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import delete, insert, select, update

from models.automation.automation_runs.tables import automation_run
from models.automation.automations.tables import automation_version
from models.content.files.commands import purge_trash, register_file
from models.content.files.queries import file
from models.content.files.rules import Content
from models.content.items.commands import trash_item
from models.content.items.joins import item
from models.data.records.commands import create_record
from models.data.records.shapes import CreateRecord
from models.tables import metadata
from models.workspace.targets.items import create_item
from models.workspace.targets.shapes import CreateItem, PlacedTarget
from runtime.ids import new_id
from tests.support.ageing import ago, purged, rows_of, run_row
from tests.support.spaces import Space

RESOURCE = {
    "externalType": "doc",
    "externalId": "1",
    "name": "Doc",
    "surfaceKind": "generic",
    "capabilities": [],
}


async def make(space: Space, kind: str, parent: UUID | None = None, **body: Any) -> PlacedTarget:
    given = {"kind": kind, "title": "Thing", "parentItemId": parent, **body}
    async with space.database.transaction() as work:
        return await create_item(work, space.actor, space.keys, CreateItem.model_validate(given))


async def trash(space: Space, item_id: UUID, days: float) -> None:
    async with space.database.transaction() as work:
        await trash_item(work, space.actor, item_id)
        old = work.now - timedelta(days=days)
        await work.execute(
            update(item).where(item.c.deleted_with == item_id).values(deleted_at=old)
        )


async def empty(space: Space) -> int:
    """Purge until nothing is left to purge; the number of rows."""
    return await purged(space.database, purge_trash, ago(30))


async def furnish(space: Space) -> PlacedTarget:
    """A folder with one of every kind below, and with rows below those."""
    folder = await make(space, "folder")
    parent = folder.item.id
    deeper = await make(space, "folder", parent)
    database: Any = (await make(space, "database", deeper.item.id)).target
    config = {"databaseId": str(database.id)}
    await make(space, "view", parent, config=config)
    await make(space, "form", parent, config=config)
    source = {"kind": "http_json", "config": {"url": "https://example.test"}}
    target = {"targetDatabaseId": str(database.id)}
    await make(space, "data_source", parent, config={**source, **target})
    transform = {"kind": "transform", "config": {"output": {}}}
    await make(space, "action", parent, config=transform)
    await make(space, "external_resource", parent, config={"resource": RESOURCE})
    blocks = {"blocks": [{"kind": "paragraph", "content": {"text": [{"text": "x"}]}}]}
    for kind in ("page", "note", "canvas", "dashboard"):
        await make(space, kind, parent, **({"content": blocks} if kind == "page" else {}))
    automation: Any = (await make(space, "automation", parent)).target
    async with space.database.transaction() as work:
        for number in range(3):
            body = CreateRecord.model_validate({"title": f"row {number}"})
            await create_record(work, space.actor, database.id, body)
        version = await work.first(
            select(automation_version).where(automation_version.c.automation_id == automation.id)
        )
        assert version is not None
        await work.execute(insert(automation_run).values(run_row(space, version)))
    return folder


@pytest.mark.long
async def test_everything_below_an_old_item_goes(space: Space, foreign: Space) -> None:
    theirs = await furnish(foreign)
    kept = await rows_of(foreign)
    folder = await furnish(space)
    assert {"record", "block", "automation_run", "field", "form", "mount"} <= kept.keys()
    await trash(space, folder.item.id, 30.1)
    await trash(foreign, theirs.item.id, 29.9)
    assert await empty(space) > 0
    gone = await rows_of(space)
    assert gone.keys() <= {"job", "outbox"}, gone
    assert await rows_of(foreign) == kept


@pytest.mark.long
async def test_one_call_is_bounded(space: Space) -> None:
    folder = await furnish(space)
    await trash(space, folder.item.id, 31)
    while True:
        before_call = sum((await rows_of(space)).values())
        async with space.database.transaction() as work:
            removed = await purge_trash(work, ago(30), 4)
        assert removed <= 4
        if not removed:
            break
        assert sum((await rows_of(space)).values()) <= before_call
    assert "item" not in await rows_of(space)


async def test_a_row_that_only_names_the_item_stays(space: Space) -> None:
    database: Any = (await make(space, "database")).target
    source = {"kind": "http_json", "config": {"url": "https://example.test"}}
    target = {"targetDatabaseId": str(database.id)}
    kept: Any = (await make(space, "data_source", config={**source, **target})).target
    await trash(space, database.item_id, 31)
    await empty(space)
    async with space.database.transaction() as work:
        table = metadata.tables["data_source"]
        row = await work.first(select(table).where(table.c.id == kept.id))
    assert row is not None
    assert row.target_database_id is None


async def test_an_item_trashed_earlier_is_purged_first(space: Space) -> None:
    folder = await make(space, "folder")
    child = await make(space, "folder", folder.item.id)
    await trash(space, child.item.id, 31)
    await trash(space, folder.item.id, 29)
    await empty(space)
    async with space.database.transaction() as work:
        rows = await work.rows(select(item.c.id).where(item.c.workspace_id == space.id))
    assert [row.id for row in rows] == [folder.item.id]


async def test_a_files_item_waits_for_its_file(space: Space) -> None:
    file_id = new_id()
    content = Content(
        name="a.txt", mime_type="text/plain", byte_size=1, sha256=b"x" * 32, object_key=str(file_id)
    )
    async with space.database.transaction() as work:
        whose = {"workspace_id": space.id, "user_id": space.user_id}
        await register_file(work, space.keys, content, file_id=file_id, **whose)
    placed = await make(space, "file", config={"fileId": str(file_id)})
    await trash(space, placed.item.id, 31)
    assert await empty(space) == 0
    assert (await rows_of(space)).keys() >= {"item", "file"}
    async with space.database.transaction() as work:
        await work.execute(delete(file).where(file.c.id == file_id))
    await empty(space)
    assert not (await rows_of(space)).keys() & {"item", "file"}
