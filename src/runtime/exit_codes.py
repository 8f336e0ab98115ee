"""The cause of a process's end, by its exit code: from within, or from outside. Pure."""

import signal

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
