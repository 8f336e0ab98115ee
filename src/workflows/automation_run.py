"""The workflow of one automation run: it carries out what the planner decides (design section 3).

It holds ids, kinds and outcomes only; every input, output and status lives in PostgreSQL.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from datetime import timedelta
from typing import Any, TypeVar

from temporalio import workflow
from temporalio.exceptions import ActivityError, is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from activities.automation_runs import AutomationRunActivities
    from activities.contracts import (
        FinishCall,
        NodeCall,
        NodeEnd,
        NodeReply,
        NodeState,
        ParkCall,
        StretchCall,
        StretchReply,
    )
    from activities.outside_nodes import OUTSIDE_NODES
    from models.automations.rules.course import Course
    from models.automations.rules.kinds import NODE_KINDS, CostClass, NodeKind
    from models.automations.rules.plan import Plan, PlanNode
    from models.automations.rules.protocol import EndRun, NodeRef
    from runtime.families import Queue
    from workflows.node_table import NodeTable
    from workflows.policies import (
        DATABASE_RETRY,
        DATABASE_TIMEOUT,
        HEARTBEAT_TIMEOUT,
        node_retry,
    )


SUMMARY_BYTES = 200
"""What Temporal takes as the summary of an activity or timer; a label may be longer."""

_Argument = TypeVar("_Argument")
_Reply = TypeVar("_Reply")


async def _transact(
    method: Callable[[AutomationRunActivities, _Argument], Awaitable[_Reply]],
    argument: _Argument,
    summary: str | None = None,
) -> _Reply:
    """One database transaction as a local activity, repeated until the database answers."""
    return await workflow.execute_local_activity_method(
        method,
        argument,
        start_to_close_timeout=DATABASE_TIMEOUT,
        retry_policy=DATABASE_RETRY,
        summary=summary,
    )


def _summary(*nodes: PlanNode) -> str:
    """What a person calls the nodes, as far as Temporal has room for it."""
    labels = ", ".join(node.label or node.id for node in nodes)
    return labels.encode()[:SUMMARY_BYTES].decode(errors="ignore")


class RunEnded(Exception):  # noqa: N818  # not an error: it carries how the run ended
    """The run's row is closed, so its workflow has nothing left to do."""


_Message = NodeEnd | StretchReply | Exception | None


