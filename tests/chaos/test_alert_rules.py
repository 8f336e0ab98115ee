"""A worker dies in the middle of evaluating alert rules: each change is notified exactly once."""

import signal
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import select, update

from models.automation.alert_rules.queries import alert_rule
from runtime.clock import utc_now
from runtime.processes.fault_injection import FaultPoint
from tests.chaos.processes import Workers
from tests.chaos.test_incidents import sweep
from tests.support.ageing import make_automation
from tests.support.alerts import alert_events, alerts, firings, make_rule, state_of
from tests.support.engine import KEYS, Engine
from tests.support.incidents import failed_run
from tests.support.patience import eventually
from tests.support.spaces import make_space

pytestmark = [pytest.mark.crash, pytest.mark.takes(seconds=60), pytest.mark.long]

RULES = 5


async def test_each_rule_fires_once_though_the_worker_dies(
    idle: Engine, workers: Workers, tmp_path: Path
) -> None:
    space = await make_space(idle.database, KEYS)
    await failed_run(space, await make_automation(space))
    condition = {"kind": "failures", "runs": 1, "minutes": 60}
    rules = [await make_rule(space, condition, label=f"Rule {n}") for n in range(RULES)]
    async with idle.database.transaction() as work:
        mine = alert_rule.c.workspace_id == space.id
        due = utc_now() - timedelta(minutes=1)
        await work.execute(update(alert_rule).where(mine).values(due_at=due))
    point = FaultPoint.AFTER_ALERTS_BEFORE_COMMIT
    doomed = await workers.start(WORKSPACE_FAULT=point, WORKSPACE_FAULT_MARKS=str(tmp_path))
    # It may die before it is seen to be ready, within a sweep of the schedule.
    await sweep(idle)
    assert await doomed.ended() == -signal.SIGKILL
    async with idle.database.reading() as reading:
        checked = select(alert_rule.c.id).where(mine, alert_rule.c.checked_at.is_not(None))
        assert not await reading.rows(checked), "nothing of it was committed"
    assert await alerts(space) == []
    survivor = await workers.start()
    await survivor.ready()
    await (await sweep(idle)).result()

    async def all_fire() -> bool:
        states = [(await state_of(space, rule.id)).state for rule in rules]
        return states == ["firing"] * RULES

    await eventually(all_fire, what="the rules")
    await (await sweep(idle)).result()
    assert sorted(await alerts(space)) == sorted(f"Rule {n}" for n in range(RULES))
    assert len(await firings(space)) == len(await alert_events(space)) == RULES
