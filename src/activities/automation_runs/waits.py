"""The transactions of nodes that wait, one local activity each (interface.md#cost-of-nodes)."""

import contextlib
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from temporalio import activity

from activities import contracts
from activities.automation_runs import node_execution
from activities.automation_runs.nodes import resolution as node_resolution
from activities.automation_runs.nodes.invocation import NodeResult
from activities.automation_runs.runs import RunCache
from models.automation.automation_runs import calls, node_writes
from models.automation.automation_runs.acceptance import TOO_LONG
from models.automation.automation_runs.rules import NodeError, RunClosedError, RunStatus
from models.automation.automations.rules.attributes import as_texts
from models.automation.automations.rules.graph import configs
from models.automation.automations.rules.graph.kinds import NodeKind
from models.automation.automations.rules.graph.shapes import MAX_WAIT_SECONDS
from models.automation.inbox.rules import loop
from models.automation.waits import approvals, store
from models.automation.waits.rules import run_reads, values_read
from models.core.base import JsonObject
from models.core.expressions.rules.cel_text import selections
from models.core.schedules.timetables import moment_of
from runtime.database import Database


def seconds_to_wait(parameters: JsonObject, now: float) -> float:
    """Seconds from `now` (the workflow's time, seconds since the epoch) until the delay is over.

    A moment without an offset is read in the node's `timezone`; a moment in the past waits 0 s.
    Raises NodeError for a wait longer than a run may last.
    """
    config = configs.DelayConfig.model_validate(parameters)
    if config.seconds is not None:
        return config.seconds
    assert config.until is not None, "the config has seconds or until"
    moment = datetime.fromisoformat(config.until)
    if moment.tzinfo is None:
        moment = moment_of(moment, ZoneInfo(config.timezone or "UTC"))
    seconds = (moment - datetime.fromtimestamp(now, UTC)).total_seconds()
    if seconds > MAX_WAIT_SECONDS:
        raise NodeError("validation_error", "A delay is limited to 30 days.")
    return max(0.0, seconds)


async def awaited_variables(
    database: Database, invocation: node_execution.CalledNode, parameters: JsonObject
) -> JsonObject:
    """The values of the run its filter reads. Raises BindingError when that is too large.

    The filter may come from a binding, so only now is it known which outputs it reads.
    """
    text = parameters.get("filter")
    if invocation.node.kind != NodeKind.WAIT_EVENT or not isinstance(text, str):
        return {}
    reads = run_reads(text)
    if not reads:
        return {}
    nodes = selections(text, "nodes")
    context = await node_resolution.binding_context(
        database, invocation.run, nodes, invocation.key.scope_key
    )
    return values_read(reads, context.variables())


