"""Time that was discarded long ago is forgotten; what was spent stays, also of what is gone."""

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import insert, update

from models.content.files.commands import purge_trash
from models.content.items.joins import item
from models.core.base import Id
from models.data.fields.tables import database as database_table
from models.data.records.commands import purge_records
from models.data.records.tables import record
from models.data.time_entries.tables import time_entry
from models.data.time_entries.writes import purge_discarded
from runtime.ids import new_id
from tests.support.ageing import ago, ids_of, purged
from tests.support.client import Client
from tests.support.items import read
from tests.support.spaces import Space

ENDED = {"completed", "discarded"}


async def old_entry(space: Space, days: float, status: str, **values: Any) -> Id:
    """An entry that was closed this number of days ago, or begun then."""
    at = ago(days)
    ended = status in ENDED
    row = {
        "id": new_id(),
        "workspace_id": space.id,
        "user_id": space.user_id,
        "target_kind": "workspace",
        "target_id": space.id,
        "source": "timer",
        "mode": "stopwatch",
        "status": status,
        "started_at": at - timedelta(hours=1),
        "ended_at": at if ended else None,
        "paused_at": at if status == "paused" else None,
        "closed_at": at if ended else None,
        "accumulated_paused_ms": 0,
        "duration_ms": 3_600_000 if status == "completed" else None,
        "sound_id": "none",
        "created_by_user_id": space.user_id,
        "updated_by_user_id": space.user_id,
        "created_at": at,
        "updated_at": at,
        **values,
    }
    async with space.database.transaction() as work:
        await work.execute(insert(time_entry).values(row))
    return row["id"]


async def test_only_what_was_discarded_long_ago_goes(space: Space, foreign: Space) -> None:
    kept = {
        await old_entry(space, 29, "discarded"),
        await old_entry(space, 31, "completed"),
        await old_entry(space, 31, "active"),
        await old_entry(space, 31, "paused"),
    }
    await purged(space.database, purge_discarded, ago(30))
    for _ in range(5):
        await old_entry(space, 31, "discarded")
    theirs = await old_entry(foreign, 29, "discarded")
    assert await purged(space.database, purge_discarded, ago(30), limit=2) == 5
    assert await ids_of(space, time_entry) == kept
    assert await ids_of(foreign, time_entry) == {theirs}


@pytest.mark.parametrize("gone", ["record", "database"])
async def test_time_outlives_what_it_was_spent_on(client: Client, space: Space, gone: str) -> None:
    fields = [{"label": "Spent", "kind": "timer"}]
    body = {"label": "Work", "fields": fields}
    made = read(await client.post(f"{space.path}/databases", json=body), 201)
    one = read(await client.post(f"/v1/databases/{made['id']}/records", json={"title": "A"}), 201)
    target = {"targetKind": "database_record", "targetId": one["id"]}
    path = f"{space.path}/time-entries"
    started = read(await client.post(path, json=target), 201)["entry"]
    read(await client.patch(f"{path}/{started['id']}", json={"action": "complete"}))
    async with space.database.transaction() as work:
        if gone == "record":
            this = record.c.id == one["id"]
            await work.execute(update(record).where(this).values(deleted_at=ago(31)))
        else:
            this = item.c.id == made["itemId"]
            trashed = {"deleted_at": ago(31), "deleted_with": made["itemId"]}
            await work.execute(update(item).where(this).values(trashed))
    purge = purge_records if gone == "record" else purge_trash
    await purged(space.database, purge, ago(30))
    assert await ids_of(space, record) == set()
    assert bool(await ids_of(space, database_table)) is (gone == "record")
    (left,) = read(await client.get(path))["entries"]
    assert left["id"] == started["id"]
    assert left["targetTitleSnapshot"] == "A"
    assert left["durationMs"] >= 0
