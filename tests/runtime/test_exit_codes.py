"""Who is to blame for the end of a process."""

import signal

import pytest

from runtime.exit_codes import end_of, ended_by_itself


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE])
def test_signals_from_inside_are_the_process_itself(number: signal.Signals) -> None:
    assert ended_by_itself(-number)
    assert end_of(-number) == f"signal {number.value} ({number.name})"


@pytest.mark.parametrize("code", [0, -signal.SIGKILL, -signal.SIGTERM, -signal.SIGINT, -64])
def test_all_others_are_somebody_else(code: int) -> None:
    assert not ended_by_itself(code)


@pytest.mark.parametrize("code", [1, 3, None])
def test_an_exit_without_order_and_an_end_that_nobody_saw_count(code: int | None) -> None:
    assert ended_by_itself(code)
    assert end_of(3) == "exit code 3"
