"""The child of `bounded_processes`: answers calls one after the other until its parent ends."""

import contextlib
import importlib
import os
import resource
import signal
import socket
import struct
import sys
import time
import traceback
from enum import IntEnum
from pathlib import Path

MEMORY = 512 * 1024 * 1024
"""Bytes of address space, of which an idle child takes about a fifth."""
_NICENESS = 10
_ATTEMPTS = 5

_HEAD = struct.Struct("!dQ")


class Answer(IntEnum):
    """The outcome of a call."""

    GIVEN = 0
    OVER_LIMIT = 1
    FAILED = 2


def send(to: socket.socket, head: float, body: bytes) -> None:
    """Send one message. Raises OSError."""
    to.sendall(_HEAD.pack(head, len(body)))
    to.sendall(body)


def receive(source: socket.socket, deadline: float) -> tuple[Answer, bytes]:
    """An answer, received by a time of the monotonic clock. Raises OSError, EOFError."""
    head, length = _HEAD.unpack(_exactly(source, _HEAD.size, deadline))
    return Answer(int(head)), _exactly(source, length, deadline)


def _exactly(source: socket.socket, length: int, deadline: float | None = None) -> bytes:
    parts = bytearray()
    while len(parts) < length:
        if deadline is not None:
            source.settimeout(max(0.001, deadline - time.monotonic()))
        part = source.recv(min(length - len(parts), 1 << 20))
        if not part:
            raise EOFError
        parts += part
    return bytes(parts)


def main() -> None:
    """Serve the socket whose number is the first argument; import the modules that follow."""
    parent = socket.socket(fileno=int(sys.argv[1]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
    _yield_processors()
    # A child is ended by signals as a matter of course, and its memory holds user data.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for module in sys.argv[2:]:
        importlib.import_module(module)
    # After the imports, whose peak must not count.
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    try:
        while True:
            seconds, length = _HEAD.unpack(_exactly(parent, _HEAD.size))
            answer, body = _called(_exactly(parent, length), seconds)
            send(parent, answer, body)
            # Memory may be fragmented or held by the library: the next call gets a fresh child.
            if answer is Answer.OVER_LIMIT:
                return
    except (EOFError, OSError):
        return


def _yield_processors() -> None:
    """Leave half of the processors to other processes, and yield to them on the other half.

    All children of a machine take the same half. A low priority alone does not keep a processor
    free: a process that wakes up there waits for the end of a time slice, and its caches are cold.
    """
    os.nice(_NICENESS)
    _yield_as_session()
    if sys.platform == "linux":
        allowed = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, allowed[len(allowed) // 2 :])


def _yield_as_session() -> None:
    """Give the priority to a session of its own, where Linux shares processors among sessions.

    It then counts the priority of a process only within its session (sched(7), autogroup).
    """
    group = Path("/proc/self/autogroup")
    if not group.exists():
        return
    os.setsid()
    for attempt in range(_ATTEMPTS):
        # Without privileges one write is allowed in a tenth of a second of the whole machine.
        time.sleep(attempt / 10)
        with contextlib.suppress(BlockingIOError):
            group.write_text(str(_NICENESS), encoding="ascii")
            break


def _called(request: bytes, seconds: float) -> tuple[Answer, bytes]:
    # Its signal is not handled: it ends the process even while a library holds the GIL.
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        name, _, argument = request.partition(b"\n")
        module, _, function = name.decode().partition(":")
        return Answer.GIVEN, getattr(importlib.import_module(module), function)(argument)
    except (MemoryError, RecursionError):
        return Answer.OVER_LIMIT, b""
    except Exception:  # noqa: BLE001  # the parent raises it
        return Answer.FAILED, traceback.format_exc().encode()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
