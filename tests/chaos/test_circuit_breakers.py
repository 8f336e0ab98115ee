"""A worker dies while it moves a circuit breaker on: each move is made once, with what follows."""

import signal
from pathlib import Path
from uuid import UUID

import pytest
from sqlalchemy import Uuid, any_, func, literal, select, update

from models.automation.automation_runs import execution
from models.automation.automation_runs.rules import RunStatus
from models.automation.automation_runs.tables import automation_run
from models.automation.circuit_breakers import (
    SetCircuitBreaker,
    advance_breaker,
    circuit_breaker,
    count_failure,
    set_breaker,
)
from models.core.base import Id
from models.core.pauses.intents import resting_intent
from models.messages.deliveries.rules import CircuitState
from models.messages.workspace_events.log import workspace_event
from runtime.processes.fault_injection import FaultPoint
from runtime.temporal import outbox
from tests.chaos.processes import Workers
from tests.support.engine import Engine, graph, node
from tests.support.patience import eventually

pytestmark = [pytest.mark.crash, pytest.mark.takes(seconds=60), pytest.mark.long]

RUNS = 20


async def opened(idle: Engine) -> Id:
    """An automation whose breaker is open, and which would succeed now."""
    made = await idle.publish(graph(node("a", "transform", output={"ok": True})))
    place = idle.actor.workspace_id, made.id
    async with idle.database.transaction() as work:
        await set_breaker(work, *place, SetCircuitBreaker(failures=1, pauseSeconds=3_600))
        await count_failure(work, *place)
    return made.id


async def due(idle: Engine, automation_id: Id) -> None:
    """Have the next move of a breaker come now."""
    this = circuit_breaker.c.automation_id == automation_id
    async with idle.database.transaction() as work:
        await work.execute(update(circuit_breaker).where(this).values(due_at=func.to_timestamp(0)))


async def tried(idle: Engine, automation_id: Id) -> Id:
    """Let a run try, and have it succeed; the id of the run."""
    await due(idle, automation_id)
    async with idle.database.transaction() as work:
        await advance_breaker(work)
    this = circuit_breaker.c.automation_id == automation_id
    async with idle.database.transaction() as work:
        run_id: Id = await work.scalar(select(circuit_breaker.c.trial_run_id).where(this))
        await outbox.withdraw_starts(work, [run_id])
        await execution.begin(work, run_id)
        await execution.finish(work, run_id, status=RunStatus.SUCCEEDED, output=None)
    await due(idle, automation_id)
    return run_id


async def state_of(idle: Engine, automation_id: Id) -> tuple[str, int]:
    """The state of a breaker, and the number of queued runs."""
    this = circuit_breaker.c.automation_id == automation_id
    async with idle.database.transaction() as work:
        state = str(await work.scalar(select(circuit_breaker.c.state).where(this)))
        mine = literal(automation_id, Uuid) == any_(resting_intent.c.subject_ids)
        return state, int(await work.scalar(select(func.count()).where(mine)))


@pytest.mark.parametrize("state", [CircuitState.OPEN, CircuitState.HALF_OPEN])
async def test_each_move_is_made_once_though_the_worker_dies(
    idle: Engine, workers: Workers, tmp_path: Path, state: CircuitState
) -> None:
    automation_id = await opened(idle)
    runs = [await idle.start(automation_id) for _ in range(RUNS)]
    if state is CircuitState.HALF_OPEN:
        assert await tried(idle, automation_id) == runs[0]
    else:
        await due(idle, automation_id)
    before = await state_of(idle, automation_id)
    assert before == (state, RUNS - (state is CircuitState.HALF_OPEN))
    point = FaultPoint.AFTER_BREAKER_BEFORE_COMMIT
    doomed = await workers.start(WORKSPACE_FAULT=point, WORKSPACE_FAULT_MARKS=str(tmp_path))
    assert await doomed.ended() == -signal.SIGKILL
    assert (tmp_path / point).read_text() == str(automation_id)
    assert await state_of(idle, automation_id) == before, "nothing of it was committed"
    survivor = await workers.start()
    await survivor.ready()
    run = automation_run.c

    async def all_succeeded() -> bool:
        async with idle.database.transaction() as work:
            these = select(func.count()).where(run.id.in_(runs), run.status == "succeeded")
            return bool(await work.scalar(these) == RUNS)

    await eventually(all_succeeded, what="the ends of all runs")
    assert await state_of(idle, automation_id) == (CircuitState.CLOSED, 0)
    async with idle.database.transaction() as work:
        every = select(func.count()).where(run.automation_id == automation_id)
        assert await work.scalar(every) == RUNS
    assert await told(idle, automation_id) == ["opened", "closed"]


async def told(idle: Engine, automation_id: UUID) -> list[str]:
    """The moves of a breaker that the log tells of."""
    event = workspace_event.c
    async with idle.database.transaction() as work:
        rows = await work.rows(
            select(event.type)
            .where(
                event.type.like("automation.breaker%"),
                event.data["automationId"].astext == str(automation_id),
            )
            .order_by(event.seq)
        )
    return [row.type.rpartition("_")[2] for row in rows]
