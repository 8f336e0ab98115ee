"""Calls of activities that leave the machine, made again when they did not begin (ADR 0075)."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TypeVar

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError

with workflow.unsafe.imports_passed_through():
    from activities.slot_shares import OVERFLOWED
    from activities.turns import POSTPONED
    from runtime.families import Queue

FIRST_PAUSE = timedelta(seconds=2)
LONGEST_PAUSE = timedelta(seconds=30)

T = TypeVar("T")


async def call_outside(call: Callable[[Queue, int], Awaitable[T]]) -> T:
    """Make a call until it begins; it gets its queue, and the number of its attempts so far.

    The call of a workspace that holds its share of `io` waits in the queue beside it. That of work
    in quarantine is made again after pauses, which grow so that a long wait has a short history.
    Raises the other errors of the call.
    """
    queue, tried, pause = Queue.IO, 0, FIRST_PAUSE
    while True:
        try:
            return await call(queue, tried)
        except ActivityError as error:
            cause = error.cause
            if not isinstance(cause, ApplicationError) or cause.type not in {OVERFLOWED, POSTPONED}:
                raise
            tried += cause.details[0]
        if cause.type == OVERFLOWED:
            queue = Queue.IO_OVERFLOW
        else:
            await workflow.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
