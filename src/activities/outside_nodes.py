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
from activities.graphs import ExecutableNode
from activities.heartbeats import heartbeats
from activities.node_execution import CalledNode, GatedNode, NodeExecution
from activities.nodes.failures import Failure, failure_of
from activities.nodes.http_request import http_request
from activities.nodes.invocation import NodeResult
from activities.nodes.preparation import prepare, substitute
from activities.runs import RunCache
from models.automation_runs import node_writes
from models.automation_runs.errors import NodeError
from models.automations.rules.kinds import NodeKind
from models.base import JsonObject
from runtime.database import Database
from runtime.outbound.client import OutboundClient
from runtime.trigger_points import Point, reach

LAST_WORDS_SECONDS = 1.0
"""What an effect leaves of its activity's time, so that its end is written and its reason kept."""

Effect = Callable[[JsonObject], Awaitable[NodeResult]]


@dataclass(frozen=True, slots=True)
class _Opened:
    """A node that is shown as running and may now do its work."""

    node: ExecutableNode
    parameters: JsonObject


class OutsideNodes:
    """One activity per outside kind, each named after the kind so that operators can read it."""

    def __init__(self, database: Database, runs: RunCache, outbound: OutboundClient) -> None:
        self._nodes = NodeExecution(database, runs)
        self._outbound = outbound

    @activity.defn(name=NodeKind.HTTP_REQUEST)
    async def http_request(self, call: NodeCall) -> NodeReply:
        """Call a URL. Safe to repeat as far as the other side honours the Idempotency-Key."""
        key = f"{call.run_id}:{call.node_id}:{call.scope_key}"
        return await self._perform(call, lambda given: http_request(self._outbound, given, key))

    async def _perform(self, call: NodeCall, effect: Effect) -> NodeReply:
        attempt = activity.info().attempt
        opened = await self._nodes.guarded(call, lambda called: self._open(called, attempt))
        if isinstance(opened, NodeReply):
            if opened.state is NodeState.FAILED:
                raise ApplicationError("node_failed", type="node_failed", non_retryable=True)
            return opened
        try:
            async with heartbeats(), _own_time():
                result = await effect(opened.parameters)
        except Exception as error:  # noqa: BLE001  # whatever the effect raises is its failure
            raise await self._failed(call, opened.node, failure_of(error), attempt) from None
        reach(Point.AFTER_CALL_BEFORE_END, call.run_id)
        return await self._nodes.guarded(call, lambda called: self._close(called, result, attempt))

    async def _open(self, called: CalledNode, attempt: int) -> _Opened | NodeReply:
        substituted = substitute(called.run, called.node)
        if substituted is not None:
            return await self._nodes.complete_at_once(called, substituted, None)
        prepared = await prepare(self._nodes.database, called.run, called.node)

        async def body(node: GatedNode) -> _Opened:
            if node.before.attempt is not None:
                # Known attempts are recorded; this one's worker went away without a word.
                await node_writes.record_attempt(
                    node.work,
                    called.key,
                    attempt=node.before.attempt,
                    code="interrupted",
                    message="The worker that executed this attempt was lost.",
                )
            await node_writes.start_node(
                node.work,
                called.key,
                node.before,
                inputs=_without_secrets(prepared.parameters),
                attempt=attempt,
            )
            return _Opened(called.node, prepared.parameters)

        return await self._nodes.behind_gate(called, body)

    async def _close(self, called: CalledNode, result: NodeResult, attempt: int) -> NodeReply:
        async def body(node: GatedNode) -> NodeReply:
            return await node.complete(result, None, attempt)

        return await self._nodes.behind_gate(called, body)

    async def _failed(
        self, call: NodeCall, node: ExecutableNode, failure: Failure, attempt: int
    ) -> ApplicationError:
        """Record the failure of an attempt; the error to raise says whether Temporal tries again.

        Only the code enters history: messages stay in PostgreSQL (promise I8).
        """
        attempts = node.retry.max_attempts if node.retry else 1
        final = not failure.retryable or attempt >= attempts
        if final:
            await self._nodes.fail(call, failure)
        else:
            await self._nodes.guarded(call, lambda called: self._record(called, failure, attempt))
        return ApplicationError(
            failure.code,
            type=failure.code,
            non_retryable=final,
            next_retry_delay=(
                None if failure.retry_after is None else timedelta(seconds=failure.retry_after)
            ),
            category=ApplicationErrorCategory.BENIGN,
        )

    async def _record(self, called: CalledNode, failure: Failure, attempt: int) -> NodeReply:
        async def body(node: GatedNode) -> NodeReply:
            await node_writes.record_attempt(
                node.work,
                called.key,
                attempt=attempt,
                code=failure.code,
                message=failure.message,
            )
            return NodeReply(NodeState.FAILED, attempt=attempt)

        return await self._nodes.behind_gate(called, body)


OUTSIDE_NODES: Mapping[str, Callable[[OutsideNodes, NodeCall], Awaitable[NodeReply]]] = {
    NodeKind.HTTP_REQUEST: OutsideNodes.http_request,
}
"""The activity of each outside kind."""


def _without_secrets(parameters: JsonObject) -> JsonObject:
    """Parameters as a run may show them: credentials replaced."""
    shown: dict[str, Any] = dict(parameters)
    if auth := shown.get("auth"):
        kind = auth.get("type") if isinstance(auth, dict) else None
        shown["auth"] = {"type": kind, "redacted": True}
    if isinstance(headers := shown.get("headers"), dict):
        shown["headers"] = {
            name: "[redacted]" if name.lower() in _SECRET_HEADERS else value
            for name, value in headers.items()
        }
    return shown


_SECRET_HEADERS = frozenset({"authorization", "cookie", "proxy-authorization", "x-api-key"})


@asynccontextmanager
async def _own_time() -> AsyncIterator[None]:
    """Bound the block by the time of its attempt. Raises NodeError, to be repeated."""
    given = activity.info().start_to_close_timeout
    assert given is not None, "the workflow sets it from the node"
    seconds = given.total_seconds()
    try:
        async with asyncio.timeout(seconds - min(LAST_WORDS_SECONDS, seconds / 5)):
            yield
    except TimeoutError:
        raise NodeError(
            "timeout", f"The node did not end within its time of {seconds:g} s.", retryable=True
        ) from None
