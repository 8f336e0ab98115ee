"""The transactions of an automation run's workflow, one local activity each.

Each is safe to repeat: the run's status guards it, and a node run exists once per run, node and
scope, written in the transaction of the node's own effect.

See interface.md#cost-of-nodes.
"""

import contextlib
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from temporalio import activity

from activities import contracts
from activities.automation_runs.node_execution import BatchRefusedError, NodeBatch, NodeExecution
from activities.automation_runs.nodes.invocation import Failure, Transaction
from activities.automation_runs.quick_nodes import QuickNodes, is_quick
from activities.automation_runs.runs import OpenRun, RunCache
from activities.endings import CLOSED
from activities.outbox.relay import RunStarts
from models.automation.automation_runs import execution, run_header
from models.automation.automation_runs.node_writes import read_attributes
from models.automation.automation_runs.rules import RunClosedError, RunStatus
from models.automation.automations.rules.planner.planner import PlanState
from models.automation.automations.rules.planner.protocol import NodeRef
from runtime.clock import utc_now
from runtime.database import Database, UnitOfWork
from runtime.processes.fault_injection import FaultPoint, inject_fault


class AutomationRunActivities:
    """Begin, quick nodes, waits and the end of runs."""

    def __init__(
        self,
        database: Database,
        runs: RunCache,
        transactions: Mapping[str, Transaction],
        starts: RunStarts,
        limit: timedelta,
    ) -> None:
        """A run that takes longer than `limit` is timed out; `starts` hears of begins and ends."""
        self._database = database
        self._starts = starts
        self._limit = limit
        self._runs = runs
        self._nodes = NodeExecution(database, runs)
        self._quick = QuickNodes(self._nodes, transactions)

    def all(self) -> Sequence[Callable[..., Any]]:
        """Every activity of this class, for registration."""
        return (
            self.begin,
            self.run_quick_nodes,
            self.set_waiting,
            self.close_failed_node,
            self.finish,
            self.expire,
            self.close_cancelled,
        )

    @activity.defn(name="begin_and_run_quick_nodes")
    async def begin(self, run_id: str) -> contracts.RunBegun:
        """`queued → running`, the plan to follow, and the first batch of quick nodes.

        A run that these nodes complete is finished here, too. Repeating it gives the same plan, and
        the recorded ends of nodes that ended before.
        """
        claimed = self._starts.claimed(uuid.UUID(run_id))
        begun = None if claimed is None else await self._begin_and_end(claimed)
        return await self._begin(run_id) if begun is None else begun

    async def _begin_and_end(self, header: run_header.RunHeader) -> contracts.RunBegun | None:
        """Execute a run that was claimed here, and write its begin with its end (ADR 0154).

        None where that cannot be: nothing is written then, or another execution was faster. A run
        that takes longer than a batch may wait is shown as running meanwhile.
        """
        run = await self._runs.open(replace(header, started_at=utc_now()))
        if not run.is_one_write:
            return None
        self._starts.begun(header.run_id)
        run.writes_batches = True
        batch = NodeBatch(self._database, run, begins=True)
        try:
            reply = await self._first_batch(run, batch)
        except BatchRefusedError:
            return None
        if reply.ended == CLOSED:
            return None
        return contracts.RunBegun(run.plan.to_json(), reply, self._limit.total_seconds())

    async def _begin(self, run_id: str) -> contracts.RunBegun:
        async with self._database.statement() as work:
            header, now = await execution.begin(work, uuid.UUID(run_id)), work.now
        relayed = header is not None and header.is_started_by_relay
        self._starts.begun(uuid.UUID(run_id), by_relay=relayed)
        if header is None:
            return contracts.RunBegun(
                None, contracts.QuickNodesReply([], await self._why_not(run_id))
            )
        if (refusal := header.options.get("refusal")) is not None:
            return contracts.RunBegun(
                None, contracts.QuickNodesReply([], await self._refuse(run_id, refusal))
            )
        run = await self._runs.open(header)
        run.writes_batches = header.started_at == now and not run.repeats
        limit = (self._limit - (now - header.started_at)).total_seconds()
        try:
            batch = await self._first_batch(run)
        except BatchRefusedError:
            run.writes_batches = False
            batch = await self._first_batch(run)
        return contracts.RunBegun(run.plan.to_json(), batch, limit)

    async def _first_batch(
        self, run: OpenRun, batch: NodeBatch | None = None
    ) -> contracts.QuickNodesReply:
        plan_state = run.plan_states[""] = PlanState(run.plan)
        reused = [_reused_end(one) for one in run_header.read_reused(run.header.options)]
        for end in reused:
            plan_state.apply(end.event)
        ready = [ref for ref in plan_state.active if is_quick(run, ref)]
        if len(ready) < len(plan_state.active):
            # Other nodes are ready too, and the workflow starts them only after this.
            return contracts.QuickNodesReply(reused)
        reply = await self._advance(run, ready, plan_state, batch)
        return replace(reply, ends=[*reused, *reply.ends])

    async def _why_not(self, run_id: str) -> str:
        async with self._database.statement() as work:
            waits = await execution.waits_for_slot(work, uuid.UUID(run_id))
        return contracts.WAITS_FOR_SLOT if waits else CLOSED

    async def _refuse(self, run_id: str, reason: str) -> str:
        """End a run that could only be accepted to show why it cannot run."""
        async with self._database.transaction() as work:
            await execution.abandon(work, uuid.UUID(run_id), RunStatus.FAILED, reason)
        return RunStatus.FAILED

    @activity.defn(name="run_quick_nodes")
    async def run_quick_nodes(self, call: contracts.QuickNodesCall) -> contracts.QuickNodesReply:
        """Execute the ready quick nodes, and the ones that follow as far as this process knows."""
        try:
            run = await self._runs.get(uuid.UUID(call.run_id))
        except RunClosedError:
            return contracts.QuickNodesReply([], CLOSED)
        plan_state = run.follow(call.part, call.applied, call.ends)
        ready = [NodeRef(*ref) for ref in call.ready]
        try:
            return await self._advance(run, ready, plan_state)
        except BatchRefusedError:
            run.writes_batches = False
            run.plan_states.pop(call.part, None)
            return await self._advance(run, ready, None)

    async def _advance(
        self,
        run: OpenRun,
        ready: Sequence[NodeRef],
        plan_state: PlanState | None,
        own_batch: NodeBatch | None = None,
    ) -> contracts.QuickNodesReply:
        """Raises BatchRefusedError: the plan state is ahead of the written rows."""
        with own_batch or NodeBatch(self._database, run) as batch:
            taking = batch if run.writes_batches and plan_state is not None else None
            try:
                reply = await self._quick.run(run, ready, plan_state, taking)
                if run.graph.names_attributes:
                    reply = replace(reply, attributes=await self._attributes(run))
                ending = None if plan_state is None else plan_state.ending
                if (
                    plan_state is None
                    or ending is None
                    or plan_state is not run.plan_states.get("")
                ):
                    await batch.write()
                    return reply
                call = contracts.FinishCall.of(str(run.header.run_id), ending, plan_state.skipped)
                return replace(reply, ended=await self._finish(run, call, batch))
            except RunClosedError:
                return contracts.QuickNodesReply([], CLOSED)

    async def _attributes(self, run: OpenRun) -> dict[str, str]:
        async with self._database.reading() as work:
            return await read_attributes(work, run.header.run_id)

    @activity.defn(name="show_run_waiting")
    async def set_waiting(self, call: contracts.SuspendCall) -> None:
        """Nothing of the run is running and something waits."""
        run_id = uuid.UUID(call.run_id)
        if not call.skipped:
            async with self._database.statement() as work:
                await execution.set_waiting(work, run_id)
            self._starts.stopped_running()
            return
        with contextlib.suppress(RunClosedError):
            run = await self._runs.get(run_id)
            async with self._database.transaction() as work:
                if await execution.set_waiting(work, run_id):
                    await run.skip(work, call.skipped)
        self._starts.stopped_running()

    @activity.defn(name="close_failed_node")
    async def close_failed_node(self, call: contracts.NodeCall) -> contracts.NodeReply:
        """Make sure a node whose activity failed is shown as failed.

        The activity writes its own failure; when it was lost with its worker, this does.
        """
        return await self._nodes.fail(
            call,
            Failure("timeout", "The node timed out, or its worker was lost."),
        )

    @activity.defn(name="finish_automation_run")
    async def finish(self, call: contracts.FinishCall) -> str:
        """Write the end of the run; `closed` when it had ended before."""
        try:
            run = await self._runs.get(uuid.UUID(call.run_id))
        except RunClosedError:
            return CLOSED
        with NodeBatch(self._database, run) as batch:
            return await self._finish(run, call, batch)

    async def _finish(self, run: OpenRun, call: contracts.FinishCall, batch: NodeBatch) -> str:
        inject_fault(FaultPoint.BEFORE_TERMINAL_WRITE, call.run_id)
        if call.decisive_node is None and run.header.ends_alone:
            status = RunStatus.SUCCEEDED if await batch.end_run(call.skipped) else CLOSED
        else:
            await batch.write()
            status = await self._finish_and_follow(run, call)
        inject_fault(FaultPoint.AFTER_TERMINAL_WRITE, call.run_id)
        self._starts.stopped_running()
        self._runs.forget(run.header.run_id)
        return status

    async def _finish_and_follow(self, run: OpenRun, call: contracts.FinishCall) -> str:
        async with self._database.transaction() as work:
            if call.decisive_node is None:
                status = RunStatus.SUCCEEDED
                written = await execution.succeed_and_follow(work, run.header, run.plan.leaves())
            else:
                status, written = await self._finish_by(work, run, call, call.decisive_node)
            if not written:
                return CLOSED
            await run.skip(work, call.skipped)
        return status

    async def _finish_by(
        self, work: UnitOfWork, run: OpenRun, call: contracts.FinishCall, node: contracts.NodeCall
    ) -> tuple[RunStatus, bool]:
        """The end that one node decided: an unhandled failure, or a stop node."""
        run_id = run.header.run_id
        end = await run_header.node_end(work, run_id, node.node_id, node.scope_key)
        status = RunStatus.SUCCEEDED if call.succeeded else RunStatus.FAILED
        error = None if call.succeeded else f"{run.graph.label(node.node_id)}: {end.reason}"
        written = await execution.finish(
            work, run_id, status=status, output=end.output, error=error, node_id=node.node_id
        )
        return status, written

    @activity.defn(name="time_out_automation_run")
    async def expire(self, run_id: str) -> str:
        """Close a run that has lasted longer than runs may; `closed` when it had ended before."""
        reason, status = (
            f"The run exceeded its time limit of {_spelled(self._limit)}.",
            RunStatus.TIMED_OUT,
        )
        async with self._database.transaction() as work:
            written = await execution.abandon(work, uuid.UUID(run_id), status, reason)
        return status if written else CLOSED

    @activity.defn(name="close_cancelled_automation_run")
    async def close_cancelled(self, run_id: str) -> None:
        """Close the run of a workflow that an operator cancelled; no change to a closed run."""
        async with self._database.transaction() as work:
            await execution.abandon(
                work, uuid.UUID(run_id), RunStatus.CANCELLED, "Cancelled in Temporal."
            )


def _spelled(limit: timedelta) -> str:
    """`30 days`, `90 seconds`."""
    days = limit / timedelta(days=1)
    return f"{days:g} days" if days >= 1 else f"{limit.total_seconds():g} seconds"


def _reused_end(one: run_header.Reused) -> contracts.NodeEnd:
    """The end of a node in an earlier run, as if it had just been done again.

    See interface.md#runs-again.
    """
    if one.succeeded:
        reply = contracts.NodeReply(contracts.NodeState.SUCCEEDED, one.outcome, one.case_key)
    else:
        reply = contracts.NodeReply(contracts.NodeState.FAILED)
    return contracts.NodeEnd(one.node_id, "", reply)
