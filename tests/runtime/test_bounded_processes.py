"""Child processes that are bounded, killed and replaced."""

import asyncio
import os
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import runtime.processes.bounded_processes
from runtime.processes.bounded_processes import (
    BoundedProcesses,
    CrowdedError,
    OverLimitError,
    WouldBlockError,
    _Limits,
    check_turn,
    evaluate_bounded,
    evaluating_for,
    refuse_beyond,
)
from tests.support.patience import ENOUGH

AUTOGROUP = Path("/proc/self/autogroup")


def pid(_given: bytes) -> bytes:
    return str(os.getpid()).encode()


def spin(_given: bytes) -> bytes:
    while True:
        pass


def fill(_given: bytes) -> bytes:
    return b"x" * (1 << 31)


def die(_given: bytes) -> bytes:
    os.kill(os.getpid(), signal.SIGSEGV)
    return b""


def fail(_given: bytes) -> bytes:
    raise ValueError("no")


def niceness(_given: bytes) -> bytes:
    return str(os.nice(0)).encode()


def session(_given: bytes) -> bytes:
    return f"{os.getsid(0)} {AUTOGROUP.read_text(encoding='ascii')}".encode()


def processors(_given: bytes) -> bytes:
    return b",".join(b"%d" % one for one in os.sched_getaffinity(0))


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime.processes.bounded_processes, "SECONDS", 0.3)


@pytest.fixture(scope="module")
def processes() -> BoundedProcesses:
    return BoundedProcesses(["tests.runtime.test_bounded_processes"], count=2)


@pytest.mark.long
@pytest.mark.parametrize("function", [spin, fill, die])
def test_a_call_over_its_bounds_fails_and_the_next_one_is_answered(
    processes: BoundedProcesses, function: Callable[[bytes], bytes]
) -> None:
    with pytest.raises(OverLimitError):
        processes.call(function, b"")
    assert int(processes.call(pid, b"")) != os.getpid()


@pytest.mark.long
def test_a_child_answers_many_calls_and_yields_to_everybody(processes: BoundedProcesses) -> None:
    assert processes.call(pid, b"") == processes.call(pid, b"")
    assert int(processes.call(niceness, b"")) == min(os.nice(0) + 10, 19)


@pytest.mark.skipif(not AUTOGROUP.exists(), reason="sessions do not share processors here")
def test_a_child_yields_as_a_session(processes: BoundedProcesses) -> None:
    own, group = processes.call(session, b"").decode().split(" ", 1)
    assert int(own) != os.getsid(0)
    assert group.split() == [group.split()[0], "nice", "10"]


def test_children_leave_half_of_the_processors_to_everybody(processes: BoundedProcesses) -> None:
    allowed = sorted(os.sched_getaffinity(0))
    used = {int(one) for one in processes.call(processors, b"").split(b",")}
    assert used == set(allowed[len(allowed) // 2 :])


def test_an_error_of_the_function_is_raised(processes: BoundedProcesses) -> None:
    with pytest.raises(RuntimeError, match="ValueError: no"):
        processes.call(fail, b"")


@pytest.mark.long
def test_a_child_that_was_killed_is_replaced(processes: BoundedProcesses) -> None:
    gone = int(processes.call(pid, b""))
    os.kill(gone, signal.SIGKILL)
    while True:
        try:
            assert int(processes.call(pid, b"")) != gone
            break
        except OverLimitError:
            continue


def test_children_are_shared_by_threads(processes: BoundedProcesses) -> None:
    with ThreadPoolExecutor(8) as threads:
        found = set(threads.map(lambda _: processes.call(pid, b""), range(50)))
    assert len(found) <= 2


async def test_work_that_stops_the_loop_continues_in_a_thread() -> None:
    looks = beats = 0

    def work() -> int:
        nonlocal looks
        looks = 0
        until = time.monotonic() + ENOUGH
        while beats < 3 and time.monotonic() < until:
            looks += 1
            check_turn()
        return looks

    async def beat() -> None:
        nonlocal beats
        while True:
            await asyncio.sleep(0.001)
            beats += 1

    beating = asyncio.create_task(beat())
    assert await evaluate_bounded(work) == looks
    beating.cancel()
    assert beats >= 3


async def test_a_call_in_a_loop_is_refused(processes: BoundedProcesses) -> None:
    with pytest.raises(WouldBlockError):
        processes.call(pid, b"")
    assert int(await evaluate_bounded(lambda: processes.call(pid, b"")))


async def test_work_of_one_key_leaves_room_for_others_and_does_not_wait(
    processes: BoundedProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtime.processes.bounded_processes, "QUEUE_SECONDS", 0.05)
    monkeypatch.setattr(_Limits, "per_key", None)
    monkeypatch.setattr(_Limits, "total", None)
    refuse_beyond(1)

    async def call(function: Callable[[bytes], bytes], whom: str | None) -> bytes:
        evaluating_for.set(whom)
        return await evaluate_bounded(lambda: processes.call(function, b""))

    endless = asyncio.create_task(call(spin, "a"))
    await asyncio.sleep(0)
    with pytest.raises(CrowdedError):
        await asyncio.create_task(call(pid, "a"))
    for whom in ("b", None):
        assert await asyncio.create_task(call(pid, whom))
    with pytest.raises(OverLimitError):
        await endless
    assert await asyncio.create_task(call(pid, "a"))
