"""A workflow task that took too long, on a machine that stalled for a moment.

The SDK stops such a task by raising an error at the point its thread has reached. Where that point
is a callback of a weak reference or a finalizer, Python can only tell of the error, and pytest
would blame the test that happens to run. The task itself fails and is tried again.
"""

import sys
from collections.abc import Callable

from temporalio.worker._workflow import _InterruptDeadlockError


def past_interruptions(
    hook: Callable[["sys.UnraisableHookArgs"], object],
) -> Callable[["sys.UnraisableHookArgs"], None]:
    """`hook`, which is not told of tasks that the SDK has interrupted."""

    def told(unraisable: "sys.UnraisableHookArgs") -> None:
        if not issubclass(unraisable.exc_type, _InterruptDeadlockError):
            hook(unraisable)

    return told
