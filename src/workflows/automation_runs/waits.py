"""Nodes that wait for a timer, a signal or a child workflow; a row shows each while it waits."""

import asyncio
from collections.abc import Callable
from datetime import timedelta

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities import contracts as activity_contracts
    from activities.action_runs.transactions import ActionNodeActivities
    from activities.automation_runs.loops import LoopActivities
    from activities.automation_runs.transactions import AutomationRunActivities
    from activities.automation_runs.waits import WaitActivities
    from models.automation.automations.rules.graph.kinds import MAX_REMINDERS, NodeKind
    from models.automation.automations.rules.planner.plan import PlanNode
    from models.automation.automations.rules.planner.protocol import NodeRef
    from workflows.calls import Attempts, run_called, summary_of, transact
    from workflows.policies import node_retry

Parked = Callable[[bool], None]
"""Called with whether the node waits for something outside of the workflow."""


class Waits:
    """The waits of one execution. No node wakes while its run is being shown as waiting."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._resolved: dict[NodeRef, asyncio.Event] = {}
        self._shown: list[str] | None = None
        """The places below, while the run is shown as waiting; else None."""

    def resolve(self, node_id: str, scope_key: str) -> None:
        """Note that a wait is resolved; its row says how."""
        self._resolution_of(NodeRef(node_id, scope_key)).set()

    async def wait(
        self, node: PlanNode, call: activity_contracts.NodeCall, parked: Parked
    ) -> activity_contracts.NodeReply:
        """Park a node, and wake it when what it waits for has come."""
        parking = activity_contracts.ParkCall(call, workflow.time())
        reply = await transact(WaitActivities.park, parking, summary_of(node))
        if reply.state is not activity_contracts.NodeState.WAITING:
            return reply.end
        parked(True)
        if node.kind in (NodeKind.APPROVAL, NodeKind.WAIT_EVENT):
            return await self._for_resolution(node, call, reply, parked)
        if reply.called is not None:
            await run_called(reply.called)
        else:
            assert reply.seconds is not None, "only a resolution can be waited for without end"
            await workflow.sleep(timedelta(seconds=reply.seconds), summary=summary_of(node))
        return await self._wake(node, call, parked, over=True)

    async def run_action(
        self, node: PlanNode, call: activity_contracts.NodeCall
    ) -> activity_contracts.NodeReply:
        """Run the action of a node, which is shown as running meanwhile."""
        reply = await transact(ActionNodeActivities.begin, call, summary_of(node))
        if reply.called is None:
            return reply.end
        timeout = timedelta(seconds=node.timeout_seconds)
        await run_called(reply.called, Attempts(node_retry(node.retry), timeout))
        ending = activity_contracts.WakeCall(call.run_id, call.node_id, call.scope_key)
        return await transact(ActionNodeActivities.end, ending, summary_of(node))

    async def pause(
        self,
        node: PlanNode,
        call: activity_contracts.NodeCall,
        reply: activity_contracts.NodeReply,
        parked: Parked,
    ) -> activity_contracts.NodeReply:
        """Let time pass between two iterations of a repeat."""
        assert reply.seconds is not None, "a pause has an end"
        parked(True)
        await workflow.sleep(timedelta(seconds=reply.seconds), summary=summary_of(node))
        self._wakes(parked)
        async with self._turn:
            return await transact(LoopActivities.resume_loop, call, summary_of(node))

    async def show_waiting(self, call: activity_contracts.SuspendCall, *, part: bool) -> None:
        """Show that this execution, of the run or a `part` of it, only waits."""
        # Each write is a local activity: without this a run that wakes often would write the same
        # again.
        if self._shown == call.below:
            return
        async with self._turn:
            if part or call.below:
                await transact(WaitActivities.suspend, call)
            else:
                await transact(AutomationRunActivities.set_waiting, call)
        self._shown = call.below

    async def _for_resolution(
        self,
        node: PlanNode,
        call: activity_contracts.NodeCall,
        reply: activity_contracts.ParkReply,
        parked: Parked,
    ) -> activity_contracts.NodeReply:
        """Wait for a resolution, or until time is over; the row decides between the two."""
        ref = NodeRef(call.node_id, call.scope_key)
        resolution = self._resolution_of(ref)
        until = None if reply.seconds is None else workflow.time() + reply.seconds
        reminders = reply.reminded
        while True:
            left = None if until is None else max(0.0, until - workflow.time())
            pause = _shortest(left, reply.reminder_seconds if reminders < MAX_REMINDERS else None)
            over = not await _resolved_within(resolution, pause, summary_of(node))
            if over and pause != left:
                reminders += 1
                if await transact(
                    WaitActivities.remind, activity_contracts.RemindCall(call, reminders)
                ):
                    continue
                over = False
            resolution.clear()
            end = await self._wake(node, call, parked, over=over)
            if end.state is not activity_contracts.NodeState.WAITING:
                # A long run must not keep an event for each node that has ever waited.
                self._resolved.pop(ref)
                return end
            parked(True)

    async def _wake(
        self, node: PlanNode, call: activity_contracts.NodeCall, parked: Parked, *, over: bool
    ) -> activity_contracts.NodeReply:
        self._wakes(parked)
        waking = activity_contracts.WakeCall(call.run_id, call.node_id, call.scope_key, over)
        async with self._turn:
            return await transact(WaitActivities.wake, waking, summary_of(node))

    def _wakes(self, parked: Parked) -> None:
        parked(False)
        self._shown = None

    def _resolution_of(self, ref: NodeRef) -> asyncio.Event:
        return self._resolved.setdefault(ref, asyncio.Event())


async def _resolved_within(resolution: asyncio.Event, seconds: float | None, summary: str) -> bool:
    """True when a wait is resolved within these seconds."""
    try:
        await workflow.wait_condition(
            resolution.is_set,
            timeout=None if seconds is None else timedelta(seconds=seconds),
            timeout_summary=summary,
        )
    except TimeoutError:
        return False
    return True


def _shortest(*seconds: float | None) -> float | None:
    return min((limit for limit in seconds if limit is not None), default=None)
