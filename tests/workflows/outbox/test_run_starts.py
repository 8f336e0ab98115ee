"""The turns of runs that a relay has claimed: what each waits for, and how long at most."""

import asyncio
import time
from collections.abc import Sequence
from uuid import UUID

import pytest

from activities.outbox import relay
from activities.outbox.relay import CROWDED_SECONDS, MOST_HELD, RunStarts
from runtime.ids import new_id
from tests.support.patience import ENOUGH


@pytest.fixture
def rests(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds for which runs rest, which pass at once."""
    rested: list[float] = []

    async def sleep(seconds: float) -> None:
        rested.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    return rested


@pytest.fixture
def room(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Set while a workspace may evaluate."""
    event = asyncio.Event()

    async def wait(_workspace_id: UUID) -> None:
        await event.wait()

    monkeypatch.setattr(relay, "room_to_evaluate", wait)
    return event


def claimed(starts: RunStarts, workspace_id: UUID, count: int) -> Sequence[UUID]:
    """Runs of a workspace that the relay has claimed, in their order."""
    run_ids = [new_id() for _ in range(count)]
    for run_id in run_ids:
        starts.started(run_id, workspace_id)
    return run_ids


async def waits(turn: "asyncio.Task[bool]") -> bool:
    """True for a turn that has not come when everything has run that could."""
    loop, passed = asyncio.get_running_loop(), asyncio.Event()
    for _ in range(5):
        passed.clear()
        loop.call_soon(passed.set)
        await passed.wait()
    return not turn.done()


async def test_alone_no_run_waits_for_another() -> None:
    starts = RunStarts()
    for run_id in claimed(starts, new_id(), 3):
        assert not await waits(asyncio.create_task(starts.turn(run_id)))


async def test_beside_another_workspace_a_run_waits_for_the_begin_of_the_one_before() -> None:
    starts, mine, other = RunStarts(), new_id(), new_id()
    first, second = claimed(starts, mine, 2)
    claimed(starts, other, 1)
    assert await starts.turn(first)
    turn = asyncio.create_task(starts.turn(second))
    assert await waits(turn)
    starts.begun(first)
    assert await turn


async def test_a_begin_that_is_not_heard_of_holds_nothing_up_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(relay, "LOST_SECONDS", 0.01)
    starts, mine = RunStarts(), new_id()
    _, second = claimed(starts, mine, 2)
    claimed(starts, new_id(), 1)
    assert await asyncio.wait_for(starts.turn(second), ENOUGH)


@pytest.mark.parametrize("seconds", [0.1, 2])
async def test_beside_other_work_of_others_a_run_rests_as_long_as_the_begin_before_it_took(
    rests: list[float], monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    # Claims are dated by the true clock, so this one begins with it.
    starts, mine, now = RunStarts(), new_id(), [time.monotonic()]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    first, second = claimed(starts, mine, 2)
    starts.started_other(new_id())
    assert await starts.turn(first)
    now[0] += seconds
    starts.started_other(new_id())
    starts.begun(first)
    assert await starts.turn(second)
    assert rests == [pytest.approx(min(seconds, 0.25))]


async def test_beside_its_own_other_work_a_run_does_not_rest(rests: list[float]) -> None:
    starts, mine = RunStarts(), new_id()
    first, second = claimed(starts, mine, 2)
    claimed(starts, new_id(), 1)
    starts.started_other(mine)
    assert await starts.turn(first)
    starts.begun(first)
    assert await starts.turn(second)
    assert rests == []


async def test_a_run_goes_back_that_would_wait_long_for_its_evaluations(
    room: asyncio.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert CROWDED_SECONDS == 5
    monkeypatch.setattr(relay, "CROWDED_SECONDS", 0.01)
    starts, mine = RunStarts(), new_id()
    first, second = claimed(starts, mine, 2)
    claimed(starts, new_id(), 1)
    assert not await asyncio.wait_for(starts.turn(first), ENOUGH)
    assert starts.held == 0
    room.set()
    # The run that went back does not begin here: nothing waits for it.
    assert await asyncio.wait_for(starts.turn(second), relay.LOST_SECONDS)


async def test_no_more_than_ten_runs_wait_for_evaluations(room: asyncio.Event) -> None:
    starts = RunStarts()
    run_ids = claimed(starts, new_id(), MOST_HELD + 2)
    turns = [asyncio.create_task(starts.turn(run_id)) for run_id in run_ids]
    refused = await asyncio.gather(*turns[MOST_HELD:])
    assert (MOST_HELD, refused) == (10, [False, False])
    assert all([await waits(turn) for turn in turns[:MOST_HELD]])
    room.set()
    assert await asyncio.gather(*turns[:MOST_HELD]) == [True] * MOST_HELD
    assert starts.held == 0


async def test_a_run_that_another_process_claimed_has_its_turn_at_once() -> None:
    assert await RunStarts().turn(new_id())
