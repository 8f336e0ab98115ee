"""What is accepted or written in the moment in which a field is renamed with all that names it.

Each test leaves one transaction open, and lets the other begin: it waits for the first, which the
server says, or has read what the first changes.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from sqlalchemy import select, text

from models.automation.automation_runs.acceptance import RewrittenError, RunRequest, accept
from models.automation.automation_runs.rules import RunSource
from models.automation.automation_runs.tables import automation_run
from models.automation.automations import commands as automations
from models.automation.automations import runnable_versions
from models.automation.automations.shapes import PublishAutomation, UpdateAutomation
from models.automation.automations.tables import automation_graph, automation_version
from models.automation.webhooks.commands import Hook, find_hook, receive
from models.automation.webhooks.rules import Delivery
from models.core.base import Id
from models.data.databases.shapes import RenameField
from models.data.fields.queries import load_catalog
from models.data.records.commands import update_record
from models.data.records.shapes import UpdateRecord
from models.workspace.impact.fields import rename_field
from runtime.database import UnitOfWork
from runtime.errors import ConflictError
from runtime.ids import new_id
from tests.support.engine import KEYS, Engine, Json, graph, node
from tests.support.patience import eventually
from tests.support.triggers import Listening

pytestmark = pytest.mark.takes(seconds=20)


@pytest.fixture
async def goods(engine: Engine) -> Listening:
    """A database with a field `price`, and a record that costs 7."""
    listening = await Listening.within(engine.database, engine.actor)
    await listening.create("A", price=7)
    return listening


def reading(goods: Listening) -> Json:
    query = {"filter": {"field": "price", "op": "gt", "value": 5}}
    return graph(node("read", "query_records", databaseId=str(goods.table), query=query))


async def rename(engine: Engine, goods: Listening, work: UnitOfWork) -> None:
    catalog = await load_catalog(work, engine.actor.workspace_id, [goods.table])
    field_id = catalog[goods.table]["price"].id
    body = RenameField(key="cost", rewrite=True)
    await rename_field(work, engine.actor, goods.table, field_id, body)


async def renamed(engine: Engine, goods: Listening) -> None:
    async with engine.database.transaction() as work:
        await rename(engine, goods, work)


@asynccontextmanager
async def waiting_for_this(
    engine: Engine, step: Callable[[UnitOfWork], Awaitable[Any]]
) -> AsyncIterator[asyncio.Task[Any]]:
    """Take a step in another transaction, which waits for one that the caller has open."""
    pids: list[int] = []

    async def take() -> Any:
        async with engine.database.transaction() as work:
            pids.append(await work.scalar(text("SELECT pg_backend_pid()")))
            return await step(work)

    async def waits() -> bool:
        if not pids or task.done():
            return task.done()
        async with engine.database.transaction() as other:
            query = text("SELECT cardinality(pg_blocking_pids(:pid)) > 0")
            return bool(await other.scalar(query, {"pid": pids[0]}))

    task = asyncio.create_task(take())
    await eventually(waits, what="the wait for a lock")
    assert not task.done(), "it did not wait"
    yield task


async def run_now(
    engine: Engine, version: runnable_versions.RunnableVersion, work: UnitOfWork
) -> Id:
    request = RunRequest(RunSource.MANUAL, {})
    return (await accept(work, engine.actor, version, request)).run_id


async def keys_of_runs(engine: Engine, automation_id: Id) -> list[str]:
    """The keys by which the graphs of the runs of an automation name the field."""
    run, stored = automation_run.c, automation_graph.c
    async with engine.database.transaction() as work:
        rows = await work.rows(
            select(stored.graph)
            .join(
                automation_run,
                (run.automation_id == stored.automation_id)
                & (run.graph_checksum == stored.checksum),
            )
            .where(run.automation_id == automation_id)
        )
    return [row.graph["nodes"][0]["config"]["query"]["filter"]["field"] for row in rows]


async def test_a_run_of_a_version_read_before_is_refused_after(
    engine: Engine, goods: Listening
) -> None:
    automation = await engine.publish(reading(goods))
    async with engine.database.transaction() as work:
        version = await runnable_versions.published(work, engine.actor, automation.id)
        await renamed(engine, goods)
        with pytest.raises(RewrittenError):
            await run_now(engine, version, work)
        fresh = await runnable_versions.published(work, engine.actor, automation.id)
        await run_now(engine, fresh, work)
    assert await keys_of_runs(engine, automation.id) == ["cost"]


async def test_a_run_waits_for_the_rename_and_is_refused(engine: Engine, goods: Listening) -> None:
    automation = await engine.publish(reading(goods))
    async with engine.database.transaction() as work:
        version = await runnable_versions.published(work, engine.actor, automation.id)
    async with engine.database.transaction() as renaming:
        await rename(engine, goods, renaming)
        async with waiting_for_this(engine, partial(run_now, engine, version)) as run:
            await renaming.commit()
            with pytest.raises(RewrittenError):
                await run
            await renaming.begin()
    assert await keys_of_runs(engine, automation.id) == []


async def test_the_rename_waits_for_a_run_and_moves_it(engine: Engine, goods: Listening) -> None:
    automation = await engine.publish(reading(goods))
    async with engine.database.transaction() as accepting:
        version = await runnable_versions.published(accepting, engine.actor, automation.id)
        await run_now(engine, version, accepting)
        async with waiting_for_this(engine, partial(rename, engine, goods)) as renaming:
            await accepting.commit()
            try:
                await renaming
            except ConflictError:
                # A worker has begun it meanwhile.
                assert await keys_of_runs(engine, automation.id) == ["price"]
            else:
                assert await keys_of_runs(engine, automation.id) == ["cost"]
            await accepting.begin()


@pytest.mark.parametrize("key", [None, "call-1"])
async def test_a_call_of_a_webhook_runs_the_new_version(
    engine: Engine, goods: Listening, key: str | None
) -> None:
    trigger: Json = {"kind": "webhook", "auth": "none"}
    if key is not None:
        trigger["dedupe"] = {"source": "header", "name": "x-key"}
    automation = await engine.publish(reading(goods), triggerConfig=trigger)
    async with engine.database.transaction() as work:
        token = await work.scalar(
            text("SELECT webhook_token FROM automation WHERE id = :id"), {"id": automation.id}
        )
        hook = await find_hook(work, token)
    assert isinstance(hook, Hook)
    await renamed(engine, goods)
    headers = [("content-type", "application/json"), *([("x-key", key)] if key else [])]
    call = Delivery("POST", headers, b"", b"{}")
    for _ in range(2 if key else 1):
        await receive(engine.database, KEYS, hook, call, new_id())
    assert await keys_of_runs(engine, automation.id) == ["cost"]


@pytest.mark.parametrize("debounce", [None, 3600])
async def test_a_change_in_the_queue_gets_the_new_key(
    engine: Engine, goods: Listening, debounce: int | None
) -> None:
    config: Json = {} if debounce is None else {"debounceSeconds": debounce}
    automation_id = await goods.automation("record_updated", **config)
    made = await goods.create("B", price=1)
    await goods.heard()
    if debounce is None:
        async with engine.database.transaction() as work:
            await _set_unheard(goods, work, made.id)
        await renamed(engine, goods)
        await goods.release()
        (payload,) = await goods.payloads(automation_id)
    else:
        await goods.set(made.id, price=2)
        await goods.heard()
        await renamed(engine, goods)
        async with engine.database.transaction() as work:
            query = text("SELECT change FROM debounced_change WHERE automation_id = :id")
            payload = await work.scalar(query, {"id": automation_id})
    assert payload["record"]["data"]["cost"] == 2
    assert payload["before"]["data"]["cost"] == 1
    assert payload["changedKeys"] == ["cost"]


async def _set_unheard(goods: Listening, work: UnitOfWork, record_id: Id) -> None:
    """Change the price of a record; the event is not dispatched before `release`."""
    body = UpdateRecord.model_validate({"data": {"price": 2}})
    await update_record(work, goods.actor, record_id, body)
    await work.execute(goods.of_events().values(due_at=datetime(9999, 1, 1, tzinfo=UTC)))


async def names_in_versions(engine: Engine, automation_id: Id) -> dict[str, str]:
    """The key by which the draft and the published version name the field."""
    version, stored = automation_version.c, automation_graph.c
    async with engine.database.transaction() as work:
        rows = await work.rows(
            select(version.status, stored.graph)
            .join(
                automation_graph,
                (stored.automation_id == version.automation_id)
                & (stored.checksum == version.checksum),
            )
            .where(version.automation_id == automation_id, version.status != "archived")
        )
    return {row.status: row.graph["nodes"][0]["config"]["query"]["filter"]["field"] for row in rows}


async def test_the_rename_waits_for_a_version_that_is_published(
    engine: Engine, goods: Listening
) -> None:
    """The version that is drafted and published meanwhile is none of those that it found before."""
    automation_id = await engine.draft(graph(node("read", "transform", output={})))
    async with engine.database.transaction() as work:
        body = UpdateAutomation.model_validate({"graph": reading(goods)})
        await automations.update_automation(work, engine.actor, KEYS, automation_id, body)
        publishing = PublishAutomation.model_validate({})
        await automations.publish(work, engine.actor, KEYS, automation_id, publishing)
        async with waiting_for_this(engine, partial(rename, engine, goods)) as renaming:
            await work.commit()
            await renaming
            await work.begin()
    assert await names_in_versions(engine, automation_id) == {"published": "cost"}
