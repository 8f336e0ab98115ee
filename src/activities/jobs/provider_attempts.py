"""Asking providers from jobs nobody waits for: what may pass is asked again later."""

from datetime import timedelta
from typing import NoReturn

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.providers.adapter import RETRIED, ProviderProblem
from activities.providers.calls import refusal_for

ATTEMPTS = 6
"""The times a provider is asked that is away, or asks to be left alone."""
_LONGEST_PAUSE = 120.0


def try_later_or_refuse(problem: ProviderProblem) -> NoReturn:
    """Raise so that the chunk is tried again, or the refusal when that cannot help any more."""
    attempt = activity.info().attempt if activity.in_activity() else ATTEMPTS
    if problem.kind not in RETRIED or attempt >= ATTEMPTS:
        raise refusal_for(problem) from problem
    pause = problem.retry_after or min(2.0**attempt, _LONGEST_PAUSE)
    raise ApplicationError(
        f"The provider is asked again: {problem.kind.value}",
        type="ProviderProblem",
        next_retry_delay=timedelta(seconds=min(pause, _LONGEST_PAUSE)),
    ) from None
