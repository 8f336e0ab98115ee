"""The schedules of sweeps follow the code that a worker brings along."""

from dataclasses import replace
from datetime import timedelta

from cli.work_handlers.registry import MAINTENANCE_SCHEDULES, ensure_schedule
from tests.support.engine import Engine
from tests.support.patience import eventually


async def test_a_sweep_takes_on_a_new_interval_and_stays_paused(engine: Engine) -> None:
    sweep = replace(
        MAINTENANCE_SCHEDULES[0], schedule_id="sweep-of-a-test", interval=timedelta(hours=5)
    )
    await ensure_schedule(engine.client, sweep)
    handle = engine.client.get_schedule_handle(sweep.schedule_id)
    await handle.pause(note="Looking into it.")

    await ensure_schedule(engine.client, replace(sweep, interval=timedelta(hours=7)))

    schedule = (await handle.describe()).schedule
    assert [each.every for each in schedule.spec.intervals] == [timedelta(hours=7)]
    assert schedule.policy.catchup_window == timedelta(hours=7)
    assert (schedule.state.paused, schedule.state.note) == (True, "Looking into it.")
    await handle.delete()


async def test_a_sweep_is_listed_only_to_those_who_ask_for_it(engine: Engine) -> None:
    sweep = replace(
        MAINTENANCE_SCHEDULES[0], schedule_id="sweep-apart", interval=timedelta(hours=5)
    )
    await ensure_schedule(engine.client, sweep)
    handle = engine.client.get_schedule_handle(sweep.schedule_id)
    await handle.trigger()
    mine = "WorkflowId STARTS_WITH 'sweep-apart'"

    async def is_listed() -> bool:
        query = f"{mine} AND TemporalNamespaceDivision = 'maintenance'"
        return (await engine.client.count_workflows(query)).count > 0

    await eventually(is_listed, what="the sweep")
    assert (await engine.client.count_workflows(mine)).count == 0
    await handle.delete()
