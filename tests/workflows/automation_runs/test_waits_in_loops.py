"""Waits inside loops, in iterations of the run's own execution and of executions below it."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
import pytest_asyncio
from sqlalchemy import select
from temporalio.client import WorkflowExecutionStatus

from models.automation.automation_runs.shapes import AutomationRunDetail
from models.automation.waits.store import run_wait
from models.core.base import Id
from runtime.database import Database
from runtime.temporal.workflow_kinds import WorkflowKind
from tests.support.endpoint import Serve, once, reply
from tests.support.engine import Engine, Json, graph, node, running_engine
from tests.support.patience import ENOUGH, eventually
from tests.support.postgres import migrated_database
from tests.support.temporal import dev_server
from tests.support.waits import held, publish, resume, waiting

FEW, MANY = 3, 130
"""Iterations of the run's own execution, and enough for an execution of their own."""


def looping(count: int, *body: Json, **loop: object) -> Json:
    """A for_each whose body is a chain of nodes."""
    names = ["loop", *(one["id"] for one in body)]
    outcomes = ["item", *["always"] * (len(body) - 1)]
    edges = list(zip(names, names[1:], outcomes, strict=False))
    items = list(range(count))
    return graph(node("loop", "for_each", items=items, **loop), *body, edges=edges)


def hear(key: str = "go") -> Json:
    return held("hear", "wait_event", {"eventKey": key})


async def test_an_event_finds_the_iteration_it_belongs_to(engine: Engine) -> None:
    config = {"eventKey": "go", "filter": "data.item == item && data.index == index"}
    body = held("hear", "wait_event", config)
    place = await waiting(engine, looping(FEW, body, parallelism=FEW))
    await engine.until(*place, lambda run: len(waits_in(run)) == FEW)
    assert await publish(engine, "go", item=1, index=2) == 0
    assert await publish(engine, "go", item=1, index=1) == 1
    await engine.until(*place, lambda run: waits_in(run) == ["loop:0", "loop:2"])
    await engine.cancel(*place)


def waits_in(run: AutomationRunDetail) -> list[str]:
    """The scopes that wait, as the run says."""
    return sorted(one["scopeKey"] for one in run.metadata["waiting"] if one["nodeId"] == "hear")


async def statuses(
    engine: Engine, place: tuple[Id, Id], until: str, begun: asyncio.Event
) -> list[str]:
    """The run's statuses from now on, each once in a row; the first sets `begun`."""
    seen: list[str] = []
    async with asyncio.timeout(ENOUGH):
        while not seen or seen[-1] != until:
            status = (await engine.get(*place)).status.value
            if not seen or seen[-1] != status:
                seen.append(status)
            begun.set()
            await asyncio.sleep(0.02)
    return seen


@pytest.mark.long
@pytest.mark.parametrize("count", [FEW, MANY])
async def test_a_run_waits_while_all_its_iterations_do(engine: Engine, count: int) -> None:
    place = await waiting(engine, looping(count, hear(), parallelism=3))
    run = await engine.get(*place)
    assert waits_in(run) == ["loop:0", "loop:1", "loop:2"]
    assert await publish(engine, "go") == 3
    if count == FEW:
        assert (await engine.ended(*place)).status == "succeeded"
        return
    nexts = ["loop:3", "loop:4", "loop:5"]
    run = await engine.until(*place, lambda run: run.status == "waiting" and waits_in(run) == nexts)
    await resume(engine, place, "hear", scopeKey="loop:4", data={})
    nexts = ["loop:3", "loop:5", "loop:6"]
    await engine.until(*place, lambda run: run.status == "waiting" and waits_in(run) == nexts)
    cancelled = await engine.cancel(*place)
    assert cancelled.metadata["waiting"] == []
    async with engine.database.transaction() as work:
        hosts = await work.rows(
            select(run_wait.c.workflow_id).where(run_wait.c.run_id == place[1]).distinct()
        )
    own = WorkflowKind.AUTOMATION_RUN.workflow_id(place[1])
    assert [row.workflow_id for row in hosts] == [f"{own}/loop/loop//0"]
    await ended(engine, f"{own}/loop/loop//0")


async def ended(engine: Engine, workflow_id: str) -> None:
    handle = engine.client.get_workflow_handle(workflow_id)

    async def is_closed() -> bool:
        return (await handle.describe()).status is not WorkflowExecutionStatus.RUNNING

    await eventually(is_closed, what=f"the end of {workflow_id}")


