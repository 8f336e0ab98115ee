"""The workflow of one automation run: it carries out what the planner decides (design section 3).

It holds ids, kinds and outcomes only; every input, output and status lives in PostgreSQL.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TypeVar

from temporalio import workflow
from temporalio.exceptions import ActivityError, is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from activities.automation_runs import AutomationRunActivities
    from activities.contracts import (
        FinishCall,
        NodeCall,
        NodeReply,
        NodeState,
        ParkCall,
    )
    from activities.outside_nodes import OUTSIDE_NODES
    from models.automations.rules.kinds import NODE_KINDS, CostClass, NodeKind
    from models.automations.rules.plan import Plan, PlanNode
    from models.automations.rules.planner import Planner
    from models.automations.rules.protocol import (
        CancelNode,
        Command,
        EndRun,
        Event,
        NodeFailed,
        NodeRef,
        NodeSucceeded,
        RunStopped,
        SkipNode,
        StartNode,
    )
    from runtime.families import Queue
    from workflows.node_table import NodeTable
    from workflows.policies import (
        DATABASE_RETRY,
        DATABASE_TIMEOUT,
        HEARTBEAT_TIMEOUT,
        node_retry,
    )


_Argument = TypeVar("_Argument")
_Reply = TypeVar("_Reply")


async def _transact(
    method: Callable[[AutomationRunActivities, _Argument], Awaitable[_Reply]], argument: _Argument
) -> _Reply:
    """One database transaction as a local activity, repeated until the database answers."""
    return await workflow.execute_local_activity_method(
        method,
        argument,
        start_to_close_timeout=DATABASE_TIMEOUT,
        retry_policy=DATABASE_RETRY,
    )


class RunClosed(Exception):  # noqa: N818  # not an error: someone else has ended the run
    """The run's row is closed, so its workflow has nothing left to do."""


@workflow.defn(name="AutomationRun")
class AutomationRun:
    """One run of one frozen version of an automation; the argument is the run's id."""

    def __init__(self) -> None:
        self._events: asyncio.Queue[Event | Exception | None] = asyncio.Queue()
        self._tasks: dict[NodeRef, asyncio.Task[None]] = {}
        self._parked: set[NodeRef] = set()
        self._skipped: list[tuple[str, str]] = []
        self._ending: EndRun | None = None

    @workflow.run
    async def run(self, run_id: str) -> str:
        self._run_id = run_id
        try:
            return await self._execute()
        except RunClosed:
            return "closed"
        except asyncio.CancelledError:
            # Someone cancelled the workflow itself; after a cancel through the API the row is
            # closed already and this changes nothing.
            await _transact(AutomationRunActivities.close_cancelled, run_id)
            raise
        finally:
            for task in self._tasks.values():
                task.cancel()

    async def _execute(self) -> str:
        begun = await _transact(AutomationRunActivities.begin, self._run_id)
        if begun.plan is None:
            raise RunClosed
        plan = Plan.from_json(begun.plan)
        self._nodes = plan.nodes_by_id()
        self._table = NodeTable(plan)
        self._planner = Planner(plan)
        self._carry_out(self._planner.begin())
        while self._ending is None:
            event = await self._events.get()
            if isinstance(event, Exception):
                raise event
            if event is not None:
                self._carry_out(self._planner.apply(event))
            if self._ending is None and self._only_waiting():
                await self._set_waiting()
        return await self._finish(self._ending)

    def _carry_out(self, commands: tuple[Command, ...]) -> None:
        for command in commands:
            if isinstance(command, StartNode):
                self._table.set(command.ref, "running")
                self._tasks[command.ref] = asyncio.create_task(self._run_node(command.ref))
            elif isinstance(command, SkipNode):
                self._skipped.append((command.ref.node_id, command.ref.scope_key))
                self._table.set(command.ref, "skipped", 0)
            elif isinstance(command, CancelNode):
                self._parked.discard(command.ref)
                self._table.set(command.ref, "cancelled")
                task = self._tasks.pop(command.ref)
                task.cancel()
            elif isinstance(command, EndRun):
                self._ending = command
        workflow.set_current_details(self._table.markdown())

    async def _run_node(self, ref: NodeRef) -> None:
        try:
            reply = await self._node_reply(ref)
        except Exception as error:  # noqa: BLE001  # the run's own task raises it again
            self._events.put_nowait(error)
            return
        self._parked.discard(ref)
        del self._tasks[ref]
        self._events.put_nowait(self._event(ref, reply))

    async def _node_reply(self, ref: NodeRef) -> NodeReply:
        node = self._nodes[ref.node_id]
        call = self._call(ref)
        cost = NODE_KINDS[NodeKind(node.kind)].cost
        if cost is CostClass.QUICK:
            return await _transact(AutomationRunActivities.quick_node, call)
        if cost is CostClass.OUTSIDE:
            return await self._outside(node, call)
        return await self._wait(node, ref, call)

    def _call(self, ref: NodeRef) -> NodeCall:
        return NodeCall(self._run_id, ref.node_id, ref.scope_key)

    def _event(self, ref: NodeRef, reply: NodeReply) -> Event | Exception:
        if reply.state is NodeState.CLOSED:
            return RunClosed()
        if reply.state is NodeState.FAILED:
            self._table.set(ref, "failed", reply.attempt)
            return NodeFailed(ref)
        self._table.set(ref, "succeeded", reply.attempt)
        if reply.state is NodeState.SUCCEEDED:
            return NodeSucceeded(ref, reply.outcome, reply.case_key)
        return RunStopped(ref, succeeded=reply.state is NodeState.STOPPED)

    async def _outside(self, node: PlanNode, call: NodeCall) -> NodeReply:
        try:
            return await workflow.execute_activity_method(
                OUTSIDE_NODES[node.kind],
                call,
                task_queue=Queue.IO,
                summary=node.label or node.id,
                start_to_close_timeout=timedelta(seconds=node.timeout_seconds),
                heartbeat_timeout=HEARTBEAT_TIMEOUT,
                retry_policy=node_retry(node.retry),
            )
        except ActivityError as error:
            if is_cancelled_exception(error):
                raise asyncio.CancelledError from error
            return await _transact(AutomationRunActivities.close_failed_node, call)

    async def _wait(self, node: PlanNode, ref: NodeRef, call: NodeCall) -> NodeReply:
        parked = await _transact(AutomationRunActivities.park, ParkCall(call, workflow.time()))
        if parked.state is not NodeState.WAITING:
            return parked
        self._parked.add(ref)
        self._table.set(ref, "waiting")
        self._events.put_nowait(None)
        await workflow.sleep(timedelta(seconds=parked.seconds), summary=node.label or node.id)
        return await _transact(AutomationRunActivities.wake, call)

    def _only_waiting(self) -> bool:
        return bool(self._parked) and all(ref in self._parked for ref in self._planner.active)

    async def _set_waiting(self) -> None:
        workflow.set_current_details(self._table.markdown())
        await _transact(AutomationRunActivities.set_waiting, self._run_id)

    async def _finish(self, ending: EndRun) -> str:
        decisive = ending.stopped_by or ending.failed
        call = FinishCall(
            run_id=self._run_id,
            succeeded=ending.succeeded,
            decisive_node=None if decisive is None else self._call(decisive),
            skipped=self._skipped,
        )
        return await _transact(AutomationRunActivities.finish, call)
