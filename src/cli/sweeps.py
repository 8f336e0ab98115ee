"""What a worker has Temporal do again and again."""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleAlreadyRunningError,
    ScheduleIntervalSpec,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleSpec,
    ScheduleUpdate,
    ScheduleUpdateInput,
)
from temporalio.types import MethodAsyncNoParam

from runtime.families import Family, Queue
from workflows.maintenance.maintenance import Maintenance
from workflows.maintenance.retention import Retention


@dataclass(frozen=True, slots=True)
class Sweep:
    """What a schedule starts again and again, and how long it may take."""

    schedule_id: str
    run: MethodAsyncNoParam[Any, dict[str, int]]
    every: timedelta
    within: timedelta
    summary: str


SWEEPS = (
    Sweep(
        Family.MAINTENANCE.workflow_id("reconcile"),
        Maintenance.run,
        every=timedelta(seconds=30),
        within=timedelta(minutes=10),
        summary="Reconcile rows and executions",
    ),
    Sweep(
        Family.RETENTION.workflow_id("sweep"),
        Retention.run,
        every=timedelta(hours=1),
        within=timedelta(hours=6),
        summary="Remove what is past its time",
    ),
)


async def ensure_schedule(client: Client, sweep: Sweep) -> None:
    """A sweep's schedule as this code knows it; one that an operator paused stays paused."""
    wanted = Schedule(
        action=ScheduleActionStartWorkflow(
            sweep.run,
            id=sweep.schedule_id,
            task_queue=Queue.AUTOMATION,
            static_summary=sweep.summary,
            execution_timeout=sweep.within,
        ),
        spec=ScheduleSpec(intervals=[ScheduleIntervalSpec(every=sweep.every)]),
        policy=SchedulePolicy(overlap=ScheduleOverlapPolicy.SKIP, catchup_window=sweep.every),
    )

    def renewed(found: ScheduleUpdateInput) -> ScheduleUpdate:
        return ScheduleUpdate(replace(wanted, state=found.description.schedule.state))

    try:
        await client.create_schedule(sweep.schedule_id, wanted)
    except ScheduleAlreadyRunningError:
        await client.get_schedule_handle(sweep.schedule_id).update(renewed)
