"""A worker that dies while it applies a change set: every operation happens once."""

import os
import signal
from collections import Counter
from typing import Any

import pytest

from models.workspace.changes.commands import accept_application, propose
from models.workspace.changes.shapes import ApplyChanges, Operation
from runtime.ids import new_id
from tests.chaos.processes import Workers
from tests.chaos.queries import fetch
from tests.support.engine import KEYS, Engine
from tests.support.patience import eventually

pytestmark = [pytest.mark.crash, pytest.mark.takes(seconds=25), pytest.mark.long]

PAGES = 60


async def test_a_killed_worker_applies_nothing_twice_and_loses_nothing(
    idle: Engine, workers: Workers, url: str
) -> None:
    change_id = new_id()
    operations = [
        Operation.model_validate(
            {"kind": "create_item", "input": {"kind": "page", "title": f"Page {place}"}}
        )
        for place in range(PAGES)
    ]
    first = await workers.start()
    await first.ready()
    async with idle.database.transaction() as work:
        await propose(work, idle.actor, KEYS, change_id, operations)
        body = ApplyChanges.model_validate({})
        await accept_application(work, idle.actor, change_id, new_id(), body)

    async def applied() -> int:
        query = "SELECT outcomes FROM change_set WHERE id = %s"
        [(outcomes,)] = await fetch(url, query, change_id)
        return sum(one["status"] == "applied" for one in outcomes)

    async def is_under_way() -> bool:
        return await applied() >= 3

    await eventually(is_under_way, "the first operations")
    os.kill(first.process.pid, signal.SIGKILL)
    assert await first.ended() == -signal.SIGKILL
    assert await applied() < PAGES
    await workers.start()

    async def is_applied() -> bool:
        status: list[Any] = await fetch(
            url, "SELECT status FROM change_set WHERE id = %s", change_id
        )
        return bool(status[0][0] == "applied")

    await eventually(is_applied, "the end of the change set")
    query = "SELECT title FROM item WHERE workspace_id = %s AND title LIKE 'Page %%'"
    titles = Counter(title for (title,) in await fetch(url, query, idle.actor.workspace_id))
    assert titles == Counter(f"Page {place}" for place in range(PAGES))
    assert await applied() == PAGES
