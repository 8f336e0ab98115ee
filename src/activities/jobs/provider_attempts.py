"""Asking providers from jobs: between two transactions, in time, and again where that may help."""

from collections.abc import Awaitable
from datetime import timedelta
from typing import NoReturn, TypeVar

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.jobs.transactions import ask_outside
from activities.providers.adapter import ProviderProblem
from activities.providers.calls import CALL_SECONDS, in_time, refusal_for
from models.messages.jobs.rows import JobRow
from runtime.database import Transaction

ATTEMPTS = 6
"""The times a provider is asked that is away, or asks to be left alone."""
_LONGEST_PAUSE = 120.0

T = TypeVar("T")


async def ask_provider(
    work: Transaction, job: JobRow, call: Awaitable[T], seconds: float = CALL_SECONDS
) -> T:
    """The answer a provider gives in time, as `ask_outside` has it. Raises ProviderProblem."""
    return await ask_outside(work, job, in_time(call, seconds))


def try_later_or_refuse(problem: ProviderProblem) -> NoReturn:
    """Raise so that the chunk is tried again, or the refusal when that cannot help any more."""
    attempt = activity.info().attempt if activity.in_activity() else ATTEMPTS
    if not problem.retryable or attempt >= ATTEMPTS:
        raise refusal_for(problem) from problem
    pause = problem.retry_after or min(2.0**attempt, _LONGEST_PAUSE)
    raise ApplicationError(
        f"The provider is asked again: {problem.kind.value}",
        type="ProviderProblem",
        next_retry_delay=timedelta(seconds=min(pause, _LONGEST_PAUSE)),
    ) from None
