"""Nodes whose effect leaves the machine: one regular activity each, on the `io` queue.

The effect lies between two transactions. The first passes the gate and shows the node as running,
the second writes its end. A repetition sends the same Idempotency-Key, so that the other server can
recognize an effect from before a crash.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar

from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from activities.automation_runs.node_execution import CalledNode, GatedNode, NodeExecution
from activities.automation_runs.nodes import invocation as node_invocation
from activities.automation_runs.nodes.effects import without_credentials
from activities.automation_runs.nodes.resolution import resolve_parameters, substitute
from activities.automation_runs.runs import ExecutableNode, RunCache
from activities.contracts import NodeCall, NodeReply, NodeState
from activities.database_errors import awaiting_database
from activities.heartbeats import heartbeats
from activities.turns import CallHeldError
from models.automation.automation_runs import node_writes
from models.automation.automation_runs.rules import NodeError
from models.automation.automations.rules.graph.kinds import NodeKind
from models.core.base import JsonObject
from runtime.database import Database
from runtime.processes.fault_injection import FaultPoint, inject_fault

CLOSING_SECONDS = 1.0
CLOSING_SHARE = 0.2
"""Seconds that an effect leaves of its activity's time, to write its end and reason; at most this
share of it.
"""
LOST_CODE, LOST = "interrupted", "The worker that executed this attempt was lost."


@dataclass(frozen=True, slots=True)
class _Opened:
    """A node that is shown as running and may now do its work.

    `attempt` counts over all executions of the run; each of them counts its own from 1.
    """

    invocation: CalledNode
    outgoing: node_invocation.Outgoing
    attempt: int


_Result = TypeVar("_Result")


class OutsideNodes:
    """One activity per outside kind, each named after the kind so that operators can read it."""

    def __init__(
        self,
        database: Database,
        runs: RunCache,
        effects: Mapping[str, node_invocation.Effect],
    ) -> None:
        self._nodes = NodeExecution(database, runs)
        self._effects = effects

    def all(self) -> Sequence[Callable[..., Any]]:
        """Every activity of this class, for registration."""
        return (self.http_request, self.send_email, self.send_webhook)

    @activity.defn(name=NodeKind.HTTP_REQUEST)
    async def http_request(self, call: NodeCall) -> NodeReply:
        """Call a URL. Safe to repeat as far as the other side honours the Idempotency-Key."""
        return await self._send(call, NodeKind.HTTP_REQUEST)

    @activity.defn(name=NodeKind.SEND_EMAIL)
    async def send_email(self, call: NodeCall) -> NodeReply:
        """Send a mail. A repetition carries the same Message-ID."""
        return await self._send(call, NodeKind.SEND_EMAIL)

    @activity.defn(name=NodeKind.SEND_WEBHOOK)
    async def send_webhook(self, call: NodeCall) -> NodeReply:
        """Send a signed event. A repetition carries the same webhook-id and body."""
        return await self._send(call, NodeKind.SEND_WEBHOOK)

    async def _send(self, call: NodeCall, kind: NodeKind) -> NodeReply:
        async with heartbeats():
            return await self._attempt(call, self._effects[kind], activity.info().attempt)

    async def _attempt(
        self, call: NodeCall, effect: node_invocation.Effect, attempt: int
    ) -> NodeReply:
        tried: set[datetime] = set()
        opening = await self._guarded(
            call, lambda invocation: self._open(invocation, attempt, tried)
        )
        if isinstance(opening, NodeReply):
            if opening.state is NodeState.FAILED:
                code = opening.code or "node_failed"
                # Raised, because Temporal shows an activity that returns as a success.
                raise ApplicationError(code, type=code, non_retryable=True)
            return opening
        try:
            async with _own_time():
                # A database that is away was asked before anything was sent.
                result = await awaiting_database(lambda: effect(opening.outgoing))
        except CallHeldError as held:
            seconds = held.seconds
            await self._guarded(call, lambda invocation: self._hold(invocation, seconds))
            raise
        except Exception as error:  # noqa: BLE001  # any error is the effect's failure
            node = opening.invocation.node
            raise await self._failed(
                call, node, node_invocation.failure_of(error), opening.attempt
            ) from None
        inject_fault(FaultPoint.AFTER_CALL_BEFORE_END, call.run_id)
        return await self._guarded(
            call,
            lambda invocation: self._nodes.complete_started(invocation, result, opening.attempt),
        )

    async def _guarded(
        self, call: NodeCall, work: Callable[[CalledNode], Awaitable[_Result]]
    ) -> _Result | NodeReply:
        return await awaiting_database(lambda: self._nodes.guarded(call, work))

    async def _open(
        self, invocation: CalledNode, attempt: int, tried: set[datetime]
    ) -> _Opened | NodeReply:
        """Show an attempt as running. `tried` are the moments at which this one may have been."""
        substituted = substitute(invocation.run, invocation.node)
        if substituted is not None:
            return await self._nodes.complete_with_gate(invocation, substituted, None)
        parameters = (await resolve_parameters(self._nodes.database, invocation)).parameters
        inputs = without_credentials(parameters)
        if attempt == 1:
            async with self._nodes.database.statement() as work:
                tried.add(work.now)
                if await node_writes.start_with_gate(work, invocation.key, inputs):
                    outgoing = _outgoing(invocation, parameters, attempt, invocation.key.began_at)
                    return _Opened(invocation, outgoing, attempt)

        async def body(node: GatedNode) -> _Opened | NodeReply:
            before, now = node.before, node.work.now
            number = max(attempt, before.attempt or 0)
            if before.waits:
                # It was held before it called a server: this is the same attempt.
                tried.add(before.attempt_started_at or now)
            if before.attempt is not None and before.attempt_started_at not in tried:
                await _record_lost(node, before.attempt)
                number = max(attempt, before.attempt + 1)
            if number > _attempts(invocation.node):
                return await node.fail(LOST_CODE, LOST)
            tried.add(now)
            await node_writes.start_node(
                node.work, invocation.key, before, inputs=inputs, attempt=number
            )
            began = before.started_at or invocation.key.began_at
            return _Opened(invocation, _outgoing(invocation, parameters, number, began), number)

        return await self._nodes.behind_gate(invocation, body)

    async def _hold(self, invocation: CalledNode, seconds: float) -> NodeReply:
        """Show that a node waits for its turn, and until when."""

        async def body(node: GatedNode) -> NodeReply:
            await node_writes.hold_node(node.work, invocation.key, node.before, seconds=seconds)
            return NodeReply(NodeState.WAITING)

        return await self._nodes.behind_gate(invocation, body)

    async def _failed(
        self, call: NodeCall, node: ExecutableNode, failure: node_invocation.Failure, attempt: int
    ) -> ApplicationError:
        """Record the failure of an attempt; the error to raise says whether Temporal tries again.

        Only the code enters history: messages stay in PostgreSQL (architecture.md#no-user-data).
        """
        final = not failure.retryable or attempt >= _attempts(node)
        if final:
            await awaiting_database(lambda: self._nodes.fail(call, failure))
        else:
            await self._guarded(call, lambda invocation: self._record(invocation, failure, attempt))
        return ApplicationError(
            failure.code,
            type=failure.code,
            non_retryable=final,
            next_retry_delay=(
                None if failure.retry_after is None else timedelta(seconds=failure.retry_after)
            ),
            category=ApplicationErrorCategory.BENIGN,
        )

    async def _record(
        self, invocation: CalledNode, failure: node_invocation.Failure, attempt: int
    ) -> NodeReply:
        async def body(node: GatedNode) -> NodeReply:
            await node_writes.record_attempt(
                node.work,
                invocation.key,
                attempt=attempt,
                code=failure.code,
                message=failure.message,
            )
            return NodeReply(NodeState.FAILED, attempt=attempt)

        return await self._nodes.behind_gate(invocation, body)


OUTSIDE_NODES: Mapping[str, Callable[[OutsideNodes, NodeCall], Awaitable[NodeReply]]] = {
    NodeKind.HTTP_REQUEST: OutsideNodes.http_request,
    NodeKind.SEND_EMAIL: OutsideNodes.send_email,
    NodeKind.SEND_WEBHOOK: OutsideNodes.send_webhook,
}
"""The activity of each outside kind."""


def _attempts(node: ExecutableNode) -> int:
    """The greatest number of tries of a node."""
    return node.retry.max_attempts if node.retry else 1


async def _record_lost(node: GatedNode, attempt: int) -> None:
    """Record an attempt whose end is not written; one that ended in order is recorded."""
    await node_writes.record_attempt(
        node.work, node.invocation.key, attempt=attempt, code=LOST_CODE, message=LOST
    )


def _outgoing(
    invocation: CalledNode, parameters: JsonObject, attempt: int, began_at: datetime
) -> node_invocation.Outgoing:
    key = invocation.key
    node_invocation.check_named(parameters, invocation.node.parameters)
    return node_invocation.Outgoing(
        workspace_id=key.workspace_id,
        parameters=parameters,
        key=f"{key.run_id}:{key.node_id}:{key.scope_key}",
        began_at=began_at,
        last=attempt >= _attempts(invocation.node),
        actor=invocation.run.header.actor_of(key.node_id),
    )


@asynccontextmanager
async def _own_time() -> AsyncIterator[None]:
    """Bound the block by the time of its attempt. Raises NodeError, to be repeated."""
    given = activity.info().start_to_close_timeout
    assert given is not None, "the workflow sets it from the node"
    seconds = given.total_seconds()
    try:
        async with asyncio.timeout(seconds - min(CLOSING_SECONDS, seconds * CLOSING_SHARE)):
            yield
    except TimeoutError:
        raise NodeError(
            "timeout", f"The node timed out after {seconds:g} s.", retryable=True
        ) from None
