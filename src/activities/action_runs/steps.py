"""One step of an action run: gate, bindings, effect, end.

What a step does is what the node of that kind does. A step that writes to our own tables is one
transaction; an effect that leaves the machine lies between two.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum

from activities.action_runs.calls import CALLS
from activities.automation_runs.node_execution import completion, kept_output
from activities.automation_runs.nodes.invocation import (
    Effect,
    Failure,
    Invocation,
    NodeResult,
    Outgoing,
    Transaction,
    check_named,
    failure_of,
)
from activities.automation_runs.nodes.logic import transform
from activities.contracts import CalledRun
from activities.database_errors import awaiting_database, is_away
from activities.turns import CallHeldError
from models.automation.action_runs import execution
from models.automation.action_runs.execution import ActionRunHeader, StepRow, pass_gate
from models.automation.action_runs.rules import PlannedStep, StepStatus
from models.automation.actions.rules import ActionKind
from models.automation.automation_runs.rules import NodeError, RunClosedError
from models.automation.automations.rules.graph.kinds import NodeKind
from models.automation.automations.rules.language.bindings import BindingContext, resolve
from models.core.base import JsonObject
from models.core.expressions.rules.expressions import saved_expression
from runtime.database import Database, UnitOfWork
from runtime.processes import exit_codes
from runtime.processes.bounded_processes import evaluate_bounded
from runtime.processes.fault_injection import FaultPoint, inject_fault

LONGEST_WAIT = timedelta(days=1)
"""For an automation run whose end a step waits for."""

OUTSIDE = frozenset({ActionKind.HTTP_REQUEST, ActionKind.SEND_EMAIL, ActionKind.SEND_WEBHOOK})
"""Kinds whose effect leaves the machine."""

_NODE_KINDS: Mapping[ActionKind, str] = {ActionKind.SEND_NOTIFICATION: NodeKind.NOTIFY}
"""The name of a kind as a node, where the two differ."""


class StepState(StrEnum):
    """The state of a step after an attempt."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    SKIPPED = "skipped"
    RETRY = "retry"
    """It failed and may be tried again; its row is open."""
    WAITING = "waiting"
    """It waits for the run it called."""
    CLOSED = "closed"
    """The run has ended or was cancelled; nothing was done."""


@dataclass(frozen=True, slots=True)
class StepReply:
    """The state, and the failure of a `retry`."""

    state: StepState
    failure: Failure | None = None


ENDED = {
    StepStatus.SUCCEEDED: StepReply(StepState.SUCCEEDED),
    StepStatus.SKIPPED: StepReply(StepState.SKIPPED),
    StepStatus.FAILED: StepReply(StepState.FAILED),
    StepStatus.CANCELLED: StepReply(StepState.CLOSED),
}
"""The reply to an attempt of a step that has ended before."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt of one step; after the `last` a failure is final."""

    header: ActionRunHeader
    step: PlannedStep
    number: int = 1
    last: bool = True


@dataclass(frozen=True, slots=True)
class Awaited:
    """A called run, and the seconds after which the step stops waiting for it."""

    run: CalledRun
    seconds: float


