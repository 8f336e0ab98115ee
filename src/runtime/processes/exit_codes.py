"""Causes of a process's end: its exit code, the kernel's kills for memory, its last step."""

import signal
from collections.abc import Callable
from pathlib import Path

PREDECESSOR = "WORKSPACE_PREDECESSOR_EXIT"
"""The variable in which a process is told the exit code of the one it takes the place of."""
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
    """Tell whether a process died of what it did. A negative code is a signal.

    None, for an end that was not seen, counts as that.
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
    """The number of such kills since the start of the machine; 0 where nobody counts them.

    The exit code of a killed process is that of a kill by anybody. So the count of the kernel
    tells, which kills when the memory of the machine, or of a group, is used up.
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
