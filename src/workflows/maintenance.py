"""The maintenance workflow: what a schedule starts to make rows and executions agree."""

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.job_maintenance import JobMaintenance
    from activities.maintenance import MaintenanceActivities
    from workflows.policies import HEARTBEAT_TIMEOUT, SWEEP_RETRY, SWEEP_TIMEOUT


JOBS_ARE_RECONCILED = "jobs-are-reconciled"
"""Sweeps that began before there were jobs end without them."""


@workflow.defn(name="Maintenance")
class Maintenance:
    """One sweep of the reconciler (promise I7)."""

    @workflow.run
    async def run(self) -> dict[str, int]:
        runs = await workflow.execute_activity_method(
            MaintenanceActivities.reconcile,
            start_to_close_timeout=SWEEP_TIMEOUT,
            heartbeat_timeout=HEARTBEAT_TIMEOUT,
            retry_policy=SWEEP_RETRY,
            summary="Compare open runs with their executions",
        )
        if not workflow.patched(JOBS_ARE_RECONCILED):
            return runs
        jobs = await workflow.execute_activity_method(
            JobMaintenance.reconcile_jobs,
            start_to_close_timeout=SWEEP_TIMEOUT,
            heartbeat_timeout=HEARTBEAT_TIMEOUT,
            retry_policy=SWEEP_RETRY,
            summary="Compare open jobs with their executions",
        )
        return {**runs, **{f"jobs_{name}": count for name, count in jobs.items()}}
