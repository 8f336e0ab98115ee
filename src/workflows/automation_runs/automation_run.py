"""The workflow of one automation run: it carries out what the planner decides (design section 3).

It holds ids, kinds and outcomes only; every input, output and status lives in PostgreSQL.
"""

import asyncio

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.automation_runs.transactions import AutomationRunActivities
    from activities.contracts import WAITS_FOR_SLOT, FinishCall
    from activities.endings import CLOSED
    from models.automation.automations.rules.planner.plan import Plan
    from models.automation.automations.rules.planner.protocol import EndRun
    from workflows.automation_runs.deadline import RunEnded, expire
    from workflows.automation_runs.graph_execution import GraphExecution, Place
    from workflows.automation_runs.waits import Waits
    from workflows.endings import end_as_row
    from workflows.transactions import transact


@workflow.defn(name="AutomationRun")
class AutomationRun:
    """One run of one frozen version of an automation; the argument is the run's id."""

    def __init__(self) -> None:
        self._execution: GraphExecution | None = None
        self._waits = Waits()
        self._admitted = False
        self._deadline: asyncio.Task[None] | None = None

    @workflow.run
    async def run(self, run_id: str) -> str:
        self._run_id = run_id
        try:
            status = await self._execute()
        except RunEnded as ended:
            status = str(ended)
        except asyncio.CancelledError:
            # Someone cancelled the workflow itself; after a cancel through the API, or after its
            # end, the row is closed already and this changes nothing.
            await transact(AutomationRunActivities.close_cancelled, run_id)
            status = CLOSED
        finally:
            if self._execution is not None:
                self._execution.stop()
        # Where the run ended, for operators; the rest is in its row.
        where = "" if self._execution is None else self._execution.ended_at
        return await end_as_row(status, "The run", where)

    @workflow.signal(name="resolve_node")
    def resolve_node(self, node_id: str, scope_key: str) -> None:
        self._waits.resolve(node_id, scope_key)

    @workflow.signal(name="admitted")
    def admitted(self) -> None:
        """The run, which another one waits for, has got a slot."""
        self._admitted = True

    async def _execute(self) -> str:
        reply = await transact(AutomationRunActivities.begin, self._run_id)
        while reply.batch.ended == WAITS_FOR_SLOT:
            await workflow.wait_condition(lambda: self._admitted)
            self._admitted = False
            reply = await transact(AutomationRunActivities.begin, self._run_id)
        if reply.plan is None:
            raise RunEnded(reply.batch.ended or CLOSED)
        plan = Plan.from_json(reply.plan)
        self._limit, self._began = reply.limit_seconds, workflow.time()
        execution = GraphExecution(Place(self._run_id), plan, self._waits, self._keep_deadline)
        self._execution = execution
        execution.accept(reply.batch)
        while execution.plan_state.ending is None:
            await execution.advance()
        return await self._finish(execution, execution.plan_state.ending)

    def _keep_deadline(self) -> None:
        """From the first node that takes time on: a run of quick nodes has no use for a timer."""
        if self._deadline is None and self._execution is not None:
            timer = expire(self._run_id, self._limit, self._began)
            self._deadline = asyncio.create_task(self._execution.report(timer))

    async def _finish(self, execution: GraphExecution, ending: EndRun) -> str:
        call = FinishCall.of(self._run_id, ending, execution.plan_state.skipped)
        return await transact(AutomationRunActivities.finish, call)
