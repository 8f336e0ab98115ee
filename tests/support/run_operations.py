"""Operations over runs: accepted for an engine, or carried out by a test itself."""

from collections import Counter
from datetime import timedelta
from typing import Any
from uuid import UUID

from pydantic_core import to_json
from sqlalchemy import delete, func, insert, select

from activities.endings import CLOSED
from models.automation.automation_runs.tables import automation_run
from models.automation.run_operations import commands, queries
from models.automation.run_operations.execution import Advance, advance
from models.automation.run_operations.queries import (
    RUN_OPERATIONS,
    CreateRunOperation,
    RunOperationShape,
    RunResultList,
)
from models.automation.run_operations.rules import OperationRow
from models.core.access.rules import Actor
from models.core.lifecycle import commands as lifecycle
from models.core.pagination import page_request
from runtime.database import Database, UnitOfWork
from runtime.ids import new_id
from runtime.temporal import outbox
from runtime.temporal.workflow_kinds import WorkflowKind
from tests.support.engine import KEYS, Engine
from tests.support.patience import found_when


async def step(database: Database, operation_id: UUID | str) -> Advance | str:
    """The next transaction of an operation, or `closed`."""
    async with database.transaction() as work:
        row = await lifecycle.hold(work, RUN_OPERATIONS, UUID(str(operation_id)), of=OperationRow)
        return CLOSED if row is None else await advance(work, row)


async def carry_out(database: Database, operation: dict[str, Any]) -> None:
    """All transactions of an operation that has no rate."""
    for _ in range(1_000):
        state = await step(database, operation["id"])
        if state == CLOSED or (isinstance(state, Advance) and state.over):
            return
    raise AssertionError("the operation does not end")


async def accept(engine: Engine, action: str, **body: Any) -> UUID:
    """An operation of the engine's actor."""
    async with engine.database.transaction() as work:
        return await accept_within(work, engine.actor, action, **body)


async def accept_within(work: UnitOfWork, actor: Actor, action: str, **body: Any) -> UUID:
    """An operation accepted inside the caller's transaction."""
    operation_id = new_id()
    content = CreateRunOperation.model_validate_json(to_json({"action": action, **body}))
    await commands.accept_operation(work, actor, operation_id, content)
    return operation_id


async def ended(engine: Engine, operation_id: UUID) -> RunOperationShape:
    """The operation once it has ended."""

    async def read() -> RunOperationShape:
        return await detail(engine, operation_id)

    return await found_when(read, lambda one: one.completed_at is not None, what="the end")


async def detail(engine: Engine, operation_id: UUID) -> RunOperationShape:
    async with engine.database.transaction() as work:
        return await queries.operation_detail(work, engine.actor, operation_id)


async def failed_runs(engine: Engine, automation_id: UUID, count: int) -> list[UUID]:
    """Runs of an automation that have failed before their first node, oldest first."""
    run_ids = [new_id() for _ in range(count)]
    run = automation_run.c
    async with engine.database.transaction() as work:
        like = (await engine.accept(work, automation_id)).id
        await outbox.withdraw_starts(work, [like])
        row = await work.first(select(automation_run).where(run.id == like))
        assert row is not None
        ends = {"status": "failed", "completed_at": work.now, "error": "It broke."}
        for number, run_id in enumerate(run_ids):
            moment = work.now + timedelta(microseconds=number)
            values = {**row._mapping, **ends, "id": run_id, "created_at": moment}
            await work.execute(insert(automation_run).values(values))
        await work.execute(delete(automation_run).where(run.id == like))
    return run_ids


async def has_no_waiting_starts(engine: Engine) -> bool:
    """True once the starts of all runs of the workspace are delivered."""
    place = engine.actor.workspace_id
    async with engine.database.transaction() as work:
        return not await outbox.waiting_starts(work, place, WorkflowKind.AUTOMATION_RUN, 1)


async def replays(engine: Engine) -> Counter[UUID]:
    """The number of repetitions of each run."""
    run = automation_run.c
    async with engine.database.transaction() as work:
        rows = await work.rows(
            select(run.replay_of_run_id, func.count().label("runs"))
            .where(run.workspace_id == engine.actor.workspace_id, run.source == "replay")
            .group_by(run.replay_of_run_id)
        )
    return Counter({row.replay_of_run_id: row.runs for row in rows})


async def results(engine: Engine, operation_id: UUID) -> RunResultList:
    """The first hundred results of an operation."""
    page = page_request(KEYS, 100, None, "results")
    async with engine.database.transaction() as work:
        return await queries.list_results(work, engine.actor, operation_id, page)
