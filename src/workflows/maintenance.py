"""The maintenance workflow: what a schedule starts to make rows and executions agree."""

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.maintenance import MaintenanceActivities
    from workflows.policies import HEARTBEAT_TIMEOUT, SWEEP_RETRY, SWEEP_TIMEOUT


@workflow.defn(name="Maintenance")
class Maintenance:
    """One sweep of the reconciler (promise I7)."""

    @workflow.run
    async def run(self) -> dict[str, int]:
        return await workflow.execute_activity_method(
            MaintenanceActivities.reconcile,
            start_to_close_timeout=SWEEP_TIMEOUT,
            heartbeat_timeout=HEARTBEAT_TIMEOUT,
            retry_policy=SWEEP_RETRY,
            summary="Compare open runs with their executions",
        )
