"""The transactions of a node that runs an action: the run is accepted, and its end is the node's.

The node's workflow starts the run as its child and awaits it. The node's retries are the retries of
that child: each attempt continues at the step that has not ended.
"""

from collections.abc import Callable, Sequence
from typing import Any

from temporalio import activity

from activities.automation_runs.node_execution import (
    CLOSED,
    CalledNode,
    GatedNode,
    NodeExecution,
    kept_output,
)
from activities.automation_runs.nodes.effects import without_credentials
from activities.automation_runs.nodes.invocation import NodeResult, failure_of
from activities.automation_runs.nodes.resolution import resolve_parameters, substitute
from activities.automation_runs.runs import RunCache
from activities.contracts import CalledRun, NodeCall, NodeReply, NodeState, ParkReply, WakeCall
from models.automation.action_runs.execution import NODE_ENDED, EndedRun, abandon, find_end
from models.automation.action_runs.rules import ActionRunStatus
from models.automation.action_runs.store import (
    ActionRequest,
    AskingNode,
    accept,
    runnable_action,
    start_request,
    summary_of,
)
from models.automation.actions.store import find_action
from models.automation.automation_runs import node_writes
from models.automation.automation_runs.node_writes import NodeKey
from models.automation.automation_runs.rules import NodeError
from models.core.base import Id, JsonObject
from runtime.database import Database
from runtime.derived_ids import derived_id
from runtime.errors import NotFoundError
from runtime.ids import parse_id
from runtime.temporal.families import Family


class ActionNodeActivities:
    """Runs of actions that nodes ask for."""

    def __init__(self, database: Database, runs: RunCache) -> None:
        self._database = database
        self._nodes = NodeExecution(database, runs)

    def all(self) -> Sequence[Callable[..., Any]]:
        """Every activity of this class, for registration."""
        return (self.begin, self.end)

    @activity.defn(name="begin_action_node")
    async def begin(self, call: NodeCall) -> ParkReply:
        """Show the node as running and accept its action run. A node that needs none ends here."""

        async def begin(invocation: CalledNode) -> NodeReply:
            substituted = substitute(invocation.run, invocation.node)
            if substituted is not None:
                return await self._nodes.complete_with_gate(invocation, substituted, None)
            resolved = await resolve_parameters(self._database, invocation)

            async def body(node: GatedNode) -> NodeReply:
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

        async def body(node: GatedNode) -> NodeReply:
            key = node.invocation.key
            run_id = action_run_id(key)
            end = await find_end(node.work, run_id)
            if end is None:
                # As where a wait has no row.
                return CLOSED
            if end.status is ActionRunStatus.STARTED:
                status = ActionRunStatus.CANCELLED
                await abandon(node.work, key.workspace_id, run_id, status, NODE_ENDED)
                seconds = node.invocation.node.timeout_seconds
                return await node.fail("timeout", f"The node timed out after {seconds:g} s.")
            try:
                return await node.complete(_result(end), None, node.before.attempt or 1)
            except NodeError as error:
                return await node.fail(
                    error.failure_code, error.message, kept_output(failure_of(error))
                )

        async def end(invocation: CalledNode) -> NodeReply:
            return await self._nodes.behind_gate(invocation, body)

        return await self._nodes.guarded(call.node, end)


def action_run_id(node: NodeKey) -> Id:
    """The id of the action run of a node in a scope; the same for every attempt."""
    return derived_id("action-run", f"{node.run_id}:{node.node_id}:{node.scope_key}")


async def _accepted(node: GatedNode, parameters: JsonObject) -> ParkReply:
    """Accept the run of a node unless an earlier call did. Raises what makes the node fail."""
    work, run, key = node.work, node.invocation.run.header, node.invocation.key
    action_id = parse_id(node.invocation.node.action_id or "")
    if action_id is None:
        raise NotFoundError("action")
    run_id = action_run_id(key)
    if await find_end(work, run_id) is None:
        action = await runnable_action(work, run.workspace_id, action_id)
        chain = (*run.chain, run.run_id)
        asking = AskingNode(run.run_id, key.node_id, key.scope_key, chain)
        await accept(work, run.actor, action, ActionRequest(run_id, parameters, asking))
        shown = without_credentials(parameters)
        await node_writes.start_node(work, key, node.before, inputs=shown, attempt=1)
    else:
        action = await find_action(work, run.workspace_id, action_id)
    request = start_request(action_id, summary_of(action))
    called = CalledRun(str(run_id), str(run.workspace_id), dict(request), Family.ACTION_RUN)
    return ParkReply(NodeState.WAITING, seconds=None, called=called)


def _result(end: EndedRun) -> NodeResult:
    """The node's result, which is that of the last step. Raises NodeError."""
    if end.status is ActionRunStatus.SUCCEEDED:
        return NodeResult(end.result or {})
    if end.status is ActionRunStatus.CANCELLED:
        raise NodeError("cancelled", "The run of the action was cancelled.")
    code, message = end.error_code or "action_failed", end.error or "The action failed."
    raise NodeError(code, message, output=end.result)
