"""The activities of an action run, and the transactions of a node that runs one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from activities.action_runs.steps import ENDED, OUTSIDE, ActionSteps, Attempt, StepState
from activities.automation_runs import node_execution
from activities.automation_runs.nodes.effects import without_credentials
from activities.automation_runs.nodes.invocation import Failure, NodeResult, failure_of
from activities.automation_runs.nodes.resolution import resolve_parameters, substitute
from activities.automation_runs.runs import RunCache
from activities.contracts import CalledRun, NodeCall, NodeReply, NodeState, ParkReply, WakeCall
from activities.database_errors import awaiting_database
from activities.endings import CLOSED
from activities.heartbeats import heartbeats
from models.automation.action_runs import execution, store
from models.automation.action_runs.rules import ActionRunStatus
from models.automation.actions.store import find_action
from models.automation.automation_runs import node_writes
from models.automation.automation_runs.rules import NodeError, RunClosedError
from models.automation.automations.rules.planner.plan import PlanRetry
from models.core.base import Id, JsonObject
from runtime.database import Database
from runtime.derived_ids import derived_id
from runtime.errors import NotFoundError
from runtime.ids import parse_id
from runtime.processes.fault_injection import FaultPoint, inject_fault
from runtime.temporal.workflow_kinds import WorkflowKind

OVERDUE = "The attempt timed out, or its worker was lost."


@dataclass(frozen=True, slots=True)
class StepCall:
    """One step of a run. `attempt` counts the attempts of the whole run; `last`: none follows."""

    run_id: str
    step_id: str
    attempt: int = 1
    last: bool = True


@dataclass(frozen=True, slots=True)
class AttemptCall:
    """A later attempt of a run that a node requested."""

    run_id: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Turn:
    """The next turn of an execution: a step that leaves the machine or waits, or its end.

    A step that waits has `called` a run, and awaits its end for `seconds`.
    """

    ended: str | None = None
    step_id: str = ""
    retry: PlanRetry | None = None
    called: CalledRun | None = None
    seconds: float = 0


class ActionRunActivities:
    """The activities of the workflow `ActionRun`."""

    def __init__(self, database: Database, steps: ActionSteps) -> None:
        self._database = database
        self._steps = steps

    def all(self) -> Sequence[Callable[..., Any]]:
        """Every activity but `step`, which runs on another queue, for registration."""
        return (
            self.advance,
            self.begin_attempt,
            self.end_call,
            self.close_lost_step,
            self.close_cancelled_action_run,
        )

    @activity.defn(name="advance_action_run")
    async def advance(self, run_id: str) -> Turn:
        """Execute the steps that are one transaction each, up to one that is not, or to the end."""
        try:
            async with self._database.transaction() as work:
                header = await execution.load_header(work, Id(run_id))
                statuses = await execution.load_statuses(work, header)
        except RunClosedError:
            return Turn(ended=CLOSED)
        for step in header.steps:
            reply = ENDED.get(statuses[step.id])
            if reply is None and step.kind in OUTSIDE:
                return Turn(step_id=step.id, retry=step.retry)
            attempt = Attempt(header, step)
            reply = reply or await self._steps.attempt(attempt)
            if reply.state is StepState.WAITING:
                return await self._waiting(attempt)
            if reply.state is StepState.CLOSED:
                return Turn(ended=CLOSED)
            if reply.state is StepState.FAILED and not step.continue_on_error:
                break
        return Turn(ended=await self._finish(header))

    async def _waiting(self, attempt: Attempt) -> Turn:
        try:
            awaited = await self._steps.awaited(attempt)
        except RunClosedError:
            return Turn(ended=CLOSED)
        step_id = attempt.step.id
        return Turn(step_id=step_id, called=awaited.run, seconds=awaited.seconds)

    @activity.defn(name="end_called_step")
    async def end_call(self, call: StepCall) -> None:
        """End a step whose called run has ended, or has taken too long."""
        try:
            header = await self._header(call.run_id)
        except RunClosedError:
            return
        await self._steps.end_call(Attempt(header, header.step(call.step_id)))

    @activity.defn(name="begin_action_attempt")
    async def begin_attempt(self, call: AttemptCall) -> None:
        """Show another attempt of the node that asked, and what became of the one before."""
        try:
            header = await self._header(call.run_id)
            if header.node is not None:
                await self._begin_attempt(header.node, call.attempt)
        except RunClosedError:
            return

    async def _begin_attempt(self, node: node_writes.NodeKey, attempt: int) -> None:
        async with self._database.transaction() as work:
            before = await node_writes.pass_gate(work, node.run_id, node.node_id, node.scope_key)
            if before.attempt is not None and before.attempt < attempt:
                # An attempt that failed in order is recorded; this one did not end.
                await node_writes.record_attempt(
                    work, node, attempt=before.attempt, code="timeout", message=OVERDUE
                )
                await node_writes.begin_attempt(work, node, attempt)

    @activity.defn(name="run_action_step")
    async def step(self, call: StepCall) -> str:
        """One attempt of a step that leaves the machine; only codes enter history."""
        number = activity.info().attempt
        async with heartbeats():
            try:
                header = await awaiting_database(lambda: self._header(call.run_id))
            except RunClosedError:
                return CLOSED
            step = header.step(call.step_id)
            final = number >= step.attempts
            attempt = Attempt(header, step, number, last=call.last and final)
            reply = await awaiting_database(lambda: self._steps.attempt(attempt))
            if reply.failure is None:
                return reply.state
            if final:
                failure = reply.failure
                await awaiting_database(lambda: self._record(header, call.attempt, failure))
        raise _again(reply.failure)

    async def _record(
        self, header: execution.ActionRunHeader, attempt: int, failure: Failure
    ) -> None:
        """Record the failure of an attempt of the node that asked."""
        assert header.node is not None, "only a node's run is tried again as a whole"
        async with self._database.transaction() as work:
            await node_writes.record_attempt(
                work, header.node, attempt=attempt, code=failure.code, message=failure.message
            )

    @activity.defn(name="close_lost_action_step")
    async def close_lost_step(self, call: StepCall) -> None:
        """Make sure a step whose activity failed is shown as failed."""
        try:
            header = await self._header(call.run_id)
        except RunClosedError:
            return
        await self._steps.lost(Attempt(header, header.step(call.step_id)))

    @activity.defn(name="close_cancelled_action_run")
    async def close_cancelled_action_run(self, run_id: str) -> None:
        """Close the run of a workflow that an operator cancelled; no change to a closed run."""
        try:
            header = await self._header(run_id)
        except RunClosedError:
            return
        async with self._database.transaction() as work:
            asked = await execution.node_is_open(work, header)
            reason = "Cancelled in Temporal." if asked else execution.NODE_ENDED
            status = ActionRunStatus.CANCELLED
            await execution.abandon(work, header.workspace_id, header.run_id, status, reason)

    async def _header(self, run_id: str) -> execution.ActionRunHeader:
        async with self._database.transaction() as work:
            return await execution.load_header(work, Id(run_id))

    async def _finish(self, header: execution.ActionRunHeader) -> str:
        inject_fault(FaultPoint.BEFORE_TERMINAL_WRITE, header.run_id)
        async with self._database.transaction() as work:
            end = await execution.finish(work, header)
        inject_fault(FaultPoint.AFTER_TERMINAL_WRITE, header.run_id)
        return end.status


def _again(failure: Failure) -> ApplicationError:
    delay = failure.retry_after
    return ApplicationError(
        failure.code,
        type=failure.code,
        next_retry_delay=None if delay is None else timedelta(seconds=delay),
        category=ApplicationErrorCategory.BENIGN,
    )


class ActionNodeActivities:
    """Runs of actions that nodes ask for."""

    def __init__(self, database: Database, runs: RunCache) -> None:
        self._database = database
        self._nodes = node_execution.NodeExecution(database, runs)

    def all(self) -> Sequence[Callable[..., Any]]:
        """Every activity of this class, for registration."""
        return (self.begin, self.end)

    @activity.defn(name="begin_action_node")
    async def begin(self, call: NodeCall) -> ParkReply:
        """Show the node as running and accept its action run. A node that needs none ends here."""

        async def begin(invocation: node_execution.CalledNode) -> NodeReply:
            substituted = substitute(invocation.run, invocation.node)
            if substituted is not None:
                return await self._nodes.complete_with_gate(invocation, substituted, None)
            resolved = await resolve_parameters(self._database, invocation)

            async def body(node: node_execution.GatedNode) -> NodeReply:
                return await _accepted(node, resolved.parameters)

            return await self._nodes.behind_gate(invocation, body)

        reply = await self._nodes.guarded(call, begin)
        if isinstance(reply, ParkReply):
            return reply
        return ParkReply(reply.state, reply.outcome, reply.case_key, reply.attempt)

    @activity.defn(name="end_action_node")
    async def end(self, call: WakeCall) -> NodeReply:
        """End the node the way its action run ended.

        A run that is still open took longer than the node may: both are closed.
        """

        async def body(node: node_execution.GatedNode) -> NodeReply:
            key = node.invocation.key
            run_id = action_run_id(key)
            end = await execution.find_end(node.work, run_id)
            if end is None:
                # As where a wait has no row.
                return node_execution.CLOSED
            if end.status is ActionRunStatus.STARTED:
                status = ActionRunStatus.CANCELLED
                await execution.abandon(
                    node.work, key.workspace_id, run_id, status, execution.NODE_ENDED
                )
                seconds = node.invocation.node.timeout_seconds
                return await node.fail("timeout", f"The node timed out after {seconds:g} s.")
            try:
                return await node.complete(_result(end), None, node.before.attempt or 1)
            except NodeError as error:
                return await node.fail(
                    error.failure_code, error.message, node_execution.kept_output(failure_of(error))
                )

        async def end(invocation: node_execution.CalledNode) -> NodeReply:
            return await self._nodes.behind_gate(invocation, body)

        return await self._nodes.guarded(call.node, end)


def action_run_id(node: node_writes.NodeKey) -> Id:
    """The id of the action run of a node in a scope; the same for every attempt."""
    return derived_id("action-run", f"{node.run_id}:{node.node_id}:{node.scope_key}")


async def _accepted(node: node_execution.GatedNode, parameters: JsonObject) -> ParkReply:
    """Accept the run of a node unless an earlier call did. Raises what makes the node fail."""
    work, run, key = node.work, node.invocation.run.header, node.invocation.key
    action_id = parse_id(node.invocation.node.action_id or "")
    if action_id is None:
        raise NotFoundError("action")
    run_id = action_run_id(key)
    if await execution.find_end(work, run_id) is None:
        action = await store.runnable_action(work, run.workspace_id, action_id)
        chain = (*run.chain, run.run_id)
        asking = store.AskingNode(run.run_id, key.node_id, key.scope_key, chain)
        await store.accept(work, run.actor, action, store.ActionRequest(run_id, parameters, asking))
        shown = without_credentials(parameters)
        await node_writes.start_node(work, key, node.before, inputs=shown, attempt=1)
    else:
        action = await find_action(work, run.workspace_id, action_id)
    request = store.start_request(action_id, store.summary_of(action))
    called = CalledRun(str(run_id), str(run.workspace_id), dict(request), WorkflowKind.ACTION_RUN)
    return ParkReply(NodeState.WAITING, seconds=None, called=called)


def _result(end: execution.EndedRun) -> NodeResult:
    """The node's result, which is that of the last step. Raises NodeError."""
    if end.status is ActionRunStatus.SUCCEEDED:
        return NodeResult(end.result or {})
    if end.status is ActionRunStatus.CANCELLED:
        raise NodeError("cancelled", "The run of the action was cancelled.")
    code, message = end.error_code or "action_failed", end.error or "The action failed."
    raise NodeError(code, message, output=end.result)