class WaitActivities:
    """Park nodes, remind people, and wake nodes."""

    def __init__(self, database: Database, runs: RunCache) -> None:
        self._database = database
        self._runs = runs
        self._nodes = node_execution.NodeExecution(database, runs)

    def all(self) -> Sequence[Callable[..., Any]]:
        """Every activity of this class, for registration."""
        return (self.park, self.wake, self.remind, self.suspend)

    @activity.defn(name="park_node")
    async def park(self, call: contracts.ParkCall) -> contracts.ParkReply:
        """Show a node as waiting, and say for what; or its end, if it need not wait."""

        async def park(invocation: node_execution.CalledNode) -> contracts.NodeReply:
            substituted = node_resolution.substitute(invocation.run, invocation.node)
            if substituted is not None:
                return await self._nodes.complete_with_gate(invocation, substituted, None)
            resolved = await node_resolution.resolve_parameters(self._database, invocation)
            variables = await awaited_variables(self._database, invocation, resolved.parameters)
            beginning = _Beginning(invocation, resolved.parameters, call.now, variables)
            body = BEGINNINGS[invocation.node.kind](beginning)
            return await self._nodes.behind_gate(invocation, body)

        reply = await self._nodes.guarded(call.node, park)
        if isinstance(reply, contracts.ParkReply):
            return reply
        return contracts.ParkReply(reply.state, reply.outcome, reply.case_key, reply.attempt)

    @activity.defn(name="wake_node")
    async def wake(self, call: contracts.WakeCall) -> contracts.NodeReply:
        """Complete a node whose awaited event has come, and show the run as running.

        The row decides: a node whose wait is not resolved, and whose time is not over, continues to
        wait. One without a row was put back by a restore: this execution knows more than the rows
        do, and ends, so that another one begins from them.
        """

        async def body(node: node_execution.GatedNode) -> contracts.NodeReply:
            if node.before.status is None:
                return node_execution.CLOSED
            try:
                reply = await _ENDS[node.invocation.node.kind](node, call.over)
            except NodeError as error:
                # Failing outside of this transaction would leave the run shown as waiting.
                reply = await node.fail(error.failure_code, error.message)
            if reply.state is not contracts.NodeState.WAITING:
                await node_execution.show_running(node)
            return reply

        async def wake(invocation: node_execution.CalledNode) -> contracts.NodeReply:
            return await self._nodes.behind_gate(invocation, body, exclusive=True)

        return await self._nodes.guarded(call.node, wake)

    @activity.defn(name="remind_approvers")
    async def remind(self, call: contracts.RemindCall) -> bool:
        """Remind the people who have not decided; False when the node waits no more."""

        async def body(node: node_execution.GatedNode) -> contracts.NodeReply:
            waits = await approvals.remind_approvers(
                node.work, _request(node.invocation), call.number
            )
            return contracts.NodeReply(
                contracts.NodeState.WAITING if waits else contracts.NodeState.SUCCEEDED
            )

        async def remind(invocation: node_execution.CalledNode) -> contracts.NodeReply:
            return await self._nodes.behind_gate(invocation, body)

        return (await self._nodes.guarded(call.node, remind)).state is contracts.NodeState.WAITING

    @activity.defn(name="suspend_execution")
    async def suspend(self, call: contracts.SuspendCall) -> None:
        """The execution waits, and so does its run if all of its executions do."""
        run_id = uuid.UUID(call.run_id)
        with contextlib.suppress(RunClosedError):
            run = await self._runs.get(run_id)
            async with self._database.transaction() as work:
                key = calls.execution_key(run_id, node_execution.calling_workflow_id())
                if await calls.suspend_execution(work, run_id, key, call.below):
                    await run.skip(work, call.skipped)


_Body = Callable[[node_execution.GatedNode], Awaitable[contracts.NodeReply]]


@dataclass(frozen=True, slots=True)
class _Beginning:
    """A node about to wait; `now` is the workflow's time in seconds since the epoch, `variables`
    are what it takes along from its run.
    """

    invocation: node_execution.CalledNode
    parameters: JsonObject
    now: float
    variables: JsonObject


def _delay(beginning: _Beginning) -> _Body:
    parameters = beginning.parameters
    seconds = seconds_to_wait(parameters, beginning.now)

    async def body(node: node_execution.GatedNode) -> contracts.NodeReply:
        return await _parked(node, parameters, seconds)

    return body


async def _parked(
    node: node_execution.GatedNode, parameters: JsonObject, seconds: float | None
) -> contracts.ParkReply:
    """Show a node as waiting; one that was shown so before keeps its due time."""
    if node.before.waits:
        seconds = node.before.seconds_left(node.work.now)
    else:
        await node_writes.park_node(
            node.work, node.invocation.key, node.before, inputs=parameters, seconds=seconds
        )
    return contracts.ParkReply(contracts.NodeState.WAITING, seconds=seconds)


def _approval(beginning: _Beginning) -> _Body:
    config = configs.ApprovalConfig.model_validate(beginning.parameters)
    wait = _for_somebody(beginning, config.timeout_seconds)

    async def body(node: node_execution.GatedNode) -> contracts.NodeReply:
        reply = await wait(node)
        if not isinstance(reply, contracts.ParkReply):
            return reply
        await approvals.ask_approvers(node.work, _request(beginning.invocation))
        every = config.reminder_seconds
        return replace(reply, reminder_seconds=every, reminded=_reminded(node, every))

    return body


