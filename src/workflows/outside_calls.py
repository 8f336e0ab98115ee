"""Calls of activities that leave the machine, made again when they were not made yet."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TypeVar

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError

with workflow.unsafe.imports_passed_through():
    from activities.outside_turns import HELD
    from activities.slot_shares import OVERFLOWED
    from activities.turns import POSTPONED
    from models.sources.outbound_limits.rules import signal_of
    from runtime.families import Queue

FIRST_PAUSE = timedelta(seconds=2)
LONGEST_PAUSE = timedelta(seconds=30)

_NOT_MADE = frozenset({OVERFLOWED, POSTPONED, HELD})

T = TypeVar("T")


async def call_outside(call: Callable[[Queue, int], Awaitable[T]]) -> T:
    """Make a call until it begins; it gets its queue, and the number of its attempts so far.

    The call of a workspace that holds its share of `io` waits in the queue beside it (ADR 0075).
    That of work in quarantine is made again after pauses, which grow so that a long wait has a
    short history, and that of a place with a limit when it has its turn (ADR 0099). Raises the
    other errors of the call.
    """
    queue, tried, pause = Queue.IO, 0, FIRST_PAUSE
    while True:
        try:
            return await call(queue, tried)
        except ActivityError as error:
            cause = error.cause
            if not isinstance(cause, ApplicationError) or cause.type not in _NOT_MADE:
                raise
            tried += cause.details[0]
        if cause.type == OVERFLOWED:
            queue = Queue.IO_OVERFLOW
        elif cause.type == HELD:
            queue = Queue.IO
            await _turn(cause.details[1], cause.details[2])
        else:
            await workflow.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)


async def _turn(seconds: float, key: str) -> None:
    """Wait until a call may ask again, or until it is told that it may go."""
    signal = asyncio.Event()

    def tell() -> None:
        signal.set()

    name = signal_of(key)
    workflow.set_signal_handler(name, tell)
    try:
        await workflow.wait_condition(signal.is_set, timeout=seconds)
    except TimeoutError:
        pass
    finally:
        workflow.set_signal_handler(name, None)
