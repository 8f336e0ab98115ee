"""Calls of functions in child processes that are bounded in processor time and address space.

They are for work whose cost an attacker chooses. A child that goes over a bound ends, the call
fails, and another child takes its place at the next call. Children are started when they are first
needed, yield the processor to everyone else, and end when their parent does.

The caller's thread waits. In a thread that runs an event loop a call raises `WouldBlockError`;
`evaluate_bounded` repeats what raised it in a thread of its own.
"""

import asyncio
import atexit
import contextvars
import math
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from contextvars import ContextVar
from typing import ClassVar, TypeVar

from runtime.errors import UnavailableError
from runtime.keyed_limiter import KeyedLimiter
from runtime.observability.process_output import child_output
from runtime.processes.bounded_child import Answer, receive, send

SECONDS = 2.0
"""Processor time of one call, where nothing else is said."""
PATIENCE_SECONDS = 30.0
"""Until a child that does not answer is killed, however little of the processor it got."""
LOOP_SECONDS = 0.02
"""Seconds for which an evaluation may stop a loop before it continues in a thread."""
LOOP_STEPS = 1_000
"""Steps of one piece of work, such as the characters of a text to compile, that may stop a loop."""
QUEUE_SECONDS = 1.0
"""Seconds that an evaluation waits before it is refused. A quick one has made room by then."""
_THREADS = 8

Result = TypeVar("Result")


class OverLimitError(Exception):
    """A call took too much processor time or memory, or ended its process."""

    retryable = False


class CrowdedError(UnavailableError):
    """Too much long work is in progress; nothing was done."""

    def __init__(self) -> None:
        super().__init__("Too many long evaluations are running. Try again.")


class WouldBlockError(Exception):
    """A call was made where waiting would stop an event loop."""

    retryable = False


class BoundedProcesses:
    """At most `count` children, which import `modules` when they start.

    A call gets `seconds` of processor time, by default SECONDS.
    """

    def __init__(
        self, modules: Sequence[str], count: int = 2, seconds: float | None = None
    ) -> None:
        self._modules = tuple(modules)
        self._seconds = seconds
        self._free = threading.Semaphore(count)
        self._lock = threading.Lock()
        self._idle: list[_Child] = []
        self._owner = os.getpid()
        atexit.register(self.close)

    def call(self, function: Callable[[bytes], bytes], argument: bytes) -> bytes:
        """The result of a function of a module, called in a child.

        Raises OverLimitError, and WouldBlockError in a thread that runs an event loop.
        """
        # The call waits for a process, which would stop every other task of the loop.
        if _runs_loop():
            raise WouldBlockError
        name = f"{function.__module__}:{function.__qualname__}\n"
        request = name.encode() + argument
        with self._free:
            child = self._take()
            try:
                answer = child.ask(request, SECONDS if self._seconds is None else self._seconds)
            except BaseException:
                child.end()
                raise
            with self._lock:
                self._idle.append(child)
            return answer

    def _take(self) -> "_Child":
        with self._lock:
            if self._owner != os.getpid():
                # After a fork the children belong to the parent.
                self._owner, self._idle = os.getpid(), []
            while self._idle:
                child = self._idle.pop()
                if child.is_alive():
                    return child
                child.end()
        return _Child(self._modules)

    def close(self) -> None:
        """End the children that are idle."""
        with self._lock:
            for child in self._idle:
                child.end()
            self._idle.clear()


class _Child:
    def __init__(self, modules: Sequence[str]) -> None:
        self._socket, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, "-c", _COMMAND, str(theirs.fileno()), *modules]
            # Nothing else of the environment, which holds the secrets of the platform.
            environment = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
            self._process = subprocess.Popen(  # noqa: S603  # our own program and arguments
                command,
                env=environment,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=child_output(),
                stderr=subprocess.STDOUT,
            )

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, request: bytes, seconds: float) -> bytes:
        """Raises OverLimitError when the child ended, ran out of memory or does not answer."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        try:
            self._socket.settimeout(PATIENCE_SECONDS)
            send(self._socket, seconds, request)
            answer, body = receive(self._socket, deadline)
        except (OSError, EOFError):
            if self._failed():
                raise RuntimeError("A child process did not start.") from None
            raise OverLimitError from None
        if answer is Answer.OVER_LIMIT:
            raise OverLimitError
        if answer is Answer.FAILED:
            raise RuntimeError(body.decode())
        return body

    def _failed(self) -> bool:
        """True when it ended by itself. A signal ends one that is over its limit."""
        try:
            return self._process.wait(timeout=1) > 0
        except subprocess.TimeoutExpired:
            return False

    def end(self) -> None:
        self._socket.close()
        self._process.kill()
        self._process.wait()


_COMMAND = "from runtime.processes.bounded_child import main; main()"

_threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="bounded-call")


def _runs_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


_turn = threading.local()


class _Limits:
    """Limits on concurrent evaluations in threads; None sets no limit."""

    per_key: ClassVar[KeyedLimiter | None] = None
    total: ClassVar[KeyedLimiter | None] = None


evaluating_for: ContextVar[Hashable] = ContextVar("evaluating_for", default=None)
"""The key whose share an evaluation takes. Without one it waits as long as it takes."""


def refuse_beyond(per_key: int, total: int | None = None, waiting: int | None = None) -> None:
    """Let `evaluate_bounded` refuse evaluations that would wait for long for others of this
    process.

    For callers that hold a shared resource while they wait, such as a connection. At most `waiting`
    evaluations of a key wait; more are refused at once.
    """
    _Limits.per_key = KeyedLimiter(per_key, QUEUE_SECONDS, waiting)
    _Limits.total = None if total is None else KeyedLimiter(total, QUEUE_SECONDS)


async def room_to_evaluate(key: Hashable) -> None:
    """Wait until one more evaluation of a key would not be refused at once."""
    if _Limits.per_key is not None:
        await _Limits.per_key.room(key)


def check_turn(steps: int = 0) -> None:
    """Raises WouldBlockError when an evaluation has stopped the loop for too long.

    So do more `steps` than a loop may wait for, which the caller is about to take at once.
    """
    ends = getattr(_turn, "ends", math.inf)
    if time.monotonic() > ends or (steps > LOOP_STEPS and ends < math.inf):
        raise WouldBlockError


async def evaluate_bounded(work: Callable[[], Result]) -> Result:
    """The result of `work`, which has no effects.

    Work that would block the loop is begun once more, in a thread. Raises CrowdedError where
    `refuse_beyond` says so.
    """
    _turn.ends = time.monotonic() + LOOP_SECONDS
    try:
        return work()
    except WouldBlockError:
        _turn.ends = math.inf
        return await _in_thread(work)
    finally:
        _turn.ends = math.inf


async def _in_thread(work: Callable[[], Result]) -> Result:
    # The thread of a cancelled caller continues, and counts.
    return await asyncio.shield(asyncio.create_task(_in_turn(work)))


async def _in_turn(work: Callable[[], Result]) -> Result:
    key, is_under_way = evaluating_for.get(), False
    try:
        async with AsyncExitStack() as slots:
            if key is not None and _Limits.per_key is not None:
                await slots.enter_async_context(_Limits.per_key.slot(key))
            if key is not None and _Limits.total is not None:
                await slots.enter_async_context(_Limits.total.slot(None))
            is_under_way = True
            # A pool does not pass context variables on to its threads.
            context = contextvars.copy_context()
            return await asyncio.wrap_future(_threads.submit(lambda: context.run(work)))
    except TimeoutError:
        # A time-out of the work itself, and not of the wait for its turn.
        if is_under_way:
            raise
        raise CrowdedError from None
