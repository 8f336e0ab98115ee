"""The work around every node: gate, repetition, failure, and the writing of its success."""

import asyncio
import contextlib
import json
import random
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TypeVar

import psycopg
from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.automation_runs.nodes.invocation import Failure, NodeResult, failure_of
from activities.automation_runs.runs import ExecutableNode, OpenRun, RunCache
from activities.contracts import NodeCall, NodeReply, NodeState
from activities.database_errors import is_away
from models.automation.automation_runs import calls, execution, node_writes, rules
from models.automation.automation_runs.node_writes import Completion, NodeKey, NodeRow, pass_gate
from models.automation.automations.rules.graph.kinds import NodeKind
from models.core.base import JsonObject
from runtime.database import Database, UnitOfWork
from runtime.processes import exit_codes
from runtime.processes.bounded_processes import CrowdedError, evaluating_for

HOLD_SECONDS = 0.02
"""The longest a batch waits for another node: a run that is watched shows what it has done."""
MOST_NODES = 100
MOST_BYTES = 1024 * 1024
"""Of outputs, which are kept in memory until they are written."""


class BatchRefusedError(Exception):
    """A batch was not written: another execution was faster, or a value cannot be stored.

    Its nodes are to be executed again, each in a transaction of its own, which finds the cause.
    """

    retryable = True


@dataclass(slots=True)
class _Rows:
    """The rows that are written next."""

    rows: list[JsonObject] = field(default_factory=list)
    outputs: dict[tuple[str, str], JsonObject] = field(default_factory=dict)
    """By node and scope."""
    size: int = 0
    answers: bool = False
    until: float = field(default_factory=lambda: time.monotonic() + HOLD_SECONDS)


class NodeBatch:
    """The nodes of one run that have succeeded and are not written.

    Lanes of a loop share one. As a context, it drops the unwritten nodes when the block ends.

    They are written together (ADR 0080). No other server has seen such a node, so that it may be
    computed again if its batch is lost.
    """

    def __init__(self, database: Database, run: OpenRun, *, begins: bool = False) -> None:
        """A batch that `begins` its run writes the begin with the end, or before anything else."""
        self._database = database
        self._run = run
        self._begins = begins
        self._timer: asyncio.TimerHandle | None = None
        self._showing: asyncio.Task[None] | None = None
        self._next = _Rows()
        self._lock = asyncio.Lock()
        self._failed = False

    def __enter__(self) -> "NodeBatch":
        if self._begins:
            self._timer = asyncio.get_running_loop().call_later(HOLD_SECONDS, self._show)
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._let_go(self._next)

    def _show(self) -> None:
        async def show() -> None:
            # The end finds out whether the run may begin, and meets an unreachable database.
            with contextlib.suppress(rules.RunClosedError, psycopg.Error):
                await self.begin()

        self._showing = asyncio.create_task(show())

    def add(self, key: NodeKey, completion: Completion) -> None:
        """Take a success, whose output the other nodes of the run can read from now on."""
        if not self._next.rows:
            self._next = _Rows()
        part, place = self._next, (key.node_id, key.scope_key)
        part.rows.append(execution.success_row(key, completion))
        part.outputs[place] = self._run.unwritten[place] = completion.output
        part.size += completion.size
        part.answers |= key.kind == NodeKind.RESPOND

    @property
    def is_due(self) -> bool:
        """True when it waits for no other node: it is old, large, or what a caller waits for."""
        part = self._next
        if not part.rows:
            return False
        is_large = len(part.rows) >= MOST_NODES or part.size >= MOST_BYTES
        return part.answers or is_large or time.monotonic() > part.until

    async def begin(self) -> None:
        """Show the run as running, unless it has begun.

        Raises RunClosedError where it may not begin.
        """
        async with self._lock:
            if not self._begins:
                return
            async with self._database.statement() as work:
                if await execution.begin(work, self._run.header.run_id) is None:
                    raise rules.RunClosedError
            self._begins = False

    async def write(self) -> None:
        """Write the nodes added before. Raises RunClosedError, BatchRefusedError."""
        await self.begin()
        # Also with nothing to write: what another lane writes comes first.
        async with self._taken_rows() as part:
            if not part.rows:
                return
            async with self._database.statement() as work:
                if part.answers:
                    work.answered.add(self._run.header.run_id)
                if not await execution.write_nodes(work, self._run.header, part.rows):
                    raise rules.RunClosedError
            for (node_id, scope_key), output in part.outputs.items():
                # Only after the write: the cache of open runs holds committed outputs alone.
                self._run.keep(node_id, scope_key, output)

    async def end_run(self, skipped: Iterable[tuple[str, str]]) -> bool:
        """Write them and the run's end in success; False when it had ended before.

        `skipped` are nodes to which the run did not come. Raises BatchRefusedError.
        """
        run = self._run
        async with self._taken_rows() as part, self._database.statement() as work:
            part.rows += [
                execution.skipped_row(work, *place, run.graph.nodes[place[0]].kind)
                for place in skipped
            ]
            leaves, began = run.plan.leaves(), run.header.started_at if self._begins else None
            # A showing that waits for the lock finds nothing to show.
            self._begins = False
            return await execution.write_nodes_and_succeed(
                work, run.header, leaves, part.rows, began
            )

    @contextlib.asynccontextmanager
    async def _taken_rows(self) -> AsyncIterator[_Rows]:
        """Take the rows to write, one writer after the other: nodes come before their readers.

        After a failure nothing more is written.
        """
        async with self._lock:
            if self._failed:
                raise BatchRefusedError
            part, self._next = self._next, _Rows()
            try:
                yield part
            except rules.RunClosedError:
                self._failed = True
                raise
            except Exception as error:
                self._failed = True
                if is_away(error) or not part.outputs:
                    raise
                raise BatchRefusedError from error
            finally:
                self._let_go(part)

    def _let_go(self, part: _Rows) -> None:
        for place in part.outputs:
            self._run.unwritten.pop(place, None)


