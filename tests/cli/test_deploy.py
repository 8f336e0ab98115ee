"""Refusals of `workspace deploy` about workers that are gone, which Temporal forgets late."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import update
from typing_extensions import override

from cli.deploy.command import alive_workers
from cli.deploy.deployment import Build, BuildOverview, Deployment, Routing, State, faults
from cli.deploy.versioning import RefusedError, promote, ramp, roll_back
from models.workspace.system import beat, leave, worker_process
from runtime.clock import utc_now
from runtime.database import Database
from runtime.ids import new_id
from runtime.temporal.workflow_kinds import Queue


class Abandoned(Deployment):
    """A deployment with a current build, and one without workers on the queue of calls."""

    def __init__(self) -> None:
        self.name = "workspace"

    @override
    async def routing(self) -> Routing:
        left = Build("left", State.DRAINED, 0, utc_now())
        return Routing([left, Build("here", State.CURRENT, 100, None)], b"")

    @override
    async def workers(self, builds: Sequence[str]) -> Mapping[str, Mapping[Queue, frozenset[str]]]:
        there = {queue: frozenset({"one"}) for queue in Queue}
        return {build: {**there, Queue.IO: frozenset()} for build in builds}

    @override
    async def promote(self, build_id: str, token: bytes = b"") -> None:
        raise AssertionError("it was promoted")

    @override
    async def ramp(self, build_id: str, percent: float, token: bytes) -> None:
        raise AssertionError("it was given work")


@pytest.mark.parametrize(
    "change",
    [
        lambda deployment: promote(deployment, "left"),
        lambda deployment: ramp(deployment, "left", 5),
        roll_back,
    ],
    ids=["promote", "ramp", "roll back"],
)
async def test_a_build_without_workers_is_given_no_work(
    change: Callable[[Deployment], Awaitable[str]],
) -> None:
    with pytest.raises(RefusedError) as refused:
        await change(Abandoned())
    assert f"Build left has no workers for: {Queue.IO}." in str(refused.value)


@pytest.mark.parametrize(
    ("percent", "pinned", "words"),
    [
        (5, 0, "b1 receives new work but has no workers for: io."),
        (0, 3, "workspace deploy drain b1 --move"),
        (0, 0, ""),
    ],
)
def test_the_overview_tells_of_work_without_workers(
    percent: float, pinned: int, words: str
) -> None:
    row = BuildOverview("b1", State.DRAINING, percent, pinned, 0, [], [Queue.IO])
    assert words in " ".join(faults(row))
    assert bool(faults(row)) == bool(words)


async def test_workers_that_died_are_not_counted(
    database: Database, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = new_id(), new_id()
    async with database.transaction() as work:
        for pid, worker_id in enumerate(ids, start=1):
            await beat(work, worker_id, "elsewhere.example", pid, [*Queue])
        died = utc_now() - timedelta(minutes=1)
        await work.execute(
            update(worker_process).where(worker_process.c.id == ids[0]).values(seen_at=died)
        )
    try:
        monkeypatch.setenv("DATABASE_URL", database_url)
        alive = await alive_workers(tmp_path)
        assert alive is not None
        assert {"1@elsewhere.example", "2@elsewhere.example"} & {*alive} == {"2@elsewhere.example"}
        monkeypatch.setenv("DATABASE_URL", "postgresql://127.0.0.1:1/none")
        assert await alive_workers(tmp_path) is None
        monkeypatch.delenv("DATABASE_URL")
        assert await alive_workers(tmp_path) is None
    finally:
        async with database.transaction() as work:
            for worker_id in ids:
                await leave(work, worker_id)
