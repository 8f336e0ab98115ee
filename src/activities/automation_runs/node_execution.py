"""The work around every node: gate, repetition, failure."""

import json
import random
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.automation_runs.graphs import ExecutableNode
from activities.automation_runs.node_batch import NodeBatch
from activities.automation_runs.nodes.failures import Failure, failure_of
from activities.automation_runs.nodes.invocation import NodeResult
from activities.automation_runs.runs import OpenRun, RunCache
from activities.contracts import NodeCall, NodeReply, NodeState
from activities.database_errors import is_away
from models.automation.automation_runs import gated_writes, node_writes
from models.automation.automation_runs.errors import NodeError, NodeWrittenError, RunClosedError
from models.automation.automation_runs.gate import NodeRow, pass_gate
from models.automation.automation_runs.node_writes import Completion, NodeKey
from models.automation.automation_runs.rules import NodeStatus
from models.automation.automations.rules.graph.kinds import NodeKind
from models.core.base import JsonObject
from runtime import steps
from runtime.bounded_processes import CrowdedError, evaluating_for
from runtime.database import Database, UnitOfWork

CLOSED = NodeReply(NodeState.CLOSED)
_LONGEST_PAUSE = 30.0
"""Seconds until a node that found its workspace evaluating too much is tried again, at most."""
OUTPUT_LIMIT = 1024 * 1024
"""Bytes of a node's output as JSON (decisions C3)."""

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class CalledNode:
    """The node a call is about, in its open run."""

    run: OpenRun
    node: ExecutableNode
    key: NodeKey


@dataclass(frozen=True, slots=True)
class GatedNode:
    """A node inside the transaction that passed its run's gate; `before` is its row until now."""

    work: UnitOfWork
    invocation: CalledNode
    before: NodeRow

    async def complete(
        self, result: NodeResult, inputs: JsonObject | None, attempt: int = 1
    ) -> NodeReply:
        """Write the node's success and make it the reply."""
        await node_writes.complete_node(
            self.work, self.invocation.key, self.before, completion(result, inputs, attempt)
        )
        return success(self.invocation.node.kind, result.outcome, result.case_key, attempt)

    async def fail(self, code: str, message: str, output: JsonObject | None = None) -> NodeReply:
        """Write the node's final failure, which ends the attempt shown, and make it the reply."""
        attempt = self.before.attempt or 1
        await node_writes.fail_node(
            self.work,
            self.invocation.key,
            self.before,
            code=code,
            message=message,
            attempt=attempt,
            output=output,
        )
        return NodeReply(NodeState.FAILED, attempt=attempt, code=code)


class NodeExecution:
    """Runs bodies of nodes behind the gate of their run."""

    def __init__(self, database: Database, runs: RunCache) -> None:
        self.database = database
        self._runs = runs

    async def called(self, call: NodeCall) -> CalledNode:
        """The node of a call. Raises RunClosedError when its run is not open."""
        run = await self._runs.get(uuid.UUID(call.run_id))
        if activity.in_activity() and activity.info().is_local:
            # Local activities are few, and repeated until they succeed: a workspace that waits for
            # its long evaluations leaves them to others meanwhile.
            evaluating_for.set(run.header.workspace_id)
        node = run.graph.nodes[call.node_id]
        steps.announce(f'Node "{node.label or node.id}"')
        key = NodeKey(
            run.header.workspace_id, run.header.run_id, call.node_id, call.scope_key, node.kind
        )
        return CalledNode(run, node, key)

    async def guarded(
        self,
        call: NodeCall,
        work: Callable[[CalledNode], Awaitable[_Result]],
        batch: NodeBatch | None = None,
    ) -> _Result | NodeReply:
        """Do a node's work; whatever it raises becomes the node's failure, written after the batch.

        The reply for a closed run is CLOSED. Raises only what a repetition may mend.
        """
        try:
            return await work(await self.called(call))
        except RunClosedError:
            return CLOSED
        except CrowdedError as error:
            raise _later(error) from None
        except Exception as error:
            if is_away(error):
                raise
            if batch is not None:
                await batch.write()
            return await self.fail(call, failure_of(error))

    async def behind_gate(
        self,
        invocation: CalledNode,
        body: Callable[[GatedNode], Awaitable[_Result]],
        *,
        exclusive: bool = False,
    ) -> _Result | NodeReply:
        """One transaction: gate, then `body`, unless the node has ended before.

        It is made again when another execution of the node was faster, and then finds what that one
        has written. A body that raises leaves no trace. Raises RunClosedError.
        """
        while True:
            try:
                async with self.database.transaction() as work:
                    return await _gated(work, invocation, body, exclusive=exclusive)
            except NodeWrittenError:
                continue

    async def complete_with_gate(
        self, invocation: CalledNode, result: NodeResult, inputs: JsonObject | None
    ) -> NodeReply:
        """Gate and success in one statement, for a node whose only effect is its output."""
        async with self.database.statement() as work:
            written = await gated_writes.complete_with_gate(
                work, invocation.key, completion(result, inputs)
            )
            if written and invocation.node.kind == NodeKind.RESPOND:
                work.answered.add(invocation.key.run_id)
        if written:
            invocation.run.keep(invocation.key.node_id, invocation.key.scope_key, result.output)
            return success(invocation.node.kind, result.outcome, result.case_key)

        async def missing(node: GatedNode) -> NodeReply:
            return await node.complete(result, inputs)

        # The run is closed or the node has ended before: the gate knows which.
        return await self.behind_gate(invocation, missing)

    async def complete_started(
        self, invocation: CalledNode, result: NodeResult, attempt: int
    ) -> NodeReply:
        """Gate and success in one statement, for a node that is shown as running."""
        async with self.database.statement() as work:
            done = completion(result, None, attempt)
            written = await gated_writes.complete_started(work, invocation.key, done)
        if written:
            return success(invocation.node.kind, result.outcome, result.case_key, attempt)

        async def missing(node: GatedNode) -> NodeReply:
            return await node.complete(result, None, attempt)

        return await self.behind_gate(invocation, missing)

    async def fail(self, call: NodeCall, failure: Failure) -> NodeReply:
        """Write a node's final failure, in a transaction of its own; it ends the attempt shown."""

        async def body(node: GatedNode) -> NodeReply:
            return await node.fail(failure.code, failure.message, kept_output(failure))

        try:
            return await self.behind_gate(await self.called(call), body)
        except RunClosedError:
            return CLOSED


