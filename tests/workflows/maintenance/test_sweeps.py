"""The schedules of sweeps follow the code that a worker brings along."""

from dataclasses import replace
from datetime import timedelta

from cli.maintenance_schedules import MAINTENANCE_SCHEDULES, ensure_schedule
from tests.support.engine import Engine


async def test_a_sweep_takes_on_a_new_interval_and_stays_paused(engine: Engine) -> None:
    sweep = replace(
        MAINTENANCE_SCHEDULES[0], schedule_id="sweep-of-a-test", every=timedelta(hours=5)
    )
    await ensure_schedule(engine.client, sweep)
    handle = engine.client.get_schedule_handle(sweep.schedule_id)
    await handle.pause(note="Looking into it.")

    await ensure_schedule(engine.client, replace(sweep, every=timedelta(hours=7)))

    schedule = (await handle.describe()).schedule
    assert [each.every for each in schedule.spec.intervals] == [timedelta(hours=7)]
    assert schedule.policy.catchup_window == timedelta(hours=7)
    assert (schedule.state.paused, schedule.state.note) == (True, "Looking into it.")
    await handle.delete()
