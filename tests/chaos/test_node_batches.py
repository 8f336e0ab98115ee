"""Nodes that only compute are written together, and as if each were alone (ADR 0080)."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import pytest
import uvloop
from sqlalchemy import select

from activities.automation_runs import node_execution, quick_nodes
from activities.automation_runs.nodes.invocation import NodeResult
from activities.automation_runs.nodes.logic import COMPUTATIONS
from activities.automation_runs.transactions import AutomationRunActivities
from activities.contracts import WAITS_FOR_SLOT
from activities.endings import CLOSED
from activities.outbox.claims import Limits, claim, claimed_header
from activities.outbox.relay import RunStarts
from models.automation.automation_runs import execution
from models.automation.automation_runs.tables import node_run
from models.automation.automations.rules.graph.kinds import NodeKind
from models.automation.automations.rules.planner.protocol import index_of
from models.core.base import Id
from models.core.lifecycle.commands import RUNNING
from runtime.database import SingleStatement, Work
from tests.chaos.queries import fetch
from tests.support.engine import Engine, by_node, graph, node, separate_worker
from tests.support.patience import eventually
from tests.support.run_rows import states

pytestmark = pytest.mark.crash


def expression(text: str) -> dict[str, str]:
    return {"type": "expression", "value": text}


def chain(*texts: str) -> dict[str, Any]:
    """A graph of nodes n0, n1, …: each has an output `x` by its expression."""
    names = [f"n{number}" for number in range(len(texts))]
    nodes = [
        node(name, "transform", output={"x": expression(text)})
        for name, text in zip(names, texts, strict=True)
    ]
    return graph(*nodes, edges=list(pairwise(names)))


ADDING = chain("1", "nodes.n0.x + 1", "nodes.n1.x + 1")


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch grows as long as a slow machine needs."""
    monkeypatch.setattr(node_execution, "HOLD_SECONDS", 60)