def _later(error: CrowdedError) -> ApplicationError:
    """The error that makes Temporal repeat an activity after a while, longer each time."""
    attempt = activity.info().attempt if activity.in_activity() else 1
    seconds = min(_LONGEST_PAUSE, 2.0**attempt) * random.uniform(0.75, 1.0)  # noqa: S311
    return ApplicationError(
        error.message, type="crowded", next_retry_delay=timedelta(seconds=seconds)
    )


async def _gated(
    work: UnitOfWork,
    invocation: CalledNode,
    body: Callable[[GatedNode], Awaitable[_Result]],
    *,
    exclusive: bool,
) -> _Result | NodeReply:
    key = invocation.key
    before = await pass_gate(work, key.run_id, key.node_id, key.scope_key, exclusive=exclusive)
    if (ended := ended_reply(before, key.kind)) is not None:
        return ended
    return await body(GatedNode(work, invocation, before))


def completion(result: NodeResult, inputs: JsonObject | None, attempt: int = 1) -> Completion:
    """The columns written for a result. Raises NodeError for an output above the limit."""
    size = _byte_size(result.output)
    if size > OUTPUT_LIMIT:
        raise NodeError(
            "output_too_large", "The node's output is larger than 1 MiB.", output=result.output
        )
    return Completion(inputs, result.output, result.outcome, result.case_key, attempt, size)


def kept_output(failure: Failure) -> JsonObject | None:
    """The output of a failed node within the limit: where its body is too large, without it."""
    output = failure.output
    if output is not None and "body" in output and _byte_size(output) > OUTPUT_LIMIT:
        output = {**output, "body": None}
    return None if output is None or _byte_size(output) > OUTPUT_LIMIT else output


def _byte_size(output: JsonObject) -> int:
    """Bytes of an output as JSON."""
    return len(json.dumps(output, ensure_ascii=False).encode("utf-8", "replace"))


def success(kind: str, outcome: str, case_key: str | None, attempt: int = 1) -> NodeReply:
    """The reply to the workflow for a success; that of a stop node says how the run ends."""
    if kind == NodeKind.STOP:
        return NodeReply(NodeState.ABORTED if outcome == "failed" else NodeState.STOPPED)
    return NodeReply(NodeState.SUCCEEDED, outcome, case_key, attempt)


def ended_reply(before: NodeRow, kind: str) -> NodeReply | None:
    """The reply for a node that ended before this call; None while it is open."""
    attempt = before.attempt or 1
    if before.status == NodeStatus.FAILED:
        return NodeReply(NodeState.FAILED, attempt=attempt)
    if before.status == NodeStatus.SUCCEEDED:
        return success(kind, before.outcome or "always", before.case_key, attempt)
    if before.status in {NodeStatus.CANCELLED, NodeStatus.SKIPPED}:
        return CLOSED
    return None
