"""Nodes that wait, without the executions that host them."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sqlalchemy import Text, cast, func, insert, literal, select

from models.automation_runs.tables import automation_run
from models.waits.commands import publish_event
from models.waits.shapes import PublishEvent
from models.waits.tables import run_wait
from runtime.database import Database, UnitOfWork
from runtime.outbox import outbox
from tests.support.ageing import make_automation, old_run
from tests.support.spaces import Space

MANY = 10_000
SECONDS = 10.0
"""Half of what a statement may take; it takes about one."""


async def test_one_event_resumes_ten_thousand_runs(space: Space) -> None:
    run_id = await old_run(space, await make_automation(space), 1, "waiting")
    async with _taken_back(space.database) as work:
        await _multiply(work, run_id)
        began = time.perf_counter()
        body = PublishEvent.model_validate({"eventKey": "go", "data": {"n": 1}})
        assert await publish_event(work, space.actor, body) == MANY
        assert time.perf_counter() - began < SECONDS
        resolved = select(func.count()).where(run_wait.c.outcome == "always")
        assert await work.scalar(resolved.where(run_wait.c.workspace_id == space.id)) == MANY
        told = select(func.count(outbox.c.subject_id.distinct()))
        assert await work.scalar(told.where(outbox.c.workspace_id == space.id)) == MANY


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
        "said": literal([], run_wait.c.said.type),
        "created_at": func.now(),
    }
    await work.execute(insert(run_wait).from_select(list(row), select(*row.values())))
