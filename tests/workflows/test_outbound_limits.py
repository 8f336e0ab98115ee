"""Limits of the calls of a workspace, over all of its runs."""

import asyncio
import time
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import ColumnElement, func, insert, select

from models.core.base import Id
from models.sources.outbound_limits.commands import delete_limit, update_limit
from models.sources.outbound_limits.queries import UpdateOutboundLimit
from models.sources.outbound_limits.tables import outbound_call, outbound_place
from runtime.clock import utc_now
from runtime.ids import new_id
from tests.support.endpoint import Serve, reply
from tests.support.engine import KEYS, Engine, graph, node
from tests.support.patience import eventually
from tests.support.spaces import make_space

_QUICK = UpdateOutboundLimit.model_validate({"perSecond": 50})


async def _limit(engine: Engine, host: str = "127.0.0.1", **limits: Any) -> Id:
    place_id = new_id()
    async with engine.database.transaction() as work:
        await work.execute(
            insert(outbound_place).values(
                id=place_id,
                workspace_id=engine.actor.workspace_id,
                host=host,
                created_at=utc_now(),
                updated_at=utc_now(),
                **limits,
            )
        )
    return place_id


async def _calls(engine: Engine, *those: ColumnElement[bool]) -> int:
    mine = outbound_call.c.workspace_id == engine.actor.workspace_id
    async with engine.database.reading() as work:
        return int(await work.scalar(select(func.count()).where(mine, *those)))


@pytest.mark.long
async def test_all_runs_keep_to_the_rate_together(engine: Engine, serve: Serve) -> None:
    engine = replace(engine, actor=(await make_space(engine.database, KEYS)).actor)
    await _limit(engine, per_second=5.0)
    arrivals: list[float] = []

    async def answer(writer: asyncio.StreamWriter) -> None:
        arrivals.append(time.monotonic())
        writer.write(reply(200))
        await writer.drain()

    server = await serve(answer)
    calling = await engine.publish(graph(node("call", "http_request", url=server.url)))
    runs = [await engine.start(calling.id) for _ in range(30)]
    for run_id in runs:
        run = await engine.ended(calling.id, run_id)
        assert (run.status, run.node_runs[0].attempt) == ("succeeded", 1)
    # Moments are the platform's; an arrival may be late, and never makes the calls more.
    assert arrivals[-1] - arrivals[0] >= 28 / 5 - 0.5
    assert await _calls(engine) == 0


@pytest.mark.long
async def test_no_more_runs_than_the_bound_call_at_once(engine: Engine, serve: Serve) -> None:
    engine = replace(engine, actor=(await make_space(engine.database, KEYS)).actor)
    await _limit(engine, at_once=2)
    most = now = 0

    async def answer(writer: asyncio.StreamWriter) -> None:
        nonlocal most, now
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.3)
        now -= 1
        writer.write(reply(200))
        await writer.drain()

    server = await serve(answer)
    calling = await engine.publish(graph(node("call", "http_request", url=server.url)))
    runs = [await engine.start(calling.id) for _ in range(40)]
    for run_id in runs:
        run = await engine.ended(calling.id, run_id)
        assert (run.status, run.node_runs[0].attempt) == ("succeeded", 1)
    assert most == 2


@pytest.mark.long
async def test_a_retry_after_holds_for_all_runs_of_the_workspace_alone(
    engine: Engine, serve: Serve
) -> None:
    mine = replace(engine, actor=(await make_space(engine.database, KEYS)).actor)
    other = replace(engine, actor=(await make_space(engine.database, KEYS)).actor)
    arrivals: list[float] = []

    async def answer(writer: asyncio.StreamWriter) -> None:
        arrivals.append(time.monotonic())
        if len(arrivals) == 1:
            writer.write(reply(429, retry_after="3"))
        else:
            writer.write(reply(200))
        await writer.drain()

    server = await serve(answer)
    calling = graph(node("call", "http_request", url=server.url))
    first = await mine.publish(calling)
    theirs = await other.publish(calling)
    refused = await mine.ended(first.id, await mine.start(first.id))
    assert refused.status == "failed"
    waiting = [await mine.start(first.id) for _ in range(3)]
    free = await other.ended(theirs.id, await other.start(theirs.id))
    assert free.status == "succeeded"
    for run_id in waiting:
        run = await mine.ended(first.id, run_id)
        assert (run.status, run.node_runs[0].attempt) == ("succeeded", 1)
    assert len(arrivals) == 5
    # The other workspace called at once; the clocks of server and database differ a little.
    assert min(arrivals[2:]) - arrivals[0] >= 2.5
    assert await _calls(mine) == 0


async def _waiting(engine: Engine) -> int:
    """The calls that wait for their turns, away from their activities."""
    return await _calls(engine, outbound_call.c.execution.is_not(None))


async def _held_back(engine: Engine, serve: Serve, runs: int) -> tuple[Id, Id, list[Id]]:
    """A limit of one call in a quarter of an hour, an automation, and its runs that wait."""
    limit_id = await _limit(engine, per_second=1 / 900)
    server = await serve(reply(200))
    calling = await engine.publish(graph(node("call", "http_request", url=server.url)))
    first = await engine.start(calling.id)
    assert (await engine.ended(calling.id, first)).status == "succeeded"
    waiting = [await engine.start(calling.id) for _ in range(runs)]

    async def all_wait() -> bool:
        return await _waiting(engine) == runs

    await eventually(all_wait, what="calls that wait")
    for run_id in waiting:
        waits = (await engine.get(calling.id, run_id)).metadata["waitingFor"]
        assert (waits["kind"], waits["cause"]) == ("limited", "limit")
        assert (waits["subject"], waits["host"]) == ("host", "127.0.0.1")
    return limit_id, calling.id, waiting


@pytest.mark.long
async def test_calls_that_wait_go_by_a_changed_limit(engine: Engine, serve: Serve) -> None:
    engine = replace(engine, actor=(await make_space(engine.database, KEYS)).actor)
    limit_id, automation_id, waiting = await _held_back(engine, serve, 6)
    async with engine.database.transaction() as work:
        await update_limit(work, engine.actor, limit_id, _QUICK)
    for run_id in waiting:
        run = await engine.ended(automation_id, run_id)
        assert (run.status, run.node_runs[0].attempt) == ("succeeded", 1)
    assert await _waiting(engine) == 0


@pytest.mark.long
async def test_calls_that_wait_go_when_the_limit_is_removed(engine: Engine, serve: Serve) -> None:
    engine = replace(engine, actor=(await make_space(engine.database, KEYS)).actor)
    limit_id, automation_id, waiting = await _held_back(engine, serve, 6)
    async with engine.database.transaction() as work:
        await delete_limit(work, engine.actor, limit_id)
    for run_id in waiting:
        run = await engine.ended(automation_id, run_id)
        assert (run.status, run.node_runs[0].attempt) == ("succeeded", 1)
    assert await _waiting(engine) == 0


@pytest.mark.long
async def test_a_cancelled_run_leaves_its_line(engine: Engine, serve: Serve) -> None:
    engine = replace(engine, actor=(await make_space(engine.database, KEYS)).actor)
    limit_id, automation_id, (given_up, patient) = await _held_back(engine, serve, 2)
    await engine.cancel(automation_id, given_up)
    assert (await engine.ended(automation_id, given_up)).status == "cancelled"
    async with engine.database.transaction() as work:
        await update_limit(work, engine.actor, limit_id, _QUICK)
    assert (await engine.ended(automation_id, patient)).status == "succeeded"
