"""The processes that the kernel kills when the memory of the machine, or of a group, is used up.

Their exit code is that of a kill by anybody. The kernel counts them.
"""

import signal
from pathlib import Path

from runtime.exit_codes import OUT_OF_MEMORY

COUNTERS = Path("/proc/vmstat")
_COUNTER = "oom_kill"


def memory_kills() -> int:
    """The number of such kills since the start of the machine; 0 where nobody counts them."""
    try:
        lines = COUNTERS.read_text().splitlines()
    except OSError:
        return 0
    counters = dict(line.split(maxsplit=1) for line in lines)
    return int(counters.get(_COUNTER, 0))


def with_memory_kill(code: int, kills: int) -> int:
    """The exit code of a process, OUT_OF_MEMORY for a kill since the kernel counted `kills`."""
    return OUT_OF_MEMORY if code == -signal.SIGKILL and memory_kills() > kills else code
