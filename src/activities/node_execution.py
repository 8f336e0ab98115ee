"""The frame around a node's transaction: gate, repetition, failure."""

import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from activities.contracts import NodeCall, NodeReply, NodeState
from activities.graphs import ExecutableNode, GraphCache
from activities.nodes.failures import DATABASE_AWAY, Failure, failure_of
from activities.nodes.invocation import NodeResult
from models.automation_runs import execution
from models.automation_runs.errors import RunClosedError
from models.automation_runs.execution import NodeKey
from models.automation_runs.gate import RunContext, pass_gate
from models.automation_runs.rules import NodeStatus
from models.automations.rules.kinds import NodeKind
from runtime.database import Database, UnitOfWork

CLOSED = NodeReply(NodeState.CLOSED)
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class OpenNode:
    """A node inside the transaction that passed the run's gate."""

    work: UnitOfWork
    context: RunContext
    node: ExecutableNode
    key: NodeKey


class NodeExecution:
    """Runs bodies of nodes behind the gate of their run."""

    def __init__(self, database: Database, graphs: GraphCache) -> None:
        self._database = database
        self._graphs = graphs

    async def behind_gate(
        self,
        call: NodeCall,
        body: Callable[[OpenNode], Awaitable[_Result]],
        *,
        exclusive: bool = False,
    ) -> _Result | NodeReply:
        """One transaction: gate, then `body`, unless the node has ended before.

        A body that raises leaves no trace but the node's failure, written in a transaction of its
        own. A closed run answers CLOSED. Raises only what a repetition may mend.
        """
        try:
            return await self._transaction(call, body, exclusive=exclusive)
        except DATABASE_AWAY:
            raise
        except Exception as error:  # noqa: BLE001  # whatever a node raises is that node's failure
            return await self.fail(call, failure_of(error))

    async def fail(self, call: NodeCall, failure: Failure, attempt: int = 1) -> NodeReply:
        """Write a node's final failure."""

        async def body(node: OpenNode) -> NodeReply:
            await execution.fail_node(
                node.work,
                node.context,
                node.key,
                code=failure.code,
                message=failure.message,
                attempt=attempt,
            )
            return NodeReply(NodeState.FAILED, attempt=attempt)

        return await self._transaction(call, body)

    async def _transaction(
        self,
        call: NodeCall,
        body: Callable[[OpenNode], Awaitable[_Result]],
        *,
        exclusive: bool = False,
    ) -> _Result | NodeReply:
        run_id = uuid.UUID(call.run_id)
        try:
            async with self._database.transaction() as work:
                context = await pass_gate(
                    work, run_id, call.node_id, call.scope_key, exclusive=exclusive
                )
                graph = await self._graphs.get(work, context.automation_id, context.graph_checksum)
                node = graph.nodes[call.node_id]
                if (ended := recorded(context, node.kind)) is not None:
                    return ended
                key = NodeKey(run_id, call.node_id, call.scope_key, node.kind)
                return await body(OpenNode(work, context, node, key))
        except RunClosedError:
            return CLOSED


def recorded(context: RunContext, kind: str) -> NodeReply | None:
    """How the node has ended already, when this call is a repetition; None while it is open."""
    attempt = context.node_attempt or 1
    if context.node_status == NodeStatus.FAILED:
        return NodeReply(NodeState.FAILED, attempt=attempt)
    if context.node_status == NodeStatus.SUCCEEDED:
        return reply(kind, context.node_outcome or "always", context.node_case_key, attempt)
    if context.node_status == NodeStatus.CANCELLED:
        return CLOSED
    return None


def succeeded(kind: str, result: NodeResult) -> NodeReply:
    """The reply of a node that ended with `result`."""
    return reply(kind, result.outcome, result.case_key)


def reply(kind: str, outcome: str, case_key: str | None, attempt: int = 1) -> NodeReply:
    """A success as the workflow hears it; a stop node says how the run ends."""
    if kind == NodeKind.STOP:
        state = NodeState.ABORTED if outcome == "failed" else NodeState.STOPPED
        return NodeReply(state)
    return NodeReply(NodeState.SUCCEEDED, outcome, case_key, attempt)