@workflow.defn(name="AutomationRun")
class AutomationRun:
    """One run of one frozen version of an automation; the argument is the run's id."""

    def __init__(self) -> None:
        self._inbox: asyncio.Queue[_Message] = asyncio.Queue()
        self._tasks: dict[NodeRef, asyncio.Task[None]] = {}
        self._parked: set[NodeRef] = set()
        self._stretch: asyncio.Task[None] | None = None
        self._unheard: list[NodeEnd] = []

    @workflow.run
    async def run(self, run_id: str) -> str:
        self._run_id = run_id
        try:
            return await self._execute()
        except RunEnded as ended:
            return str(ended)
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
            raise RunEnded("closed")
        plan = Plan.from_json(begun.plan)
        self._nodes = plan.nodes_by_id()
        self._course = Course(plan)
        self._table = NodeTable(plan)
        self._accept(begun.stretch)
        while self._course.ending is None:
            self._start_ready()
            if self._only_waiting():
                await self._set_waiting()
            self._accept(await self._inbox.get())
        return await self._finish(self._course.ending)

    def _accept(self, message: _Message) -> None:
        if isinstance(message, Exception):
            raise message
        if isinstance(message, NodeEnd):
            self._apply(message)
            self._unheard.append(message)
        elif isinstance(message, StretchReply):
            self._stretch = None
            for end in message.ends:
                self._apply(end)
        self._table.follow(self._course)
        workflow.set_current_details(self._table.markdown())
        if isinstance(message, StretchReply) and message.ended is not None:
            raise RunEnded(message.ended)

    def _apply(self, end: NodeEnd) -> None:
        if end.reply.state is NodeState.CLOSED:
            raise RunEnded("closed")
        self._table.end(end)
        self._course.apply(end.event)

    def _start_ready(self) -> None:
        """Make the tasks agree with the course: start what is ready, cancel what is not active."""
        active = self._course.active
        for ref in sorted(self._tasks.keys() - set(active)):
            self._parked.discard(ref)
            task = self._tasks.pop(ref)
            task.cancel()
        quick = []
        for ref in active:
            if self._cost(ref) is CostClass.QUICK:
                quick.append(ref)
            elif ref not in self._tasks:
                self._tasks[ref] = asyncio.create_task(self._report(self._run_node(ref)))
        if quick and self._stretch is None:
            self._stretch = asyncio.create_task(self._report(self._run_quick(quick)))

    def _cost(self, ref: NodeRef) -> CostClass:
        return NODE_KINDS[NodeKind(self._nodes[ref.node_id].kind)].cost

    async def _report(self, work: Coroutine[Any, Any, _Message]) -> None:
        try:
            self._inbox.put_nowait(await work)
        except Exception as error:  # noqa: BLE001  # the run's own task raises it again
            self._inbox.put_nowait(error)

    async def _run_quick(self, ready: list[NodeRef]) -> StretchReply:
        unheard, self._unheard = self._unheard, []
        call = StretchCall(
            self._run_id,
            [(ref.node_id, ref.scope_key) for ref in ready],
            self._course.applied - len(unheard),
            unheard,
        )
        nodes = [self._nodes[ref.node_id] for ref in ready]
        return await _transact(AutomationRunActivities.stretch, call, _summary(*nodes))

    async def _run_node(self, ref: NodeRef) -> NodeEnd:
        node = self._nodes[ref.node_id]
        if self._cost(ref) is CostClass.OUTSIDE:
            reply = await self._outside(node, self._call(ref))
        else:
            reply = await self._wait(node, ref)
        self._parked.discard(ref)
        return NodeEnd(ref.node_id, ref.scope_key, reply)

    def _call(self, ref: NodeRef) -> NodeCall:
        return NodeCall(self._run_id, ref.node_id, ref.scope_key)

    async def _outside(self, node: PlanNode, call: NodeCall) -> NodeReply:
        try:
            return await workflow.execute_activity_method(
                OUTSIDE_NODES[node.kind],
                call,
                task_queue=Queue.IO,
                summary=_summary(node),
                start_to_close_timeout=timedelta(seconds=node.timeout_seconds),
                heartbeat_timeout=HEARTBEAT_TIMEOUT,
                retry_policy=node_retry(node.retry),
            )
        except ActivityError as error:
            if is_cancelled_exception(error):
                raise asyncio.CancelledError from error
            return await _transact(AutomationRunActivities.close_failed_node, call, _summary(node))

    async def _wait(self, node: PlanNode, ref: NodeRef) -> NodeReply:
        call = self._call(ref)
        parking = ParkCall(call, workflow.time())
        parked = await _transact(AutomationRunActivities.park, parking, _summary(node))
        if parked.state is not NodeState.WAITING:
            return parked
        self._parked.add(ref)
        self._table.park(ref)
        self._inbox.put_nowait(None)
        await workflow.sleep(timedelta(seconds=parked.seconds), summary=_summary(node))
        return await _transact(AutomationRunActivities.wake, call, _summary(node))

    def _only_waiting(self) -> bool:
        return bool(self._parked) and all(ref in self._parked for ref in self._course.active)

    async def _set_waiting(self) -> None:
        await _transact(AutomationRunActivities.set_waiting, self._run_id)

    async def _finish(self, ending: EndRun) -> str:
        decisive = ending.stopped_by or ending.failed
        call = FinishCall(
            run_id=self._run_id,
            succeeded=ending.succeeded,
            decisive_node=None if decisive is None else self._call(decisive),
            skipped=[(ref.node_id, ref.scope_key) for ref in self._course.skipped],
        )
        return await _transact(AutomationRunActivities.finish, call)