@pytest.mark.long
@pytest.mark.parametrize("count", [FEW, MANY])
async def test_a_run_does_not_wait_while_one_iteration_works(
    engine: Engine, serve: Serve, count: int
) -> None:
    """One event lets one iteration call a server; meanwhile the run is running."""
    show_running = asyncio.Event()
    slow = await serve(once(show_running, reply()))
    content = looping(count, hear(), node("call", "http_request", url=slow.url), parallelism=2)
    place = await waiting(engine, content)
    await resume(engine, place, "hear", scopeKey="loop:1", data={})
    await asyncio.wait_for(slow.reached.wait(), ENOUGH)
    run = await engine.get(*place)
    assert (run.status, waits_in(run)) == ("running", ["loop:0"])
    assert await statuses(engine, place, "waiting", show_running) == ["running", "waiting"]
    assert waits_in(await engine.get(*place)) == ["loop:0", "loop:2"]
    await engine.cancel(*place)


@pytest.mark.long
async def test_a_branch_beside_a_long_loop_counts(engine: Engine, serve: Serve) -> None:
    show_running = asyncio.Event()
    slow = await serve(once(show_running, reply()))
    content = looping(MANY, hear(), parallelism=2)
    content["nodes"].append(node("beside", "http_request", url=slow.url))
    automation = await engine.publish(content)
    place = (automation.id, await engine.start(automation.id))
    await engine.until(*place, lambda run: len(waits_in(run)) == 2)
    assert (await engine.get(*place)).status == "running"
    assert await statuses(engine, place, "waiting", show_running) == ["running", "waiting"]
    await engine.cancel(*place)


@pytest.mark.long
async def test_long_loops_in_long_loops_wait_together(engine: Engine) -> None:
    inner = node("inner", "for_each", items=list(range(MANY)), parallelism=2)
    content = looping(MANY, inner, parallelism=2)
    content["nodes"].append(hear("deep"))
    content["edges"].append({"from": "inner", "to": "hear", "outcome": "item"})
    place = await waiting(engine, content)
    scopes = [f"loop:{outer}/inner:{index}" for outer in (0, 1) for index in (0, 1)]
    assert waits_in(await engine.get(*place)) == scopes
    await resume(engine, place, "hear", scopeKey="loop:1/inner:0", data={})
    scopes = [*scopes[:2], "loop:1/inner:1", "loop:1/inner:2"]
    await engine.until(*place, lambda run: run.status == "waiting" and waits_in(run) == scopes)
    await engine.cancel(*place)


@pytest.mark.long
async def test_a_decision_of_one_iteration_is_its_own(engine: Engine) -> None:
    ask = held("ask", "approval", {"role": "owner", "allowSelf": True})
    content = looping(2, ask, parallelism=2)
    content["nodes"].append(node("yes", "transform", output={}))
    content["edges"].append({"from": "ask", "to": "yes", "outcome": "approved"})
    place = await waiting(engine, content)
    await resume(engine, place, "ask", scopeKey="loop:0", decision="rejected")
    await resume(engine, place, "ask", scopeKey="loop:1", decision="approved")
    run = await engine.ended(*place)
    decided = {
        one.scope_key: one.output["decision"] for one in run.node_runs if one.node_id == "ask"
    }
    assert decided == {"loop:0": "rejected", "loop:1": "approved"}
    passed = [one.scope_key for one in run.node_runs if one.node_id == "yes"]
    assert "loop:1" in passed


@pytest_asyncio.fixture(scope="module")
async def hurried() -> AsyncIterator[Engine]:
    """An engine whose runs may last eight seconds."""
    with migrated_database("hurried_loops") as url:
        database = Database(url)
        limit = timedelta(seconds=8)
        async with (
            dev_server() as environment,
            running_engine(database, url, environment.client, run_limit=limit) as engine,
        ):
            yield engine
        await database.close()


@pytest.mark.long
async def test_the_deadline_reaches_the_executions_below(hurried: Engine) -> None:
    place = await waiting(hurried, looping(MANY, hear(), parallelism=2))
    run = await hurried.ended(*place)
    assert (run.status, run.metadata["waiting"]) == ("timed_out", [])
    own = WorkflowKind.AUTOMATION_RUN.workflow_id(place[1])
    await ended(hurried, f"{own}/loop/loop//0")


async def test_urls_know_their_iteration(engine: Engine) -> None:
    tell = node("tell", "transform", output={"url": {"type": "run", "value": "resumeUrl.hear"}})
    place = await waiting(engine, looping(2, tell, hear(), parallelism=2))
    run = await engine.get(*place)
    told = {one.scope_key: one.output["url"] for one in run.node_runs if one.node_id == "tell"}
    assert len(set(told.values())) == 2
    await engine.cancel(*place)
