"""The numbers by which activities are tried again, as they are promised."""

from datetime import timedelta
from typing import NamedTuple

import pytest
from temporalio.common import RetryPolicy

from models.automation.automations.rules.planner.plan import PlanRetry
from workflows import policies


class Numbers(NamedTuple):
    """Seconds before the second attempt, the factor of each further pause, its bound, attempts."""

    initial: float
    factor: float
    longest: float | None
    attempts: int


def numbers(policy: RetryPolicy) -> Numbers:
    longest = policy.maximum_interval
    return Numbers(
        policy.initial_interval.total_seconds(),
        policy.backoff_coefficient,
        None if longest is None else longest.total_seconds(),
        policy.maximum_attempts,
    )


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (policies.DATABASE_RETRY, Numbers(0.1, 2, 5, 0)),
        (policies.JOB_RETRY, Numbers(0.2, 2, 10, 20)),
        (policies.FETCH_RETRY, Numbers(1, 3, 30, 4)),
        (policies.PURGE_RETRY, Numbers(1, 2, 30, 8)),
        (policies.SWEEP_RETRY, Numbers(1, 2, None, 1)),
    ],
)
def test_work_is_tried_again_as_promised(policy: RetryPolicy, expected: Numbers) -> None:
    assert numbers(policy) == expected


@pytest.mark.parametrize(
    ("retry", "tried", "expected"),
    [
        (PlanRetry(3, 2, 2, 300), 0, Numbers(2, 2, 300, 3)),
        (PlanRetry(3, 2, 2, 300), 1, Numbers(2, 2, 300, 2)),
        (PlanRetry(20, 0.5, 1.5, 60), 4, Numbers(0.5, 1.5, 60, 16)),
        # Temporal takes no pause of nothing, and no bound below the first pause.
        (PlanRetry(5, 0, 4, 0), 0, Numbers(0.001, 4, 0.001, 5)),
        (PlanRetry(5, 30, 1, 10), 0, Numbers(30, 1, 30, 5)),
        # Who has no attempt left has one: a number of 0 would mean no bound.
        (PlanRetry(2, 1, 2, 10), 2, Numbers(1, 2, 10, 1)),
        (PlanRetry(2, 1, 2, 10), 9, Numbers(1, 2, 10, 1)),
    ],
)
def test_the_retry_of_a_node_is_taken_as_it_is(
    retry: PlanRetry, tried: int, expected: Numbers
) -> None:
    assert numbers(policies.node_retry(retry, tried)) == expected


def test_a_node_without_a_retry_is_tried_once() -> None:
    assert policies.node_retry(None).maximum_attempts == 1
    assert policies.node_retry(None, 3).maximum_attempts == 1


@pytest.mark.parametrize(
    ("timeout", "seconds"),
    [
        (policies.DATABASE_TIMEOUT, 30),
        (policies.JOB_TIMEOUT, 300),
        (policies.FETCH_TIMEOUT, 7_200),
        (policies.STAGE_TIMEOUT, 3_600),
        (policies.APPLY_TIMEOUT, 3_600),
        (policies.BUNDLE_TIMEOUT, 21_600),
        (policies.HEARTBEAT_TIMEOUT, 5),
        (policies.STEP_TIMEOUT, 7_200),
        (policies.ATTEMPT_TIMEOUT, 300),
        (policies.SWEEP_TIMEOUT, 300),
        (policies.PURGE_TIMEOUT, 300),
        (policies.ORPHANS_TIMEOUT, 7_200),
    ],
)
def test_an_attempt_has_its_time(timeout: timedelta, seconds: int) -> None:
    assert timeout == timedelta(seconds=seconds)
