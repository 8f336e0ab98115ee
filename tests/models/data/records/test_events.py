"""What writers pay for those who listen, and what waits in the database."""

import json
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from sqlalchemy import select, update

from activities.pollers import Dispatcher
from models.automation.triggers.subscribers import debounced_change
from models.data.records.commands import write_batch
from models.data.records.events import CHUNK
from models.data.records.shapes import RecordBatch
from models.messages.events.store import trigger_event
from tests.support.spaces import Space
from tests.support.triggers import Listening


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every question a writer asks, and every event it writes; dispatchers ask otherwise."""
    statements: list[str] = []
    execute = psycopg.AsyncCursor.execute

    async def counting(cursor: Any, query: Any, *arguments: Any, **options: Any) -> Any:
        if any(part in str(query) for part in ("bool_or(", "INSERT INTO trigger_event")):
            statements.append(str(query))
        return await execute(cursor, query, *arguments, **options)

    monkeypatch.setattr(psycopg.AsyncCursor, "execute", counting)
    return statements


async def write(goods: Listening, count: int) -> None:
    operations = [{"op": "create", "title": str(number)} for number in range(count)]
    body = RecordBatch.model_validate_json(json.dumps({"operations": operations}))
    async with goods.database.transaction() as work:
        await write_batch(work, goods.actor, goods.table, body)


async def test_writers_check_once_for_subscribers(space: Space, sent: list[str]) -> None:
    goods = await Listening.within(space.database, space.actor, keys=space.keys)
    other = await Listening.within(space.database, space.actor, keys=space.keys)
    await other.automation("record_created")
    sent.clear()
    await write(goods, 3 * CHUNK)
    assert len(sent) == 1
    one = await goods.create("A", price=1)
    sent.clear()
    await goods.set(one.id, price=1)
    assert sent == [], "what changes nothing asks nothing"


async def test_events_of_a_batch_are_written_together(space: Space) -> None:
    goods = await Listening.within(space.database, space.actor, keys=space.keys)
    await goods.automation("record_created")
    operations = [{"op": "create", "title": f"{n:03}"} for n in range(2 * CHUNK + 1)]
    body = RecordBatch.model_validate_json(json.dumps({"operations": operations}))
    async with goods.database.transaction() as work:
        await write_batch(work, goods.actor, goods.table, body)
        mine = trigger_event.c.workspace_id == space.id
        rows = await work.rows(
            select(trigger_event.c.payload).where(mine).order_by(trigger_event.c.id)
        )
    titles = [row.payload["record"]["title"] for row in rows]
    assert titles == [f"{n:03}" for n in range(2 * CHUNK + 1)]


@pytest.mark.long
async def test_a_burst_outlives_its_first_writer(space: Space) -> None:
    goods = await Listening.within(space.database, space.actor, keys=space.keys)
    subscriber = await goods.automation("record_updated", debounceSeconds=3_600)
    one = await goods.create("A", price=0)
    for price in (1, 2):
        await goods.set(one.id, price=price)
        await carry(goods)
    mine = debounced_change.c.workspace_id == space.id
    async with goods.database.transaction() as work:
        (burst,) = await work.rows(select(debounced_change).where(mine))
        assert burst.due_at > work.now + timedelta(minutes=59)
        assert burst.first_event < burst.last_event
        await work.execute(update(debounced_change).where(mine).values(due_at=work.now))
    await carry(goods)
    (told,) = await goods.payloads(subscriber)
    assert (told["before"]["data"]["price"], told["record"]["data"]["price"]) == (0, 2)


async def carry(goods: Listening) -> None:
    """Dispatch what is due, by a dispatcher that knows nothing yet."""
    while await Dispatcher(goods.database).turn():
        pass
