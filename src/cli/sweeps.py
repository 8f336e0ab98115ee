"""What a worker has Temporal do again and again."""

import contextlib
from dataclasses import dataclass
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
)
from temporalio.types import MethodAsyncNoParam

from runtime.families import Family, Queue
from workflows.maintenance import Maintenance
from workflows.retention import Retention


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
    """A sweep's schedule, made by whichever worker comes first."""
    with contextlib.suppress(ScheduleAlreadyRunningError):
        await client.create_schedule(
            sweep.schedule_id,
            Schedule(
                action=ScheduleActionStartWorkflow(
                    sweep.run,
                    id=sweep.schedule_id,
                    task_queue=Queue.AUTOMATION,
                    static_summary=sweep.summary,
                    execution_timeout=sweep.within,
                ),
                spec=ScheduleSpec(intervals=[ScheduleIntervalSpec(every=sweep.every)]),
                policy=SchedulePolicy(
                    overlap=ScheduleOverlapPolicy.SKIP, catchup_window=sweep.every
                ),
            ),
        )