def counting_statements(idle: Engine, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A list that grows by each statement which is a transaction of its own."""
    statements: list[str] = []
    statement = idle.database.statement

    @asynccontextmanager
    async def counted() -> AsyncIterator[SingleStatement]:
        statements.append("statement")
        async with statement() as work:
            yield work

    monkeypatch.setattr(idle.database, "statement", counted)
    return statements


@pytest.mark.usefixtures("held")
async def test_a_run_is_begun_and_ended_in_a_statement_each(
    idle: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused() -> None:
        raise AssertionError("a transaction of several statements")

    automation = await idle.publish(ADDING)
    worker = separate_worker(idle)
    first, second = await idle.start(automation.id), await idle.start(automation.id)
    await worker.begin(str(first))
    statements = counting_statements(idle, monkeypatch)
    monkeypatch.setattr(idle.database, "transaction", refused)
    begun = await worker.begin(str(second))
    monkeypatch.undo()
    assert begun.batch.ended == "succeeded"
    assert len(statements) == 2
    run = await idle.get(automation.id, second)
    assert run.output == {"n2": {"x": 3}}
    assert [by_node(run)[f"n{n}"].output["x"] for n in range(3)] == [1, 2, 3]
    assert all(one.started_at and one.completed_at for one in run.node_runs)


async def claiming_worker(idle: Engine, *run_ids: Id) -> AutomationRunActivities:
    """The activities of a process whose relay has claimed the runs."""
    limits = Limits(rows=20, starting=8, ahead=10, running=RUNNING)
    async with idle.database.statement() as work:
        rows = (await claim(work, limits, [], [], of_one=7)).rows
    claimed = [row for row in rows if row.subject_id in run_ids]
    assert len(claimed) == len(run_ids)
    starts = RunStarts()
    for row in claimed:
        starts.started(row.subject_id, row.workspace_id, claimed_header(row))
    return separate_worker(idle, starts)


async def statuses(url: str, run_id: Id) -> list[str]:
    """The states of a run of which the log of its workspace tells."""
    query = (
        "SELECT data ->> 'status' FROM workspace_event"
        " WHERE type = 'run.status' AND data ->> 'runId' = %s::text ORDER BY seq"
    )
    return [status for (status,) in await fetch(url, query, run_id)]


@pytest.mark.usefixtures("held")
async def test_a_claimed_run_is_begun_and_ended_in_one_statement(
    idle: Engine, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    automation = await idle.publish(ADDING)
    first, run_id = await idle.start(automation.id), await idle.start(automation.id)
    worker = await claiming_worker(idle, first, run_id)
    await worker.begin(str(first))
    statements = counting_statements(idle, monkeypatch)
    begun = await worker.begin(str(run_id))
    monkeypatch.undo()
    assert begun.batch.ended == "succeeded"
    assert len(statements) == 1
    run = await idle.get(automation.id, run_id)
    assert run.output == {"n2": {"x": 3}}
    assert [by_node(run)[f"n{n}"].output["x"] for n in range(3)] == [1, 2, 3]
    assert run.started_at is not None
    assert run.completed_at is not None
    assert run.started_at <= run.completed_at
    assert await statuses(url, run_id) == ["queued", "succeeded"]
    # A repetition, as after a lost answer, finds the end.
    assert (await worker.begin(str(run_id))).batch.ended == "closed"


async def test_a_claimed_run_that_takes_long_is_shown_as_running(
    idle: Engine, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    automation = await idle.publish(ADDING)
    run_id = await idle.start(automation.id)
    worker = await claiming_worker(idle, run_id)
    end_run = node_execution.NodeBatch.end_run

    async def is_running() -> bool:
        return await statuses(url, run_id) == ["queued", "running"]

    async def late(batch: node_execution.NodeBatch, skipped: Any) -> bool:
        await eventually(is_running)
        return await end_run(batch, skipped)

    monkeypatch.setattr(node_execution.NodeBatch, "end_run", late)
    begun = await worker.begin(str(run_id))
    assert begun.batch.ended == "succeeded"
    assert await statuses(url, run_id) == ["queued", "running", "succeeded"]


async def test_a_claimed_run_that_ends_as_it_would_be_shown_is_written_once(
    idle: Engine, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    automation = await idle.publish(ADDING)
    first, run_id = await idle.start(automation.id), await idle.start(automation.id)
    worker = await claiming_worker(idle, first, run_id)
    await worker.begin(str(first))
    write = execution.write_nodes_and_succeed

    async def slow(*arguments: Any) -> bool:
        await asyncio.sleep(0.1)
        return await write(*arguments)

    monkeypatch.setattr(execution, "write_nodes_and_succeed", slow)
    statements = counting_statements(idle, monkeypatch)
    assert (await worker.begin(str(run_id))).batch.ended == "succeeded"
    await asyncio.sleep(0.1)
    monkeypatch.undo()
    assert len(statements) == 1
    assert await statuses(url, run_id) == ["queued", "succeeded"]


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_a_batch_that_ended_shows_no_run_on_any_event_loop(
    run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing: Any = None
    shown: list[node_execution.NodeBatch] = []
    is_shown = asyncio.Event()

    async def show(batch: node_execution.NodeBatch) -> None:
        shown.append(batch)
        is_shown.set()

    async def ended_and_open() -> node_execution.NodeBatch:
        with node_execution.NodeBatch(nothing, nothing, begins=True):
            pass
        with node_execution.NodeBatch(nothing, nothing, begins=True) as batch:
            await is_shown.wait()
            return batch

    monkeypatch.setattr(node_execution.NodeBatch, "begin", show)
    assert shown == [run(ended_and_open())]


@pytest.mark.usefixtures("held")
@pytest.mark.parametrize(
    ("meanwhile", "ended"),
    [
        ("UPDATE automation_run SET status = 'cancelled' WHERE id = %s RETURNING id", CLOSED),
        ("UPDATE automation_run SET admitted_at = NULL WHERE id = %s RETURNING id", WAITS_FOR_SLOT),
    ],
)
async def test_a_claimed_run_that_may_not_begin_leaves_nothing(
    idle: Engine, url: str, meanwhile: str, ended: str
) -> None:
    automation = await idle.publish(ADDING)
    run_id = await idle.start(automation.id)
    worker = await claiming_worker(idle, run_id)
    await fetch(url, meanwhile, run_id)
    begun = await worker.begin(str(run_id))
    assert begun.plan is None
    assert begun.batch.ended == ended
    assert await fetch(url, "SELECT 1 FROM node_run WHERE run_id = %s", run_id) == []


async def test_a_run_that_gets_its_slot_while_it_asks_why_it_may_not_begin_waits(
    idle: Engine, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    automation = await idle.publish(ADDING)
    run_id = await idle.start(automation.id)
    admit = "UPDATE automation_run SET admitted_at = {} WHERE id = %s RETURNING id"
    await fetch(url, admit.format("NULL"), run_id)
    begin = execution.begin

    async def refused(work: Work, run_id: Id) -> Any:
        header = await begin(work, run_id)
        await fetch(url, admit.format("now()"), run_id)
        return header

    monkeypatch.setattr(execution, "begin", refused)
    begun = await separate_worker(idle).begin(str(run_id))
    assert begun.plan is None
    # The signal of its slot is delivered after this.
    assert begun.batch.ended == WAITS_FOR_SLOT


@pytest.mark.usefixtures("held")
async def test_a_claimed_run_that_another_process_began_is_executed_once(
    idle: Engine, url: str
) -> None:
    automation = await idle.publish(ADDING)
    run_id = await idle.start(automation.id)
    worker = await claiming_worker(idle, run_id)
    await write_first_node(idle, url, run_id)
    begun = await worker.begin(str(run_id))
    assert begun.batch.ended == "succeeded"
    assert (await idle.get(automation.id, run_id)).output == {"n2": {"x": 12}}


@pytest.mark.usefixtures("held")
async def test_a_claimed_run_shows_its_failure_after_its_begin(idle: Engine, url: str) -> None:
    automation = await idle.publish(chain("1", "nodes.n0.x + 'a'", "3"))
    run_id = await idle.start(automation.id)
    begun = await (await claiming_worker(idle, run_id)).begin(str(run_id))
    assert begun.batch.ended == "failed"
    run = await idle.get(automation.id, run_id)
    assert states(run) == {"n0": "succeeded", "n1": "failed"}
    assert await statuses(url, run_id) == ["queued", "running", "failed"]


async def write_first_node(idle: Engine, url: str, run_id: object, scope_key: str = "") -> None:
    await fetch(
        url,
        "INSERT INTO node_run (run_id, workspace_id, node_id, scope_key, node_kind, status,"
        " attempt, outcome, output, started_at, completed_at) VALUES"
        " (%s, %s, 'n0', %s, 'transform', 'succeeded', 1, 'always', '{\"x\": 10}', now(), now())"
        " RETURNING run_id",
        run_id,
        idle.actor.workspace_id,
        scope_key,
    )


@pytest.mark.usefixtures("held")
async def test_a_node_that_another_execution_wrote_counts_for_the_whole_batch(
    idle: Engine, url: str
) -> None:
    automation = await idle.publish(ADDING)
    run_id = await idle.start(automation.id)
    await write_first_node(idle, url, run_id)
    begun = await separate_worker(idle).begin(str(run_id))
    assert begun.batch.ended == "succeeded"
    run = await idle.get(automation.id, run_id)
    assert run.output == {"n2": {"x": 12}}


@pytest.mark.usefixtures("held")
async def test_a_value_that_cannot_be_stored_fails_its_node_alone(
    idle: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unstorable(parameters: Any, _: object) -> NodeResult:
        x = parameters["output"]["x"]
        return NodeResult({"x": "\0" if x == 2 else x})

    automation = await idle.publish(ADDING)
    run_id = await idle.start(automation.id)
    monkeypatch.setitem(COMPUTATIONS, NodeKind.TRANSFORM, unstorable)
    begun = await separate_worker(idle).begin(str(run_id))
    assert begun.batch.ended == "failed"
    run = await idle.get(automation.id, run_id)
    assert states(run) == {"n0": "succeeded", "n1": "failed"}
    assert by_node(run)["n0"].output == {"x": 1}


@pytest.mark.usefixtures("held")
async def test_nothing_of_a_batch_is_written_behind_a_cancel(
    idle: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    automation = await idle.publish(ADDING)
    run_id = await idle.start(automation.id)
    end_run = node_execution.NodeBatch.end_run

    async def after_cancel(batch: node_execution.NodeBatch, skipped: Any) -> bool:
        await idle.cancel(automation.id, run_id)
        return await end_run(batch, skipped)

    monkeypatch.setattr(node_execution.NodeBatch, "end_run", after_cancel)
    begun = await separate_worker(idle).begin(str(run_id))
    assert begun.batch.ended == "closed"
    run = await idle.get(automation.id, run_id)
    assert run.status == "cancelled"
    assert {node.status for node in run.node_runs} == {"cancelled"}


async def test_an_old_batch_is_written_before_the_next_node_is_executed(
    idle: Engine, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_execution, "HOLD_SECONDS", 0)
    shown: list[list[Any]] = []
    automation = await idle.publish(ADDING)
    run_id = await idle.start(automation.id)
    write = node_execution.NodeBatch.write

    async def watched(batch: node_execution.NodeBatch) -> None:
        await write(batch)
        query = "SELECT node_id FROM node_run WHERE run_id = %s ORDER BY node_id"
        shown.append([name for (name,) in await fetch(url, query, run_id)])

    monkeypatch.setattr(node_execution.NodeBatch, "write", watched)
    await separate_worker(idle).begin(str(run_id))
    assert shown == [["n0"], ["n0", "n1"]]


def over_items(*texts: str, **config: Any) -> dict[str, Any]:
    """A loop over the items of the trigger, whose body is a chain of nodes n0, n1, …."""
    body = chain(*texts)
    items = {"type": "trigger", "value": "items"}
    loop = node("loop", "for_each", items=items, **config)
    return {
        "nodes": [loop, *body["nodes"]],
        "edges": [{"from": "loop", "to": "n0", "outcome": "item"}, *body["edges"]],
    }


@pytest.mark.usefixtures("held")
@pytest.mark.parametrize("lanes", [1, 8])
async def test_iterations_share_their_writes(
    idle: Engine, monkeypatch: pytest.MonkeyPatch, lanes: int
) -> None:
    items = list(range(150))
    automation = await idle.publish(over_items("item * 2", "nodes.n0.x + index", parallelism=lanes))
    run_id = await idle.start(automation.id, {"items": items})
    monkeypatch.setattr(quick_nodes, "BATCH_SECONDS", 60)
    statements = counting_statements(idle, monkeypatch)
    begun = await separate_worker(idle).begin(str(run_id))
    monkeypatch.undo()
    assert begun.batch.ended == "succeeded"
    # 300 nodes; a lane that finds the batch full waits until it is written.
    assert len(statements) < 20
    written = await outputs(idle, run_id, "n1")
    assert written == {item: 3 * item for item in items}


async def outputs(idle: Engine, run_id: Id, node_id: str) -> dict[int, Any]:
    """The `x` of a node in each iteration."""
    async with idle.database.transaction() as work:
        rows = await work.rows(
            select(node_run.c.scope_key, node_run.c.output).where(
                node_run.c.run_id == run_id, node_run.c.node_id == node_id
            )
        )
    return {index_of(row.scope_key): row.output["x"] for row in rows}


@pytest.mark.usefixtures("held")
async def test_iterations_are_executed_anew_where_one_was_written_by_another_execution(
    idle: Engine, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quick_nodes, "BATCH_SECONDS", 60)
    automation = await idle.publish(over_items("item", "nodes.n0.x + 1", parallelism=8))
    run_id = await idle.start(automation.id, {"items": list(range(150))})
    await write_first_node(idle, url, run_id, "loop:7")
    begun = await separate_worker(idle).begin(str(run_id))
    assert begun.batch.ended == "succeeded"
    assert await outputs(idle, run_id, "n1") == {
        number: 11 if number == 7 else number + 1 for number in range(150)
    }
