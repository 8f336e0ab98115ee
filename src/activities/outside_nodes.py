"""Nodes whose effect leaves the machine: one regular activity each, on the `io` queue.

The effect lies between two transactions. The first passes the gate and shows the node as running,
the second writes its end. A repetition sends the same Idempotency-Key, so that the other side can
absorb what was done before a crash.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from activities.contracts import NodeCall, NodeReply, NodeState
from activities.graphs import ExecutableNode, GraphCache
from activities.node_execution import NodeExecution, OpenNode, reply
from activities.nodes.failures import Failure, failure_of
from activities.nodes.http_request import http_request
from activities.nodes.invocation import NodeResult
from activities.nodes.preparation import prepare, substitute
from models.automation_runs import execution
from models.automations.rules.kinds import NodeKind
from models.base import JsonObject
from runtime.database import Database
from runtime.outbound.client import OutboundClient

HEARTBEAT_SECONDS = 2.0
"""A cancelled activity learns of it with a heartbeat, so this bounds how long it goes on."""

Effect = Callable[[JsonObject], Awaitable[NodeResult]]


@dataclass(frozen=True, slots=True)
class _Opened:
    """A node that is shown as running and may now do its work."""

    node: ExecutableNode
    parameters: JsonObject


class OutsideNodes:
    """One activity per outside kind, each named after the kind so that operators can read it."""

    def __init__(self, database: Database, graphs: GraphCache, outbound: OutboundClient) -> None:
        self._nodes = NodeExecution(database, graphs)
        self._outbound = outbound

    @activity.defn(name=NodeKind.HTTP_REQUEST)
    async def http_request(self, call: NodeCall) -> NodeReply:
        """Call a URL. Safe to repeat as far as the other side honours the Idempotency-Key."""
        key = f"{call.run_id}:{call.node_id}:{call.scope_key}"
        return await self._perform(call, lambda given: http_request(self._outbound, given, key))

    async def _perform(self, call: NodeCall, effect: Effect) -> NodeReply:
        attempt = activity.info().attempt
        opened = await self._nodes.behind_gate(call, _open(attempt))
        if isinstance(opened, NodeReply):
            if opened.state is NodeState.FAILED:
                raise ApplicationError("The node failed.", type="node_failed", non_retryable=True)
            return opened
        try:
            async with _heartbeats():
                result = await effect(opened.parameters)
        except Exception as error:  # noqa: BLE001  # whatever the effect raises is the node's failure
            raise await self._failed(call, opened.node, failure_of(error), attempt) from None
        return await self._nodes.behind_gate(call, _complete(opened, result, attempt))

    async def _failed(
        self, call: NodeCall, node: ExecutableNode, failure: Failure, attempt: int
    ) -> ApplicationError:
        """Record the failure of an attempt; the error to raise says whether Temporal tries again.

        Only the code enters history: messages stay in PostgreSQL (promise I8).
        """
        attempts = node.retry.max_attempts if node.retry else 1
        final = not failure.retryable or attempt >= attempts
        if final:
            await self._nodes.fail(call, failure, attempt)
        else:
            await self._nodes.behind_gate(call, _record(failure, attempt))
        return ApplicationError(
            failure.code,
            type=failure.code,
            non_retryable=final,
            next_retry_delay=(
                None if failure.retry_after is None else timedelta(seconds=failure.retry_after)
            ),
            category=ApplicationErrorCategory.BENIGN,
        )


OUTSIDE_NODES: Mapping[str, Callable[[OutsideNodes, NodeCall], Awaitable[NodeReply]]] = {
    NodeKind.HTTP_REQUEST: OutsideNodes.http_request,
}
"""The activity of each outside kind."""


def _open(attempt: int) -> Callable[[OpenNode], Awaitable[_Opened | NodeReply]]:
    async def body(node: OpenNode) -> _Opened | NodeReply:
        if node.context.node_attempt is not None:
            # Known attempts are recorded already; this one's worker went away without a word.
            await execution.record_attempt(
                node.work,
                node.context,
                node.key,
                attempt=node.context.node_attempt,
                code="interrupted",
                message="The worker that executed this attempt was lost.",
            )
        substituted = substitute(node.context, node.node)
        if substituted is not None:
            return await _write(node, None, substituted, attempt)
        prepared = await prepare(node.work, node.context, node.node)
        await execution.start_node(
            node.work,
            node.context,
            node.key,
            inputs=_without_secrets(prepared.parameters),
            attempt=attempt,
        )
        return _Opened(node.node, prepared.parameters)

    return body


def _complete(
    opened: _Opened, result: NodeResult, attempt: int
) -> Callable[[OpenNode], Awaitable[NodeReply]]:
    async def body(node: OpenNode) -> NodeReply:
        return await _write(node, _without_secrets(opened.parameters), result, attempt)

    return body


def _record(failure: Failure, attempt: int) -> Callable[[OpenNode], Awaitable[NodeReply]]:
    async def body(node: OpenNode) -> NodeReply:
        await execution.record_attempt(
            node.work,
            node.context,
            node.key,
            attempt=attempt,
            code=failure.code,
            message=failure.message,
        )
        return NodeReply(NodeState.FAILED, attempt=attempt)

    return body


async def _write(
    node: OpenNode, inputs: JsonObject | None, result: NodeResult, attempt: int
) -> NodeReply:
    await execution.complete_node(
        node.work,
        node.context,
        node.key,
        inputs=inputs,
        output=result.output,
        outcome=result.outcome,
        case_key=result.case_key,
        attempt=attempt,
    )
    return reply(node.node.kind, result.outcome, result.case_key, attempt)


def _without_secrets(parameters: JsonObject) -> JsonObject:
    """Parameters as a run may show them: credentials replaced."""
    shown: dict[str, Any] = dict(parameters)
    if shown.get("auth"):
        shown["auth"] = {"type": shown["auth"].get("type"), "redacted": True}
    if headers := shown.get("headers"):
        shown["headers"] = {
            name: "[redacted]" if name.lower() in _SECRET_HEADERS else value
            for name, value in headers.items()
        }
    return shown


_SECRET_HEADERS = frozenset({"authorization", "cookie", "proxy-authorization", "x-api-key"})


@asynccontextmanager
async def _heartbeats() -> AsyncIterator[None]:
    """Heartbeat while the block runs, so that a lost worker and a cancel are both noticed."""

    async def beat() -> None:
        while True:
            activity.heartbeat()
            await asyncio.sleep(HEARTBEAT_SECONDS)

    task = asyncio.create_task(beat())
    try:
        yield
    finally:
        task.cancel()
