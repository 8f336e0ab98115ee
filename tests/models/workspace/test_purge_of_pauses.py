"""What is paused is purged as anything else: its pause goes, and what rests under it."""

from uuid import UUID

import pytest
from sqlalchemy import func, select, update

from models.content.files.commands import purge_trash
from models.content.items.commands import trash_item
from models.content.items.joins import item
from models.core.pauses.intents import pause, resting_intent
from models.people.workspaces import purge_workspace
from models.sources.outbound_limits.tables import outbound_place
from tests.support.ageing import ago, purged
from tests.support.automations import path_of, publish, read
from tests.support.client import Client
from tests.support.spaces import Space

TABLES = (pause, resting_intent, outbound_place)


async def left(space: Space) -> list[int]:
    """The numbers of pauses, paused intents and places of calls of a workspace."""
    async with space.database.transaction() as work:
        counts = [select(func.count()).where(one.c.workspace_id == space.id) for one in TABLES]
        return [int(await work.scalar(one)) for one in counts]


async def trash_of_old(space: Space, item_id: UUID) -> None:
    async with space.database.transaction() as work:
        await trash_item(work, space.actor, item_id)
        these = update(item).where(item.c.deleted_with == item_id)
        await work.execute(these.values(deleted_at=ago(40)))
    await purged(space.database, purge_trash, ago(30))


@pytest.mark.long
async def test_a_paused_automation_is_purged_with_its_pauses(client: Client, space: Space) -> None:
    made, kept = [await publish(client, space) for _ in range(2)]
    read(await client.post(f"{space.path}/pause", json={}))
    read(await client.post(f"{path_of(made)}/run", json={}))
    read(await client.post(f"{path_of(made)}/pause", json={}))
    read(
        await client.put(
            f"{path_of(made)}/circuit-breaker", json={"failures": 1, "pauseSeconds": 9}
        )
    )
    for automation in (made, kept):
        read(await client.post(f"{path_of(automation)}/run", json={}))
    assert await left(space) == [2, 3, 0]
    await trash_of_old(space, UUID(made["itemId"]))
    assert await left(space) == [1, 1, 0], "the pause of the workspace, and the run of the other"


@pytest.mark.long
async def test_a_paused_workspace_is_purged_with_all_that_rests(
    client: Client, space: Space, foreign: Space
) -> None:
    made = await publish(client, space)
    connections = f"{space.path}/integrations/connections"
    body = {"provider": "demo", "label": "Prices"}
    connection = read(await client.post(connections, json=body), 201)["id"]
    for path in (space.path, path_of(made), f"{connections}/{connection}"):
        read(await client.post(f"{path}/pause", json={}))
    for _ in range(3):
        read(await client.post(f"{path_of(made)}/run", json={}))
    theirs = await left(foreign)
    assert await left(space) == [2, 3, 1]
    while True:
        async with space.database.transaction() as work:
            if not await purge_workspace(work, space.id):
                break
    assert await left(space) == [0, 0, 0]
    assert await left(foreign) == theirs
