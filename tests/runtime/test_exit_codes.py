"""Who is to blame for the end of a process."""

import signal
from pathlib import Path

import pytest

import runtime.processes.exit_codes
from runtime.processes.exit_codes import (
    OUT_OF_MEMORY,
    end_of,
    ended_by_itself,
    memory_kills,
    with_memory_kill,
)


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE])
def test_signals_from_inside_are_the_process_itself(number: signal.Signals) -> None:
    assert ended_by_itself(-number)
    assert end_of(-number) == f"signal {number.value} ({number.name})"


@pytest.mark.parametrize("code", [0, -signal.SIGKILL, -signal.SIGTERM, -signal.SIGINT, -64])
def test_other_exit_codes_come_from_outside(code: int) -> None:
    assert not ended_by_itself(code)


@pytest.mark.parametrize("code", [1, 3, None])
def test_a_disorderly_exit_and_an_unseen_end_count(code: int | None) -> None:
    assert ended_by_itself(code)
    assert end_of(3) == "exit code 3"


def test_a_kill_by_the_kernel_for_want_of_memory_is_the_process_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counters = tmp_path / "vmstat"
    monkeypatch.setattr(runtime.processes.exit_codes, "COUNTERS", counters)
    assert memory_kills() == 0
    counters.write_text("pgfault 12\noom_kill 3\n")
    before = memory_kills()
    assert with_memory_kill(-signal.SIGKILL, before) == -signal.SIGKILL, "somebody's"
    counters.write_text("pgfault 12\noom_kill 4\n")
    assert with_memory_kill(-signal.SIGKILL, before) == OUT_OF_MEMORY
    assert with_memory_kill(-signal.SIGTERM, before) == -signal.SIGTERM
    assert ended_by_itself(OUT_OF_MEMORY)
    assert end_of(OUT_OF_MEMORY) == "out of memory"