CLOSED = NodeReply(NodeState.CLOSED)
_LONGEST_PAUSE = 30.0
"""Seconds until a node that found its workspace evaluating too much is tried again, at most."""
OUTPUT_LIMIT = 1024 * 1024
"""Bytes of a node's output as JSON (interface.md#limits)."""

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
        exit_codes.announce_step(f'Node "{node.label or node.id}"')
        header = run.header
        place = (header.workspace_id, header.run_id, call.node_id, call.scope_key, node.kind)
        return CalledNode(run, node, NodeKey(*place, header.graph_checksum))

    async def _with_called(
        self, call: NodeCall, work: Callable[[CalledNode], Awaitable[_Result]]
    ) -> _Result:
        """Do a node's work; once more if its run was moved to another graph (ADR 0170).

        Raises RunClosedError.
        """
        try:
            return await work(await self.called(call))
        except rules.RunClosedError:
            if not await self._runs.renew(uuid.UUID(call.run_id)):
                raise
        return await work(await self.called(call))

    async def guarded(
        self,
        call: NodeCall,
        work: Callable[[CalledNode], Awaitable[_Result]],
        batch: NodeBatch | None = None,
    ) -> _Result | NodeReply:
        """Do a node's work. An error becomes the node's failure, which is written after the batch.

        The reply for a closed run is CLOSED. Raises only what a repetition may mend.
        """
        try:
            return await self._with_called(call, work)
        except rules.RunClosedError:
            return CLOSED
        except CrowdedError as error:
            # Not a failure of the node: the workspace has too many long evaluations at this moment.
            raise _later(error) from None
        except Exception as error:
            if is_away(error):
                raise
            if batch is not None:
                # The nodes before it are written first: a run must not show a failure without what
                # led to it.
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
            # The transaction is rolled back; the next one finds the row of the other execution.
            except rules.NodeWrittenError:
                continue

    async def complete_with_gate(
        self, invocation: CalledNode, result: NodeResult, inputs: JsonObject | None
    ) -> NodeReply:
        """Gate and success in one statement, for a node whose only effect is its output."""
        async with self.database.statement() as work:
            written = await node_writes.complete_with_gate(
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
            written = await node_writes.complete_started(work, invocation.key, done)
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
            return await self._with_called(call, lambda node: self.behind_gate(node, body))
        except rules.RunClosedError:
            return CLOSED


def _later(error: CrowdedError) -> ApplicationError:
    """The error that makes Temporal repeat an activity after a while, longer each time."""
    attempt = activity.info().attempt if activity.in_activity() else 1
    # Random, so that runs that were refused together do not return together.
    seconds = min(_LONGEST_PAUSE, 2.0**attempt) * random.uniform(0.75, 1.0)  # noqa: S311  # no secret
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
    place = (key.run_id, key.node_id, key.scope_key, key.graph_checksum)
    before = await pass_gate(work, *place, exclusive=exclusive)
    if (ended := ended_reply(before, key.kind)) is not None:
        return ended
    return await body(GatedNode(work, invocation, before))


def completion(result: NodeResult, inputs: JsonObject | None, attempt: int = 1) -> Completion:
    """The columns written for a result. Raises NodeError for an output above the limit."""
    size = _byte_size(result.output)
    if size > OUTPUT_LIMIT:
        raise rules.NodeError(
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
    # Lone surrogates cannot be encoded; they are refused elsewhere, and must not fail here.
    return len(json.dumps(output, ensure_ascii=False).encode("utf-8", "replace"))


def success(kind: str, outcome: str, case_key: str | None, attempt: int = 1) -> NodeReply:
    """The reply to the workflow for a success; that of a stop node says how the run ends."""
    if kind == NodeKind.STOP:
        return NodeReply(NodeState.ABORTED if outcome == "failed" else NodeState.STOPPED)
    return NodeReply(NodeState.SUCCEEDED, outcome, case_key, attempt)


def ended_reply(before: NodeRow, kind: str) -> NodeReply | None:
    """The reply for a node that ended before this call; None while it is open."""
    attempt = before.attempt or 1
    if before.status == rules.NodeStatus.FAILED:
        return NodeReply(NodeState.FAILED, attempt=attempt)
    if before.status == rules.NodeStatus.SUCCEEDED:
        return success(kind, before.outcome or "always", before.case_key, attempt)
    if before.status in {rules.NodeStatus.CANCELLED, rules.NodeStatus.SKIPPED}:
        return CLOSED
    return None


def calling_workflow_id() -> str:
    workflow_id = activity.info().workflow_id
    assert workflow_id is not None, "a workflow called"
    return workflow_id


async def show_running(node: GatedNode) -> None:
    """Show the run of a node that wakes as running."""
    run_id = node.invocation.key.run_id
    await calls.resume_execution(
        node.work, run_id, calls.execution_key(run_id, calling_workflow_id())
    )