def _reminded(node: node_execution.GatedNode, every: float | None) -> int:
    """The number of reminders the people who are asked have had, if the node waited before."""
    began = node.before.started_at
    if every is None or began is None:
        return 0
    return int((node.work.now - began).total_seconds() // every)


def _event(beginning: _Beginning) -> _Body:
    config = configs.WaitEventConfig.model_validate(beginning.parameters)
    return _for_somebody(beginning, config.timeout_seconds)


def _for_somebody(beginning: _Beginning, seconds: float | None) -> _Body:
    invocation, parameters = beginning.invocation, beginning.parameters
    starter = invocation.run.header.created_by_user_id
    wait = store.NewWait(
        invocation.key,
        node_execution.calling_workflow_id(),
        parameters,
        starter,
        beginning.variables,
    )

    async def body(node: node_execution.GatedNode) -> contracts.NodeReply:
        resolution = await store.begin_wait(node.work, wait)
        if resolution is not None:
            return await node.complete(
                NodeResult(resolution.output, resolution.outcome), parameters
            )
        return await _parked(node, parameters, seconds)

    return body


def _call(beginning: _Beginning) -> _Body:
    invocation, parameters = beginning.invocation, beginning.parameters
    config = configs.CallAutomationConfig.model_validate(parameters)
    key, header = invocation.key, invocation.run.header
    call = calls.Call(
        header,
        key.node_id,
        key.scope_key,
        config.automation_id,
        config.input,
        config.wait,
        as_texts(config.attributes),
    )

    async def body(node: node_execution.GatedNode) -> contracts.NodeReply:
        if call.is_too_deep:
            await calls.notify_call_loop(node.work, call)
            await calls.keep_call(node.work, call, loop(call.chain))
            return await node.fail("chain_too_long", TOO_LONG)
        try:
            request = await calls.accept_call(node.work, call)
        except calls.NotCallableError as error:
            # Nothing was written before: the failure and its reason are of one transaction.
            if error.judgement is not None:
                await calls.keep_call(node.work, call, error.judgement)
            return await node.fail(error.failure_code, error.message)
        if not config.wait:
            output = {"runId": str(call.run_id), "status": RunStatus.QUEUED.value}
            return await node.complete(NodeResult(output), parameters)
        run = contracts.CalledRun(str(call.run_id), str(header.workspace_id), dict(request))
        return replace(await _parked(node, parameters, None), called=run)

    return body


def _request(invocation: node_execution.CalledNode) -> approvals.ApprovalRequest:
    return approvals.ApprovalRequest(
        invocation.run.header, invocation.key, invocation.run.graph.label(invocation.node.id)
    )


BEGINNINGS: Mapping[str, Callable[[_Beginning], _Body]] = {
    NodeKind.DELAY: _delay,
    NodeKind.APPROVAL: _approval,
    NodeKind.WAIT_EVENT: _event,
    NodeKind.CALL_AUTOMATION: _call,
}
"""The beginning of each kind's wait: its act behind the gate. Raises what makes the node fail."""


async def _after_time(node: node_execution.GatedNode, over: bool) -> contracts.NodeReply:
    assert over, "nothing but time ends a delay"
    return await node.complete(NodeResult({}), None)


async def _resolved(node: node_execution.GatedNode, over: bool) -> contracts.NodeReply:
    resolution = await store.end_wait(node.work, node.invocation.key, over=over)
    if resolution is None:
        return contracts.NodeReply(contracts.NodeState.WAITING)
    return await node.complete(NodeResult(resolution.output, resolution.outcome), None)


async def _called_ended(node: node_execution.GatedNode, over: bool) -> contracts.NodeReply:
    assert over, "nothing but its end ends a call"
    key = node.invocation.key
    run_id = calls.called_run_id(key.run_id, key.node_id, key.scope_key)
    run = await calls.called_run_end(node.work, run_id)
    assert run is not None, "the workflow has seen it end"
    if run.status == RunStatus.SUCCEEDED:
        output = {"runId": str(run_id), "status": run.status, "output": run.output}
        return await node.complete(NodeResult(output), None)
    code = calls.ENDED_OTHERWISE[RunStatus(run.status)]
    return await node.fail(code, run.error or f"The called run was {run.status}.")


_ENDS: Mapping[str, Callable[[node_execution.GatedNode, bool], Awaitable[contracts.NodeReply]]] = {
    NodeKind.DELAY: _after_time,
    NodeKind.APPROVAL: _resolved,
    NodeKind.WAIT_EVENT: _resolved,
    NodeKind.CALL_AUTOMATION: _called_ended,
}
