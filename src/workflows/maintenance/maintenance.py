"""The maintenance workflow: a schedule starts it to make rows and executions agree."""

from typing import Any

from temporalio import workflow
from temporalio.types import MethodAsyncNoParam

with workflow.unsafe.imports_passed_through():
    from activities.maintenance.reconciler import Reconciler
    from activities.maintenance.schedules import ScheduleMaintenance
    from activities.maintenance.usage import UsageMaintenance
    from workflows.policies import SWEEP_RETRY, SWEEP_TIMEOUT

Sweep = MethodAsyncNoParam[Any, dict[str, int]]


@workflow.defn(name="Maintenance")
class Maintenance:
    """One sweep of the reconcilers (promise I7) and of the totals; gives the counts of each."""

    @workflow.run
    async def run(self) -> dict[str, int]:
        counts = await _swept(Reconciler.reconcile, "Compare open rows with their executions")
        schedules = await _swept(
            ScheduleMaintenance.reconcile_schedules,
            "Compare schedules with what automations say",
        )
        usage = await _swept(UsageMaintenance.settle_usage, "Count what workspaces did")
        return (
            counts
            | {f"schedules_{name}": count for name, count in schedules.items()}
            | {f"usage_{name}": count for name, count in usage.items()}
        )


async def _swept(sweep: Sweep, summary: str) -> dict[str, int]:
    # Local, since sweeps that find nothing, twice a minute, are most of what an idle platform does.
    return await workflow.execute_local_activity_method(
        sweep, start_to_close_timeout=SWEEP_TIMEOUT, retry_policy=SWEEP_RETRY, summary=summary
    )
