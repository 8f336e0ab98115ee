"""The workflows that schedules start: due runs of automations, maintenance, and retention."""

import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import Any

from temporalio import workflow
from temporalio.common import SearchAttributeKey
from temporalio.exceptions import ActivityError, ApplicationError, is_cancelled_exception
from temporalio.types import MethodAsyncNoParam

with workflow.unsafe.imports_passed_through():
    from activities.endings import CalledRunActivities
    from activities.maintenance.reconciler import Reconciler, ScheduleMaintenance
    from activities.maintenance.sweeps import Expired, RetentionActivities, UsageMaintenance
    from activities.schedules import FireCall, ScheduleFires
    from runtime.temporal.workflow_kinds import Queue
    from workflows import policies
    from workflows.calls import run_called, transact


DUE = SearchAttributeKey.for_datetime("TemporalScheduledStartTime")
"""The time at which the schedule had to fire, without jitter; Temporal writes it."""


@workflow.defn(name="ScheduleFire")
class ScheduleFire:
    """One fire of a schedule of any workflow kind; the argument is the schedule's id.

    It lasts as long as the run of its due time. So Temporal's overlap policies, which count this
    workflow, act on the run itself.
    """

    @workflow.run
    async def run(self, schedule_id: str) -> str:
        info = workflow.info()
        due = info.typed_search_attributes.get(DUE) or info.start_time
        accepting = asyncio.create_task(transact(ScheduleFires.accept, FireCall(schedule_id, due)))
        try:
            # A cancel must not leave open whether there is a run.
            run = await asyncio.shield(accepting)
            if run is None:
                return "not run"
            # The run ends with us, in order, even if an operator terminates this workflow.
            await run_called(run)
        except asyncio.CancelledError:
            # The activity was not cancelled: it has accepted a run, or will.
            run = await accepting
            if run is not None:
                await transact(CalledRunActivities.cancel, run)
            raise
        return run.run_id


Sweep = MethodAsyncNoParam[Any, dict[str, int]]


@workflow.defn(name="Maintenance")
class Maintenance:
    """One sweep of the reconcilers and of the totals; gives the counts of each.

    See architecture.md#reconciliation.
    """

    @workflow.run
    async def run(self) -> dict[str, int]:
        counts = await _swept(Reconciler.reconcile, "Reconcile rows and executions")
        schedules = await _swept(
            ScheduleMaintenance.reconcile_schedules,
            "Reconcile schedules",
        )
        usage = await _swept(UsageMaintenance.settle_usage, "Update usage totals")
        return (
            counts
            | {f"schedules_{name}": count for name, count in schedules.items()}
            | {f"usage_{name}": count for name, count in usage.items()}
        )


async def _swept(sweep: Sweep, summary: str) -> dict[str, int]:
    # Local, since sweeps that find nothing, twice a minute, are most of what an idle platform does.
    return await workflow.execute_local_activity_method(
        sweep,
        start_to_close_timeout=policies.SWEEP_TIMEOUT,
        retry_policy=policies.SWEEP_RETRY,
        summary=summary,
    )


ROUNDS = 200
"""Batches of each kind in one execution, whose history stays small; then the next continues."""
ORPHANS = "orphans"


@dataclass(frozen=True, slots=True)
class Swept:
    """The state of a sweep for the execution that continues it."""

    left: list[str]
    removed: dict[str, int]
    failed: list[str]


@workflow.defn(name="Retention")
class Retention:
    """One sweep, batch by batch, in turn among the kinds; returns the removed rows of each.

    It ends when nothing is left, or with its time: a busy hour may leave more than one execution
    removes. A kind that cannot be removed does not block others, and fails the sweep at its end.
    """

    def __init__(self) -> None:
        self._removed: Counter[str] = Counter()
        self._failed: list[str] = []

    @workflow.run
    async def run(self, earlier: Swept | None = None) -> dict[str, int]:
        kinds = list(Expired)
        if earlier is not None:
            kinds, self._failed = [Expired(kind) for kind in earlier.left], [*earlier.failed]
            self._removed.update(earlier.removed)
        for _ in range(ROUNDS):
            # One batch of each kind in turn, so that a large backlog of one does not delay the
            # others.
            kinds = [kind for kind in kinds if await self._purge(kind)]
            if not kinds:
                break
        if kinds:
            workflow.continue_as_new(
                Swept([kind.value for kind in kinds], dict(self._removed), self._failed)
            )
        await self._remove_orphans()
        if self._failed:
            raise ApplicationError(f"Not removed: {', '.join(self._failed)}", non_retryable=True)
        return dict(self._removed)

    async def _purge(self, kind: Expired) -> bool:
        """Remove old rows of a kind. True when more of it may be left."""
        try:
            count = await workflow.execute_activity_method(
                RetentionActivities.purge,
                kind,
                task_queue=Queue.BULK,
                start_to_close_timeout=policies.PURGE_TIMEOUT,
                heartbeat_timeout=policies.HEARTBEAT_TIMEOUT,
                retry_policy=policies.PURGE_RETRY,
                summary=f"Remove old {kind}",
            )
        except ActivityError as error:
            self._note(kind, error)
            return False
        self._removed[kind] += count
        return count > 0

    async def _remove_orphans(self) -> None:
        try:
            self._removed[ORPHANS] = await workflow.execute_activity_method(
                RetentionActivities.remove_orphans,
                task_queue=Queue.BULK,
                start_to_close_timeout=policies.ORPHANS_TIMEOUT,
                heartbeat_timeout=policies.HEARTBEAT_TIMEOUT,
                retry_policy=policies.PURGE_RETRY,
                summary="Remove orphaned objects",
            )
        except ActivityError as error:
            self._note(ORPHANS, error)

    def _note(self, kind: str, error: ActivityError) -> None:
        if is_cancelled_exception(error):
            raise error
        self._failed.append(kind)
