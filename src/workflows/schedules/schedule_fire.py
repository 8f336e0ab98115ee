"""The workflow that a schedule starts at each due time; it lasts as long as the run of that time.

So Temporal's overlap policies, which look at this workflow, act on the run itself.
"""

import asyncio

from temporalio import workflow
from temporalio.common import SearchAttributeKey

with workflow.unsafe.imports_passed_through():
    from activities.called_runs import CalledRunActivities
    from activities.schedules.fires import FireCall, ScheduleFires
    from workflows.called_runs import run_called
    from workflows.transactions import transact

DUE = SearchAttributeKey.for_datetime("TemporalScheduledStartTime")
"""The time at which the schedule had to fire, without jitter; Temporal writes it."""


@workflow.defn(name="ScheduleFire")
class ScheduleFire:
    """One fire of a schedule of any family; the argument is the schedule's id."""

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
            run = await accepting
            if run is not None:
                await transact(CalledRunActivities.cancel, run)
            raise
        return run.run_id
