"""Timeouts and retry policies of every activity call, named once."""

from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy

from models.automation.automations.rules.planner.plan import PlanRetry

DATABASE_TIMEOUT = timedelta(seconds=30)
"""Start to close of a local activity: one database transaction, or a turn of them."""

DATABASE_RETRY = RetryPolicy(
    initial_interval=timedelta(milliseconds=100),
    backoff_coefficient=2,
    maximum_interval=timedelta(seconds=5),
    # Without a bound on purpose: the database being away must not fail an accepted run. What a
    # retry cannot mend is raised as non-retryable.
    maximum_attempts=0,
)

DATABASE_PATIENCE = timedelta(seconds=1)
"""A longer pause between two attempts is a timer of the workflow, which holds no slot of its worker
meanwhile."""

JOB_TIMEOUT = timedelta(minutes=5)
"""Start to close of one chunk of a job; statements end long before."""

JOB_RETRY = RetryPolicy(
    initial_interval=timedelta(milliseconds=200),
    backoff_coefficient=2,
    maximum_interval=timedelta(seconds=10),
    # Some two minutes: longer than a restart of the database. After them the job is reverted.
    maximum_attempts=20,
)

FETCH_TIMEOUT = timedelta(hours=2)
"""Start to close of fetching all pages of a source."""
FETCH_RETRY = RetryPolicy(
    initial_interval=timedelta(seconds=1),
    backoff_coefficient=3,
    maximum_interval=timedelta(seconds=30),
    maximum_attempts=4,
)
"""For a source that does not answer; a retry continues after the last page."""
STAGE_TIMEOUT = timedelta(hours=1)
"""Start to close of reading and staging a million rows."""
APPLY_TIMEOUT = timedelta(hours=1)
"""Start to close of the one transaction that applies staged rows."""

BUNDLE_TIMEOUT = timedelta(hours=6)
"""Start to close of reading a bundle, and of one stage of a workspace in it."""
RESTART_PAUSE = timedelta(seconds=1)
"""Until the child of an execution that was lost is looked for again."""

LONG_HISTORY = 4_000
"""Events from which on an execution continues as new; Temporal suggests it a little later."""

HEARTBEAT_TIMEOUT = timedelta(seconds=5)
"""The silence after which a regular activity counts as lost: five heartbeats.

The call of a killed worker is repeated after that time, once another worker has begun. A shorter
one would take a busy worker for a lost one: then a call is made twice, and a node without retries
fails.
"""

STEP_TIMEOUT = timedelta(hours=2)
"""Start to close of one attempt of an action's step, which bounds itself by what it calls."""

ATTEMPT_TIMEOUT = timedelta(minutes=5)
"""Start to close of one attempt of a delivery; what it calls answers long before."""

SWEEP_TIMEOUT = timedelta(minutes=5)
SWEEP_RETRY = RetryPolicy(maximum_attempts=1)
"""A maintenance sweep is repeated by its schedule, not by a retry."""

PURGE_TIMEOUT = timedelta(minutes=5)
"""Start to close of one batch that is removed; its statements end long before."""
ORPHANS_TIMEOUT = timedelta(hours=2)
"""Start to close of a look through all objects of a store."""
PURGE_RETRY = RetryPolicy(
    initial_interval=timedelta(seconds=1),
    backoff_coefficient=2,
    maximum_interval=timedelta(seconds=30),
    # Some two minutes: the next sweep does the remaining work.
    maximum_attempts=8,
)

_SHORTEST = timedelta(milliseconds=1)


def has_long_history() -> bool:
    """True when this execution is to continue as new."""
    info = workflow.info()
    return info.is_continue_as_new_suggested() or info.get_current_history_length() > LONG_HISTORY


def node_retry(retry: PlanRetry | None, tried: int = 0) -> RetryPolicy:
    """A node's `retry`, 1:1, less its attempts so far; one without it has a single attempt.

    See interface.md#retries.
    """
    if retry is None:
        return RetryPolicy(maximum_attempts=1)
    initial = max(_SHORTEST, timedelta(seconds=retry.initial_delay_seconds))
    return RetryPolicy(
        maximum_attempts=max(1, retry.max_attempts - tried),
        initial_interval=initial,
        backoff_coefficient=retry.backoff_multiplier,
        maximum_interval=max(initial, timedelta(seconds=retry.max_delay_seconds)),
    )