class ActionSteps:
    """Carries out steps."""

    def __init__(
        self,
        database: Database,
        transactions: Mapping[str, Transaction],
        effects: Mapping[str, Effect],
    ) -> None:
        self._database = database
        self._transactions = transactions
        self._effects = effects

    async def attempt(self, attempt: Attempt) -> StepReply:
        """Try a step once. Safe to repeat.

        Raises only while the database is away, and only before an effect or after its result is
        written.
        """
        exit_codes.announce_step(f'Step "{attempt.step.id}"')
        try:
            opened = await self._open(attempt)
            if isinstance(opened, StepReply):
                return opened
            result = await self._effects[node_kind(attempt.step.kind)](opened)
            inject_fault(FaultPoint.AFTER_CALL_BEFORE_END, attempt.header.run_id)
            return await awaiting_database(lambda: self._end(attempt, lambda: result))
        except CallHeldError:
            raise
        except Exception as error:  # noqa: BLE001  # any error is the step's failure
            return await self._failed(attempt, error)

    async def awaited(self, attempt: Attempt) -> Awaited:
        """The run that a waiting step has called, and how long it waits for its end.

        Raises RunClosedError.
        """
        async with self._database.transaction() as work:
            row = await pass_gate(work, attempt.header, attempt.step.id)
            awaited = CALLS[attempt.step.kind].awaited
            called = await awaited(work, attempt.header, attempt.step)
            waited = work.now - (row.started_at or work.now)
        return Awaited(called, max(0.0, (LONGEST_WAIT - waited).total_seconds()))

    async def end_call(self, attempt: Attempt) -> StepReply:
        """End a waiting step as the run it called has ended, or because that takes too long."""
        try:
            async with self._database.transaction() as work:
                find_end = CALLS[attempt.step.kind].end
                end = await find_end(work, attempt.header, attempt.step)
            return await self._end(attempt, end or _overdue)
        except Exception as error:  # noqa: BLE001  # as in `attempt`
            return await self._failed(attempt, error)

    async def lost(self, attempt: Attempt) -> StepReply:
        """Make sure a step whose activity failed is shown as failed."""
        message = "The step timed out, or its worker was lost."
        return await self._failed(attempt, NodeError("timeout", message))

    async def _open(self, attempt: Attempt) -> StepReply | Outgoing:
        header, step = attempt.header, attempt.step
        async with self._database.transaction() as work:
            row = await pass_gate(work, header, step.id)
            if row.status in ENDED:
                return ENDED[row.status]
            context = await _context(work, header, step)
            if row.status is StepStatus.PENDING and not await evaluate_bounded(
                lambda: _condition_holds(step, context)
            ):
                await execution.skip_step(work, header.run_id, step.id)
                return StepReply(StepState.SKIPPED)
            if row.status is StepStatus.RUNNING and step.kind in CALLS:
                return StepReply(StepState.WAITING)
            sends = replace(context, sends_secrets=step.kind in OUTSIDE)
            parameters = await evaluate_bounded(lambda: resolve(step.parameters, sends))
            if step.kind in OUTSIDE:
                await execution.start_step(work, header.run_id, step.id, attempt.number)
                return _outgoing(attempt, row, parameters, work)
            return await self._within(work, attempt, parameters, context)

    async def _within(
        self, work: UnitOfWork, attempt: Attempt, parameters: JsonObject, context: BindingContext
    ) -> StepReply:
        """A step whose whole work is this transaction."""
        header, step = attempt.header, attempt.step
        if step.kind is ActionKind.TRANSFORM:
            result: NodeResult | None = transform(parameters, context)
        elif step.kind in CALLS:
            result = await CALLS[step.kind].begin(work, header, step, parameters)
        else:
            perform = self._transactions[node_kind(step.kind)]
            result = await perform(Invocation(work, header.actor, parameters))
        if result is None:
            await execution.start_step(work, header.run_id, step.id, attempt.number)
            return StepReply(StepState.WAITING)
        return await _completed(work, attempt, result)

    async def _end(self, attempt: Attempt, result: Callable[[], NodeResult]) -> StepReply:
        async with self._database.transaction() as work:
            row = await pass_gate(work, attempt.header, attempt.step.id)
            if row.status in ENDED:
                return ENDED[row.status]
            return await _completed(work, attempt, result())

    async def _failed(self, attempt: Attempt, error: Exception) -> StepReply:
        """Write a final failure; leave the step open for another attempt."""
        if isinstance(error, RunClosedError):
            return StepReply(StepState.CLOSED)
        if is_away(error):
            raise error
        failure = failure_of(error)
        if failure.retryable and not attempt.last:
            return StepReply(StepState.RETRY, failure)
        try:
            return await awaiting_database(lambda: self._fail(attempt, failure))
        except RunClosedError:
            return StepReply(StepState.CLOSED)

    async def _fail(self, attempt: Attempt, failure: Failure) -> StepReply:
        header, step = attempt.header, attempt.step
        async with self._database.transaction() as work:
            row = await pass_gate(work, header, step.id)
            if row.status in ENDED:
                return ENDED[row.status]
            number = max(attempt.number, row.attempt)
            await execution.fail_step(
                work,
                header.run_id,
                step.id,
                code=failure.code,
                message=failure.message,
                attempt=number,
                result=kept_output(failure),
            )
        return StepReply(StepState.FAILED)


async def _context(work: UnitOfWork, header: ActionRunHeader, step: PlannedStep) -> BindingContext:
    """The context of a step's bindings: the run's input as `trigger`, earlier steps as `nodes`."""
    return BindingContext(
        trigger=header.input,
        nodes=await execution.load_results(work, header),
        run=header.variable,
        sends_secrets=step.kind in OUTSIDE,
    )


def _condition_holds(step: PlannedStep, context: BindingContext) -> bool:
    """True when the step's condition holds. Raises NodeError when it says neither yes nor no."""
    if step.when is None:
        return True
    holds = saved_expression(step.when).evaluate(context.variables())
    if not isinstance(holds, bool):
        raise NodeError("binding_error", "when: The expression must return true or false.")
    return holds


def _outgoing(attempt: Attempt, row: StepRow, parameters: JsonObject, work: UnitOfWork) -> Outgoing:
    header, step = attempt.header, attempt.step
    check_named(parameters, step.parameters)
    return Outgoing(
        workspace_id=header.workspace_id,
        parameters=parameters,
        key=f"{header.effect_key}:{step.id}",
        began_at=row.started_at or work.now,
        last=attempt.last,
        actor=header.actor,
    )


async def _completed(work: UnitOfWork, attempt: Attempt, result: NodeResult) -> StepReply:
    output = completion(result, None).output
    run_id, step_id = attempt.header.run_id, attempt.step.id
    await execution.complete_step(work, run_id, step_id, output, attempt.number)
    return StepReply(StepState.SUCCEEDED)


def node_kind(kind: ActionKind) -> str:
    return _NODE_KINDS.get(kind, kind.value)


def _overdue() -> NodeResult:
    raise NodeError("timeout", "The called run did not end within a day.")
