"""Calls of activities that are put off before they begin, and are made again (ADR 0071)."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TypeVar

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError

with workflow.unsafe.imports_passed_through():
    from activities.turns import POSTPONED

FIRST_PAUSE = timedelta(seconds=2)
LONGEST_PAUSE = timedelta(seconds=30)

T = TypeVar("T")


async def until_begun(call: Callable[[int], Awaitable[T]]) -> T:
    """Make a call until it is not postponed; it gets the number of its attempts so far.

    Raises the other errors of the call. Pauses grow, so that a long wait leaves a short history.
    """
    tried, pause = 0, FIRST_PAUSE
    while True:
        try:
            return await call(tried)
        except ActivityError as error:
            cause = error.cause
            if not isinstance(cause, ApplicationError) or cause.type != POSTPONED:
                raise
            tried += cause.details[0]
        await workflow.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)
