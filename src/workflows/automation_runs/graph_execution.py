"""Executes a plan, or a part of one, as the planner decides, within the run's deadline."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Any, NoReturn

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError, is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from activities import contracts as activity_contracts
    from activities.automation_runs.outside_nodes import OUTSIDE_NODES
    from activities.automation_runs.transactions import AutomationRunActivities
    from activities.endings import CLOSED
    from models.automation.automations.rules.graph.kinds import CostClass, NodeKind
    from models.automation.automations.rules.planner.plan import Plan, PlanNode, costs_of
    from models.automation.automations.rules.planner.planner import PlanState
    from models.automation.automations.rules.planner.protocol import NodeRef
    from runtime.temporal.workflow_kinds import ATTRIBUTES_IN_MEMO, Queue
    from workflows.automation_runs.loops import LoopSteps
    from workflows.automation_runs.waits import Waits
    from workflows.calls import MARKS, call_outside, summary_of, transact
    from workflows.policies import HEARTBEAT_TIMEOUT, node_retry


MAX_PENDING = 1_000
"""Activities and children of one execution at a time; Temporal refuses more than 2,000."""

_Message = activity_contracts.NodeEnd | activity_contracts.QuickNodesReply | Exception | None


@dataclass(frozen=True, slots=True)
class Place:
    """The part of a run that is executed: all of it, or a loop in a scope."""

    run_id: str
    scope_key: str = ""
    part: str = ""


class GraphExecution:
    """The tasks of one execution, and the plan state they follow.

    `lasting` is called before the first command that may take time.

    A run's workflow and the workflows of its loops' chunks hold one each. It holds ids, kinds and
    outcomes only; every input, output and status lives in PostgreSQL.
    """

    def __init__(
        self, place: Place, plan: Plan, waits: Waits, lasting: Callable[[], None] = lambda: None
    ) -> None:
        self.plan_state = PlanState(plan, place.scope_key)
        self._place = place
        self._waits = waits
        self._lasting = lasting
        self._nodes = plan.nodes_by_id()
        self._costs = costs_of(plan)
        self._table = NodeTable(plan, place.scope_key)
        self._inbox: asyncio.Queue[_Message] = asyncio.Queue()
        self._tasks: dict[NodeRef, asyncio.Task[None]] = {}
        self._codes: dict[NodeRef, str] = {}
        self._parked: set[NodeRef] = set()
        self._hosted: dict[NodeRef, str] = {}
        """The loops that run in executions of their own, and in which place."""
        self._batch: asyncio.Task[None] | None = None
        self._unreported: list[activity_contracts.NodeEnd] = []
        self._attributes: dict[str, str] | None = None
        self._shown_skipped = 0
        """The number of the plan state's skipped nodes that are shown."""
        self._room = asyncio.Semaphore(MAX_PENDING)
        self._loops = LoopSteps(place.run_id, self.plan_state, waits)
        self._runs = {
            CostClass.OUTSIDE: self._outside,
            CostClass.ACTION: self._action,
            CostClass.WAITING: self._wait,
        }

    def accept(self, message: _Message) -> None:
        """Apply what has ended. Raises RunEnded, or the error it is given."""
        if isinstance(message, Exception):
            raise message
        if isinstance(message, activity_contracts.NodeEnd):
            self._apply(message)
            # The plan state of the worker learns of the end with the next batch of quick nodes.
            self._unreported.append(message)
        elif isinstance(message, activity_contracts.QuickNodesReply):
            self._batch = None
            for end in message.ends:
                self._apply(end)
            if message.goes_on:
                self._lasting()
            self._show(message.attributes)
        progress = message.loops if isinstance(message, activity_contracts.QuickNodesReply) else ()
        self._table.follow(self.plan_state, progress)
        workflow.set_current_details(self._table.markdown())
        if isinstance(message, activity_contracts.QuickNodesReply) and message.ended is not None:
            raise RunEnded(message.ended)

    def _show(self, attributes: dict[str, str] | None) -> None:
        """Write the run's attributes into the memo, unless this executes a part of a run alone."""
        if attributes and attributes != self._attributes and not self._place.part:
            workflow.upsert_memo({ATTRIBUTES_IN_MEMO: attributes})
            self._attributes = attributes

    async def advance(self) -> None:
        """Start the ready nodes, and wait for one to end."""
        self._start_ready()
        if self._only_waiting():
            refs = self.plan_state.skipped[self._shown_skipped :]
            skipped = [(ref.node_id, ref.scope_key) for ref in refs]
            self._shown_skipped += len(skipped)
            # Sorted, because `show_waiting` compares them with the places that are shown.
            call = activity_contracts.SuspendCall(
                self._place.run_id, sorted(self._hosted.values()), skipped
            )
            await self._waits.show_waiting(call, part=bool(self._place.part))
        self.accept(await self._inbox.get())

    def stop(self) -> None:
        for task in self._tasks.values():
            task.cancel()

    def call(self, ref: NodeRef) -> activity_contracts.NodeCall:
        return activity_contracts.NodeCall(self._place.run_id, ref.node_id, ref.scope_key)

    @property
    def ended_at(self) -> str:
        """The node that has ended the run, and the code of its failure; empty when none has."""
        ref = None if self.plan_state.ending is None else self.plan_state.ending.decisive
        if ref is None:
            return ""
        where = f" at {summary_of(self._nodes[ref.node_id])}"
        return f"{where}: {self._codes[ref]}" if ref in self._codes else where

    def _apply(self, end: activity_contracts.NodeEnd) -> None:
        if end.reply.state is activity_contracts.NodeState.CLOSED:
            raise RunEnded(CLOSED)
        if end.iterations is not None:
            self._tasks.pop(end.ref, None)
        self._table.end(end)
        if end.reply.code is not None:
            self._codes[end.ref] = end.reply.code
        self.plan_state.apply(end.event)

    def _start_ready(self) -> None:
        """Start a task for each active node, and cancel the tasks of nodes that are not active."""
        active = self.plan_state.active
        # Sorted, because the commands of a workflow must have the same order in each replay.
        for ref in sorted(self._tasks.keys() - set(active)):
            self._parked.discard(ref)
            self._hosted.pop(ref, None)
            task = self._tasks.pop(ref)
            task.cancel()
        quick = []
        for ref in active:
            if self._costs[ref.node_id] is CostClass.QUICK:
                quick.append(ref)
            elif ref not in self._tasks and not self._iterates(ref):
                self._lasting()
                self._tasks[ref] = asyncio.create_task(self.report(self._run_node(ref)))
        if quick and self._batch is None:
            self._batch = asyncio.create_task(self.report(self._run_quick(quick)))

    def _iterates(self, ref: NodeRef) -> bool:
        """True when a loop has nothing to do while its iterations run."""
        return self.plan_state.iterations(ref) is not None and ref not in self.plan_state.asking

    async def report(self, work: Coroutine[Any, Any, _Message]) -> None:
        """Do some work and queue its result, or its error, for `advance`."""
        try:
            self._inbox.put_nowait(await work)
        except Exception as error:  # noqa: BLE001  # the run's own task raises it again
            self._inbox.put_nowait(error)

    async def _run_quick(self, ready: list[NodeRef]) -> activity_contracts.QuickNodesReply:
        unreported, self._unreported = self._unreported, []
        call = activity_contracts.QuickNodesCall(
            self._place.run_id,
            [(ref.node_id, ref.scope_key) for ref in ready],
            self.plan_state.applied - len(unreported),
            unreported,
            self._place.part,
        )
        nodes = [self._nodes[ref.node_id] for ref in ready]
        return await transact(AutomationRunActivities.run_quick_nodes, call, summary_of(*nodes))

    async def _run_node(self, ref: NodeRef) -> activity_contracts.NodeEnd:
        node, cost = self._nodes[ref.node_id], self._costs[ref.node_id]
        if cost is CostClass.LOOP:
            park = partial(self._park, ref)
            end = await self._loops.step(node, ref, park, partial(self._host, ref))
        else:
            end = activity_contracts.NodeEnd(
                ref.node_id, ref.scope_key, await self._runs[cost](node, ref)
            )
        self._parked.discard(ref)
        return end

    async def _outside(self, node: PlanNode, ref: NodeRef) -> activity_contracts.NodeReply:
        async def attempts(queue: Queue, tried: int) -> activity_contracts.NodeReply:
            return await workflow.execute_activity_method(
                OUTSIDE_NODES[node.kind],
                self.call(ref),
                task_queue=queue,
                summary=summary_of(node),
                start_to_close_timeout=timedelta(seconds=node.timeout_seconds),
                heartbeat_timeout=HEARTBEAT_TIMEOUT,
                retry_policy=node_retry(node.retry, tried),
            )

        async with self._room:
            try:
                return await call_outside(attempts)
            except ActivityError as error:
                if is_cancelled_exception(error):
                    raise asyncio.CancelledError from error
                reply = await transact(
                    AutomationRunActivities.close_failed_node, self.call(ref), summary_of(node)
                )
                return reply if reply.code else replace(reply, code=_code_of(error))

    async def _action(self, node: PlanNode, ref: NodeRef) -> activity_contracts.NodeReply:
        async with self._room:
            return await self._waits.run_action(node, self.call(ref))

    async def _wait(self, node: PlanNode, ref: NodeRef) -> activity_contracts.NodeReply:
        if node.kind != NodeKind.CALL_AUTOMATION:
            return await self._park_and_wake(node, ref)
        async with self._room:
            return await self._park_and_wake(node, ref)

    async def _park_and_wake(self, node: PlanNode, ref: NodeRef) -> activity_contracts.NodeReply:
        return await self._waits.wait(node, self.call(ref), lambda waits: self._park(ref, waits))

    def _park(self, ref: NodeRef, waits: bool) -> None:
        if waits:
            self._parked.add(ref)
            self._table.park(ref)
            self._inbox.put_nowait(None)
        else:
            self._parked.discard(ref)
            self._table.unpark(ref)

    def _host(self, ref: NodeRef, place: str | None) -> None:
        if place is None:
            self._hosted.pop(ref, None)
        else:
            self._hosted[ref] = place
            # Nothing has ended, but `advance` must look whether only waits are left.
            self._inbox.put_nowait(None)

    def _only_waiting(self) -> bool:
        """True when every active node waits, or is executed by a child.

        A loop whose iterations run here counts as such a node.
        """
        waiting = self._parked | self._hosted.keys()
        if not waiting:
            return False
        return all(ref in waiting or self._iterates(ref) for ref in self.plan_state.active)


