"""The deadline of a run: a timer in its workflow, which then closes the run (decisions D2)."""

from datetime import timedelta
from typing import NoReturn

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.automation_runs.transactions import AutomationRunActivities
    from workflows.transactions import transact

ALLOWANCE = 1.0001
"""Factor on the limit: a wait as long as the limit ends before the deadline does."""


class RunEnded(Exception):  # noqa: N818  # not an error: it carries how the run ended
    """The run's row is closed, so its workflow has nothing left to do."""

    retryable = False


async def expire(run_id: str, limit_seconds: float, began: float) -> NoReturn:
    """Close the run when it has lasted so long since it began. Raises RunEnded then."""
    left = limit_seconds * ALLOWANCE - (workflow.time() - began)
    await workflow.sleep(timedelta(seconds=max(0.0, left)), summary="Deadline of the run")
    raise RunEnded(await transact(AutomationRunActivities.expire, run_id))
