"""A batch of a sweep leaves half of the time to those who wait for an answer."""

import asyncio
import time

import pytest
from temporalio.testing import ActivityEnvironment

import activities.maintenance.sweeps
from activities.maintenance.sweeps import Expired, RetentionActivities
from runtime.object_store import ObjectStore
from tests.support.engine import PERIODS
from tests.support.spaces import Space

WORK = 0.2


async def test_a_batch_rests_as_long_as_it_works(
    space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def purge_jobs(*_: object) -> int:
        await asyncio.sleep(WORK)
        return 7

    monkeypatch.setattr(activities.maintenance.sweeps, "purge_jobs", purge_jobs)
    sweep = RetentionActivities(space.database, ObjectStore("memory://"), PERIODS)
    started = time.monotonic()
    assert await ActivityEnvironment().run(sweep.purge, Expired.JOBS) == 7
    assert time.monotonic() - started >= 2 * WORK
