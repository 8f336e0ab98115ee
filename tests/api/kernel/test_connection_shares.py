"""One caller never holds all connections to the database."""

import asyncio
from typing import Any

import pytest
from sqlalchemy import func, select, text

from api.kernel.limits import ConnectionShares, CrowdError
from api.routers.registry import ROUTERS
from models.data.fields.tables import database as database_table
from tests.support.client import Client
from tests.support.patience import ENOUGH, eventually
from tests.support.spaces import Space

MANY = 20
"""Requests that wait for a locked row: more than a process has connections."""


async def share_is_taken(space: Space) -> bool:
    """Whether as many transactions wait for another one as a caller may have."""
    waiting = (
        select(func.count())
        .select_from(text("pg_stat_activity"))
        .where(text("datname = current_database() AND wait_event_type = 'Lock'"))
    )
    async with space.database.reading() as work:
        return bool(await work.scalar(waiting) >= space.database.connections // 2)


async def test_a_neighbour_is_answered_beside_many_that_wait_for_a_lock(
    client: Client, space: Space, foreign: Space
) -> None:
    made = await client.post(f"{space.path}/databases", json={"label": "Locked"})
    path = f"{space.path}/databases/{made.json()['data']['id']}"
    keys = [space.token, *[await space.key() for _ in range(3)]]

    clients = [client.with_token(token) for token in keys]

    async def rename(number: int) -> Any:
        caller = clients[number % len(clients)]
        return await caller.patch(path, json={"label": f"L{number}"})

    for caller in clients:
        (await caller.get(path)).raise_for_status()
    async with space.database.transaction() as work:
        await work.execute(select(database_table.c.id).with_for_update())
        renaming = [asyncio.create_task(rename(number)) for number in range(MANY)]
        await eventually(lambda: share_is_taken(space), "a lock that all of them wait for")
        async with asyncio.timeout(ENOUGH):
            answer = await client.with_token(foreign.token).get(f"{foreign.path}/databases")
        assert answer.status_code == 200
    assert {(await one).status_code for one in renaming} == {200}


async def test_a_caller_that_waits_too_long_for_its_own_requests_is_refused() -> None:
    shares = ConnectionShares(1, patience=0.01)
    shares.belongs("key", "workspace")
    async with shares.held(shares.share_of("key")):
        with pytest.raises(CrowdError):
            async with shares.held("workspace"):
                raise AssertionError
        async with shares.held(shares.share_of("another")):
            pass


async def test_heavy_requests_of_one_caller_take_turns_and_leave_room_for_others() -> None:
    shares = ConnectionShares(3, patience=0.01, heavy=1)
    async with shares.held("flood", heavy=True):
        with pytest.raises(CrowdError):
            async with shares.held("flood", heavy=True):
                raise AssertionError
        async with shares.held("flood"), shares.held("neighbour", heavy=True):
            pass
    async with shares.held("flood", heavy=True):
        pass


async def test_the_work_of_a_request_does_not_count_as_waiting() -> None:
    shares = ConnectionShares(2, heavy=1)
    with pytest.raises(TimeoutError):
        async with shares.held("caller", heavy=True):
            raise TimeoutError


def test_batches_and_queries_are_heavy() -> None:
    operations = [route.operation for router in ROUTERS for route in router.routes]
    heavy = {operation.name for operation in operations if operation.heavy}
    assert {"write_records", "query_records", "import_spreadsheet"} <= heavy
