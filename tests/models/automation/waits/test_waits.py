"""Nodes that wait, without the executions that host them."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from sqlalchemy import Text, cast, func, insert, literal, select
from sqlalchemy.sql import Executable
from typing_extensions import override

from models.automation.automation_runs.node_writes import NodeKey
from models.automation.automation_runs.rules import NodeStatus
from models.automation.automation_runs.shapes import NodeRunShape
from models.automation.automation_runs.tables import automation_run
from models.automation.waits.commands import PublishEvent, publish_event
from models.automation.waits.queries import show_waits
from models.automation.waits.store import insert_wait, run_wait
from models.core.base import Id
from runtime.clock import utc_now
from runtime.database import Database, UnitOfWork
from runtime.temporal.outbox import outbox
from tests.support.ageing import make_automation, old_run
from tests.support.spaces import Space

MANY = 10_000


@pytest.mark.long
async def test_one_event_resumes_ten_thousand_runs(space: Space) -> None:
    run_id = await old_run(space, await make_automation(space), 1, "waiting")
    async with _taken_back(space.database) as work:
        await _multiply(work, run_id)
        body = PublishEvent.model_validate({"eventKey": "go", "data": {"n": 1}})
        assert await publish_event(work, space.actor, body) == MANY
        resolved = select(func.count()).where(run_wait.c.outcome == "always")
        assert await work.scalar(resolved.where(run_wait.c.workspace_id == space.id)) == MANY
        told = select(func.count(outbox.c.subject_id.distinct()))
        assert await work.scalar(told.where(outbox.c.workspace_id == space.id)) == MANY


class _Counting(UnitOfWork):
    """A unit of work that knows how much it has read."""

    read = 0

    @override
    async def rows(
        self, statement: Executable, parameters: Any = None, *, of: Any = None
    ) -> Sequence[Any]:
        found = await super().rows(statement, parameters, of=of)
        self.read += sum(len(str(row)) for row in found)
        return found


async def test_only_the_waits_of_the_nodes_that_are_shown_are_read(space: Space) -> None:
    run_id = await old_run(space, await make_automation(space), 1, "waiting")
    response = {"user_id": None, "at": "2026-01-01T00:00:00.000Z", "data": {"text": "x" * 10_000}}
    async with _taken_back(space.database) as work:
        for number in range(100):
            key = NodeKey(space.id, run_id, "wait", f"loop:{number}", "wait_event")
            await insert_wait(work, key, workflow_id="loop", event_key="go", responses=[response])
        one = _node_run(run_id, "loop:7")
        counting = _Counting(work.connection)
        await show_waits(counting, space.actor, [one])
    assert one.metadata["wait"] == {"eventKey": "go", "byUrl": True}
    assert counting.read < 1_000


def _node_run(run_id: Id, scope_key: str) -> NodeRunShape:
    return NodeRunShape(
        id=run_id,
        run_id=run_id,
        node_id="wait",
        node_kind="wait_event",
        scope_key=scope_key,
        status=NodeStatus.WAITING,
        attempt=1,
        input=None,
        output=None,
        error=None,
        started_at=utc_now(),
        completed_at=None,
        metadata={},
    )


@asynccontextmanager
async def _taken_back(database: Database) -> AsyncIterator[UnitOfWork]:
    """A unit of work of which nothing is left to deliver."""
    async with database.engine.connect() as connection:
        transaction = await connection.begin()
        yield UnitOfWork(connection)
        await transaction.rollback()


async def _multiply(work: UnitOfWork, run_id: object) -> None:
    """As many runs like this one, each with a node that waits for the event."""
    names = [name for name in automation_run.c.keys() if name != "id"]  # noqa: SIM118  # columns
    numbers = func.generate_series(1, MANY).table_valued("n")
    copies = (
        select(func.gen_random_uuid(), *(automation_run.c[name] for name in names))
        .select_from(automation_run.join(numbers, literal(value=True)))
        .where(automation_run.c.id == run_id)
    )
    made = (
        insert(automation_run)
        .from_select(["id", *names], copies)
        .returning(automation_run.c.id, automation_run.c.workspace_id)
        .cte("made")
    )
    row = {
        "run_id": made.c.id,
        "workspace_id": made.c.workspace_id,
        "node_id": literal("wait"),
        "scope_key": literal(""),
        "kind": literal("wait_event"),
        "workflow_id": cast(made.c.id, Text),
        "event_key": literal("go"),
        "terms": literal({}, run_wait.c.terms.type),
        "responses": literal([], run_wait.c.responses.type),
        "created_at": func.now(),
    }
    await work.execute(insert(run_wait).from_select(list(row), select(*row.values())))