def _code_of(error: ActivityError) -> str | None:
    """The name our activities give a failure; None for one that is no word of ours."""
    return error.cause.type if isinstance(error.cause, ApplicationError) else None


_FAILED = frozenset({activity_contracts.NodeState.FAILED, activity_contracts.NodeState.ABORTED})


class NodeTable:
    """One line per node: its state, the progress of a loop, the number of iterations in each state.

    Nodes not reached yet are not shown.
    """

    def __init__(self, plan: Plan, scope_key: str = "") -> None:
        self._nodes = plan.nodes_by_id()
        self._scope_key = scope_key
        self._states: dict[str, tuple[str, int]] = {}
        self._inside: dict[str, dict[str, int]] = {}
        """For nodes in iterations, the number in each state."""
        self._progress: dict[str, str] = {}
        self._parked: set[NodeRef] = set()

    def end(self, end: activity_contracts.NodeEnd) -> None:
        if end.iterations is not None:
            return
        state = "failed" if end.reply.state in _FAILED else "succeeded"
        self._parked.discard(end.ref)
        if end.scope_key == self._scope_key:
            self._states[end.node_id] = (state, end.reply.attempt)
        else:
            counts = self._inside.setdefault(end.node_id, {})
            counts[state] = counts.get(state, 0) + 1

    def park(self, ref: NodeRef) -> None:
        self._parked.add(ref)

    def unpark(self, ref: NodeRef) -> None:
        self._parked.discard(ref)

    def follow(
        self, plan_state: PlanState, loops: Iterable[activity_contracts.LoopProgress] = ()
    ) -> None:
        """Show what the plan state says of the other nodes, and the progress of loops."""
        active = plan_state.active
        self._parked.intersection_update(active)
        for counts in self._inside.values():
            counts.update(running=0, waiting=0)
        for ref in active:
            self._show_open(ref, plan_state)
        going = {ref.node_id for ref in active if ref.scope_key == self._scope_key}
        for ref in plan_state.skipped:
            self._states[ref.node_id] = ("skipped", 0)
        for node_id, (state, attempt) in self._states.items():
            if state in {"running", "waiting"} and node_id not in going:
                self._states[node_id] = ("cancelled", attempt)
        for loop in loops:
            if loop.scope_key == self._scope_key:
                self._progress[loop.node_id] = _share(loop.ended, loop.count)

    def _show_open(self, ref: NodeRef, plan_state: PlanState) -> None:
        state = "waiting" if ref in self._parked else "running"
        if ref.scope_key != self._scope_key:
            counts = self._inside.setdefault(ref.node_id, {})
            counts[state] = counts.get(state, 0) + 1
            return
        self._states[ref.node_id] = (state, 1)
        loop = plan_state.iterations(ref)
        if loop is not None:
            self._progress[ref.node_id] = _share(loop.ended, None if loop.more else loop.count)

    def markdown(self) -> str:
        """A table with one line per node, in the order they were reached."""
        lines = ["| Node | Kind | Status | Attempt |", "|---|---|---|---|"]
        for node_id, (state, attempt) in self._states.items():
            shown = f"{MARKS[state]} {state} {self._progress.get(node_id, '')}".rstrip()
            lines.append(f"| {self._named(node_id)} | {shown} | {attempt or '-'} |")
        for node_id, counts in self._inside.items():
            shown = " · ".join(f"{MARKS[state]} {counts[state]}" for state in MARKS
                               if counts.get(state))  # fmt: skip
            lines.append(f"| {self._named(node_id)} | {shown} | - |")
        return "\n".join(lines)

    def _named(self, node_id: str) -> str:
        node = self._nodes[node_id]
        label = " ".join((node.label or node.id).split()).replace("|", "\\|")
        return f"{label} | {node.kind}"


def _share(ended: int, count: int | None) -> str:
    """The progress of a loop; the count of a repeat is not known."""
    return str(ended) if count is None else f"{ended}/{count}"


ALLOWANCE = 1.0001
"""Factor on the limit: a wait as long as the limit ends before the deadline does."""


class RunEnded(Exception):  # noqa: N818  # not an error: it carries how the run ended
    """The run's row is closed, so its workflow has nothing left to do."""

    retryable = False


async def expire(run_id: str, limit_seconds: float, began: float) -> NoReturn:
    """Close the run when it has exceeded its time limit. Raises RunEnded then."""
    # The time of the workflow, since the clock of the machine differs in a replay.
    left = limit_seconds * ALLOWANCE - (workflow.time() - began)
    await workflow.sleep(timedelta(seconds=max(0.0, left)), summary="Run time limit")
    raise RunEnded(await transact(AutomationRunActivities.expire, run_id))
