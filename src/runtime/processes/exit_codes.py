"""Causes of a process's end: its exit code, the kernel's kills for memory, its last step."""

import signal
from collections.abc import Callable
from pathlib import Path

PREDECESSOR = "WORKSPACE_PREDECESSOR_EXIT"
"""The variable with the exit code of the process that this one replaces."""
OUT_OF_MEMORY = 128 + signal.SIGKILL
"""The code told of a process that the kernel killed for its memory; containers show the same."""
_FROM_INSIDE = frozenset(
    {
        signal.SIGABRT,
        signal.SIGBUS,
        signal.SIGFPE,
        signal.SIGILL,
        signal.SIGSEGV,
        signal.SIGSYS,
        signal.SIGTRAP,
        signal.SIGXCPU,
        signal.SIGXFSZ,
    }
)
"""Signals that a process gets for what it does. All others come from outside."""


def ended_by_itself(code: int | None) -> bool:
    """True when a process died of its own work. A negative code is a signal.

    None, for an end that was not seen, counts as such.
    """
    if code is None:
        return True
    if code < 0:
        return -code in _FROM_INSIDE
    return code != 0


def end_of(code: int) -> str:
    if code == OUT_OF_MEMORY:
        return "out of memory"
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"signal {-code} ({signal.Signals(-code).name})"
    except ValueError:
        return f"signal {-code}"


COUNTERS = Path("/proc/vmstat")
_COUNTER = "oom_kill"


def memory_kills() -> int:
    """The number of such kills since the start of the machine; 0 where the kernel does not count
    them.

    The exit code does not say who killed a process. The kernel counts its kills when the memory of
    the machine, or of a group, is used up.
    """
    try:
        lines = COUNTERS.read_text().splitlines()
    except OSError:
        return 0
    counters = dict(line.split(maxsplit=1) for line in lines)
    return int(counters.get(_COUNTER, 0))


def with_memory_kill(code: int, kills: int) -> int:
    """The exit code of a process, OUT_OF_MEMORY for a kill since the kernel counted `kills`."""
    return OUT_OF_MEMORY if code == -signal.SIGKILL and memory_kills() > kills else code


def _nobody(_: str) -> None:
    pass


class _Announcer:
    announce: Callable[[str], None] = staticmethod(_nobody)


def announce_step(step: str) -> None:
    """Say that a step begins."""
    _Announcer.announce(step)


def listen_to_steps(listener: Callable[[str], None]) -> None:
    _Announcer.announce = staticmethod(listener)
