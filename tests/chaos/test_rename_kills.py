"""kill -9 in the middle of a rename that moves runs, and of the worker whose runs were moved."""

import asyncio
import os
import signal
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import select, text

from models.automation.automation_runs.tables import automation_run
from models.core.access.rules import Actor
from models.data.databases.shapes import RenameField
from models.data.fields.queries import load_catalog
from models.data.records.queries import get_record
from models.workspace.impact.fields import rename_field
from runtime.database import Database
from tests.chaos.processes import Workers
from tests.support.engine import Engine, Json, by_node, graph, node
from tests.support.forked import forked
from tests.support.triggers import Listening
from tests.support.waits import held, member, resume, waiting

pytestmark = [pytest.mark.crash, pytest.mark.takes(seconds=60), pytest.mark.long]

APPROVE: dict[str, Any] = {"decision": "approved"}
RUNS = 3


def asking(goods: Listening, boss: Actor) -> Json:
    """Read prices, ask, and write the price that was read."""
    table = str(goods.table)
    query = {"filter": {"field": "price", "op": "gt", "value": 5}}
    price = {"type": "expression", "value": "nodes.read.records[0].data.price + 1"}
    return graph(
        node("read", "query_records", databaseId=table, query=query),
        held("ask", "approval", {"assignees": [str(boss.user_id)]}),
        node("add", "create_record", databaseId=table, title="B", data={"price": price}),
        edges=[("read", "ask"), ("ask", "add", "approved")],
    )


async def rename(database: Database, actor: Actor, table: UUID, *, killed: bool) -> None:
    """Rename the field with all that names it; a process that is `killed` does not commit."""
    async with database.transaction() as work:
        field_id = (await load_catalog(work, actor.workspace_id, [table]))[table]["price"].id
        await rename_field(work, actor, table, field_id, RenameField(key="cost", rewrite=True))
        if killed:
            os.kill(os.getpid(), signal.SIGKILL)


def rename_and_die(url: str, actor: Actor, table: UUID) -> None:
    database = Database(url, pool_size=1, application="rename")
    asyncio.run(rename(database, actor, table, killed=True))


async def stored(engine: Engine, place: tuple[UUID, UUID], record_id: UUID) -> list[Any]:
    """What a rename writes: the graph of a run, an output, a record."""
    async with engine.database.transaction() as work:
        checksum = await work.scalar(
            select(automation_run.c.graph_checksum).where(automation_run.c.id == place[1])
        )
        output = "SELECT output FROM node_run WHERE run_id = :id AND node_id = 'read'"
        read = await work.scalar(text(output), {"id": place[1]})
        record = await get_record(work, engine.actor, record_id)
    return [checksum, read["records"][0]["data"], record.data]


async def test_a_killed_rename_changes_nothing_and_a_killed_worker_knows_the_new_key(
    idle: Engine, workers: Workers, url: str
) -> None:
    goods = await Listening.within(idle.database, idle.actor)
    one = await goods.create("A", price=7)
    boss = await member(idle)
    doomed = await workers.start()
    await doomed.ready()
    places = [await waiting(idle, asking(goods, boss)) for _ in range(RUNS)]
    before = [await stored(idle, place, one.id) for place in places]
    process = forked(rename_and_die, url, idle.actor, goods.table)
    assert await process.ended() == -signal.SIGKILL
    assert [await stored(idle, place, one.id) for place in places] == before
    await rename(idle.database, idle.actor, goods.table, killed=False)
    doomed.process.kill()
    assert await doomed.ended() == -signal.SIGKILL
    survivor = await workers.start()
    await survivor.ready()
    for place in places:
        await resume(idle, place, "ask", boss, **APPROVE)
        run = await idle.ended(*place)
        assert run.status == "succeeded", run.error
        added = by_node(run)["add"].output["record"]["data"]
        assert added == {"title": "B", "cost": 8}
