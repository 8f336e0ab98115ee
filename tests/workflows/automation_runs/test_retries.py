"""Attempts of an outside node: counted, kept, spaced as asked for."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import psycopg
import pytest
from sqlalchemy import text

from activities.automation_runs import outside_nodes
from models.automation.automation_runs import node_writes
from tests.support.endpoint import Serve, never, once, reply
from tests.support.engine import Engine, by_node, graph, node
from tests.support.patience import ENOUGH
from tests.support.run_rows import attempts, error_codes

AT_ONCE = {"maxAttempts": 3, "initialDelaySeconds": 0}
YEAR = f"Mon, 1 Jan {'9' * 20} 00:00:00 GMT"


@pytest.mark.long
async def test_attempts_are_counted_and_kept(engine: Engine, serve: Serve) -> None:
    statuses = [500, 503, 408, 409, 425, 429]
    endpoints = [await serve(reply(status), reply(200, {"ok": 1})) for status in statuses]
    run = await engine.run(
        graph(
            *(
                node(f"call{status}", "http_request", url=endpoint.url, retry=AT_ONCE)
                for status, endpoint in zip(statuses, endpoints, strict=True)
            )
        )
    )
    assert run.status == "succeeded", run.error
    assert [len(endpoint.requests) for endpoint in endpoints] == [2] * 6
    assert {one.attempt for one in run.node_runs} == {2}
    kept = [(f"call{status}", 1, f"http_{status}") for status in sorted(statuses)]
    assert await attempts(engine, run.id) == kept


@pytest.mark.long
async def test_the_last_attempt_is_the_failure(engine: Engine, serve: Serve) -> None:
    endpoint = await serve(reply(500), reply(502), reply(503))
    run = await engine.run(
        graph(
            node("call", "http_request", label="Call", url=endpoint.url, retry=AT_ONCE),
            node("oops", "transform", output={}),
            edges=[("call", "oops", "failure")],
        )
    )
    assert (run.status, run.output) == ("succeeded", {"oops": {}})
    called = by_node(run)["call"]
    assert (called.status, called.attempt) == ("failed", 3)
    assert called.error == "The server returned 503."
    assert await error_codes(engine, run) == {"call": "http_503"}
    assert await attempts(engine, run.id) == [("call", 1, "http_500"), ("call", 2, "http_502")]
    assert len(endpoint.requests) == 3


async def test_a_node_without_retry_has_one_attempt(engine: Engine, serve: Serve) -> None:
    endpoint = await serve(reply(500))
    run = await engine.run(graph(node("call", "http_request", url=endpoint.url)))
    assert (run.status, run.error) == ("failed", "call: The server returned 500.")
    assert (len(endpoint.requests), await attempts(engine, run.id)) == (1, [])


@pytest.mark.long
async def test_an_attempt_that_failed_after_its_answer_keeps_its_number(
    engine: Engine, serve: Serve
) -> None:
    quotes = reply(200, b'"' * 900_000, type_="text/plain")
    endpoint = await serve(reply(500), quotes)
    run = await engine.run(graph(node("call", "http_request", url=endpoint.url, retry=AT_ONCE)))
    assert await error_codes(engine, run) == {"call": "output_too_large"}
    assert by_node(run)["call"].attempt == 2


@pytest.mark.long
async def test_retry_after_is_honoured(engine: Engine, serve: Serve) -> None:
    """Temporal itself takes up to a second to repeat what may be repeated at once."""

    async def at_a_date(writer: asyncio.StreamWriter) -> None:
        # HTTP dates have whole seconds, so this is two to three seconds from now.
        date = format_datetime(datetime.now(UTC) + timedelta(seconds=3)).replace("+0000", "-0000")
        writer.write(reply(503, retry_after=date))
        await writer.drain()

    endpoints = [await serve(first, reply()) for first in (reply(503, retry_after="2"), at_a_date)]
    run = await engine.run(
        graph(
            *(
                node(f"call{number}", "http_request", url=endpoint.url, retry=AT_ONCE)
                for number, endpoint in enumerate(endpoints)
            )
        )
    )
    assert run.status == "succeeded", run.error
    for called in run.node_runs:
        assert called.attempt == 2
        assert called.started_at is not None
        assert called.completed_at is not None
        assert (called.completed_at - called.started_at).total_seconds() >= 1.6


@pytest.mark.parametrize("value", ["soon", "²", "-1", "", "9" * 5_000, YEAR])
async def test_an_unreadable_retry_after_is_passed_over(
    engine: Engine, serve: Serve, value: str
) -> None:
    endpoint = await serve(reply(503, retry_after=value))
    run = await engine.run(graph(node("call", "http_request", url=endpoint.url)))
    assert run.error == "call: The server returned 503."


@pytest.mark.long
async def test_a_silent_attempt_is_ended_from_outside_too(
    engine: Engine, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The activity bounds itself; if it could not, its timeout in Temporal ends the attempt."""
    monkeypatch.setattr(outside_nodes, "_own_time", _unbounded)
    endpoint = await serve(never)
    retry = {"maxAttempts": 2, "initialDelaySeconds": 0}
    run = await engine.run(
        graph(node("call", "http_request", url=endpoint.url, timeoutSeconds=3, retry=retry))
    )
    assert (run.status, by_node(run)["call"].attempt) == ("failed", 2)
    assert await error_codes(engine, run) == {"call": "timeout"}
    assert await attempts(engine, run.id) == [("call", 1, "interrupted")]


@contextlib.asynccontextmanager
async def _unbounded() -> AsyncIterator[None]:
    yield


async def test_a_database_that_goes_away_after_the_call_is_waited_for(
    engine: Engine, serve: Serve
) -> None:
    locked = asyncio.Event()
    endpoint = await serve(once(locked, reply(200, "canary", type_="text/plain")))
    automation = await engine.publish(graph(node("call", "http_request", url=endpoint.url)))
    run_id = await engine.start(automation.id)
    await asyncio.wait_for(endpoint.reached.wait(), ENOUGH)
    async with engine.database.engine.connect() as connection:
        await connection.execute(text("LOCK TABLE node_run IN SHARE MODE"))
        locked.set()
        blocked = text(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE query LIKE '%UPDATE node_run%'"
            " AND pg_backend_pid() = ANY(pg_blocking_pids(pid))"
        )
        async with asyncio.timeout(ENOUGH):
            while not (await connection.execute(blocked)).all():
                await connection.execute(text("SELECT pg_stat_clear_snapshot()"))
                await asyncio.sleep(0.02)
        await connection.rollback()
    run = await engine.ended(automation.id, run_id)
    assert (run.status, by_node(run)["call"].attempt) == ("succeeded", 1), run.error
    assert len(endpoint.requests) == 1
    handle = engine.client.get_workflow_handle(run.metadata["temporalWorkflowId"])
    history = (await handle.fetch_history()).to_json()
    assert "AdminShutdown" not in history
    assert "canary" not in history


async def test_a_database_that_goes_away_before_the_call_is_waited_for(
    engine: Engine, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The attempt may or may not be shown as begun."""
    start = node_writes.start_with_gate
    troubles = iter([psycopg.OperationalError("gone")])

    async def failing(*given: Any) -> bool:
        started = await start(*given)
        for trouble in troubles:
            raise trouble
        return started

    monkeypatch.setattr(node_writes, "start_with_gate", failing)
    endpoint = await serve(reply())
    run = await engine.run(graph(node("call", "http_request", url=endpoint.url)))
    assert (run.status, by_node(run)["call"].attempt) == ("succeeded", 1), run.error
    assert (len(endpoint.requests), await attempts(engine, run.id)) == (1, [])
