"""The maintenance workflow: what a schedule starts to make rows and executions agree."""

from typing import Any

from temporalio import workflow
from temporalio.types import MethodAsyncNoParam

with workflow.unsafe.imports_passed_through():
    from activities.maintenance.action_runs import ActionMaintenance
    from activities.maintenance.automation_runs import MaintenanceActivities
    from activities.maintenance.jobs import JobMaintenance
    from activities.maintenance.schedules import ScheduleMaintenance
    from workflows.policies import HEARTBEAT_TIMEOUT, SWEEP_RETRY, SWEEP_TIMEOUT

Sweep = MethodAsyncNoParam[Any, dict[str, int]]

JOBS_ARE_RECONCILED = "jobs-are-reconciled"
"""Sweeps that began before there were jobs end without them."""
SCHEDULES_AND_ACTIONS_ARE_RECONCILED = "schedules-and-actions-are-reconciled"
"""Sweeps that began before automations had schedules and actions could be run end without them."""


@workflow.defn(name="Maintenance")
class Maintenance:
    """One sweep of the reconciler (promise I7)."""

    @workflow.run
    async def run(self) -> dict[str, int]:
        counts = await _swept(
            MaintenanceActivities.reconcile, "Compare open runs with their executions"
        )
        if not workflow.patched(JOBS_ARE_RECONCILED):
            return counts
        jobs = await _swept(
            JobMaintenance.reconcile_jobs, "Compare open jobs with their executions"
        )
        counts |= _named("jobs", jobs)
        if not workflow.patched(SCHEDULES_AND_ACTIONS_ARE_RECONCILED):
            return counts
        schedules = await _swept(
            ScheduleMaintenance.reconcile_schedules,
            "Compare schedules with what automations say",
        )
        actions = await _swept(
            ActionMaintenance.reconcile_actions,
            "Compare open runs of actions with their executions",
        )
        return counts | _named("schedules", schedules) | _named("actions", actions)


async def _swept(sweep: Sweep, summary: str) -> dict[str, int]:
    return await workflow.execute_activity_method(
        sweep,
        start_to_close_timeout=SWEEP_TIMEOUT,
        heartbeat_timeout=HEARTBEAT_TIMEOUT,
        retry_policy=SWEEP_RETRY,
        summary=summary,
    )


def _named(what: str, counts: dict[str, int]) -> dict[str, int]:
    return {f"{what}_{name}": count for name, count in counts.items()}
