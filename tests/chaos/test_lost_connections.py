"""Connections of a worker that are lost at any moment: everything is done, and no error is left."""

import asyncio

import pytest

from tests.chaos.conftest import MakeDatabase
from tests.chaos.processes import Workers
from tests.chaos.queries import fetch
from tests.support.engine import Engine, graph, node
from tests.support.patience import eventually
from tests.support.triggers import Listening

pytestmark = [pytest.mark.crash, pytest.mark.takes(seconds=30), pytest.mark.long]

RECORDS = 60
CUT = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE application_name = 'workspace-worker' AND datname = current_database()
      AND state <> 'idle'
"""


async def test_events_are_answered_and_no_error_is_without_an_owner(
    idle: Engine, workers: Workers, new_database: MakeDatabase, url: str
) -> None:
    goods = Listening(idle.database, idle.actor, await new_database(idle))
    echo = await new_database(idle)
    title = {"type": "trigger", "value": "record.title"}
    copying = graph(node("copy", "create_record", databaseId=str(echo), title=title))
    await goods.automation("record_created", copying)
    worker = await workers.start()
    await worker.ready()
    lost = 0
    for number in range(RECORDS):
        await goods.create(f"{number:03}")
        for _ in range(10):
            lost += len(await fetch(url, CUT))
            await asyncio.sleep(0.02)
    assert lost > 0, "no connection was met at work"

    async def all_copied() -> bool:
        copies = await fetch(url, "SELECT 1 FROM record WHERE database_id = %s", echo)
        return len(copies) >= RECORDS

    await eventually(all_copied, what="the run of every record")
    titles = await fetch(url, "SELECT title FROM record WHERE database_id = %s", echo)
    assert sorted(title for (title,) in titles) == [f"{n:03}" for n in range(RECORDS)]
    # The fixture looks through the log of the worker.
