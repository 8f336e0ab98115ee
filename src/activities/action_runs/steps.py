"""One step of an action run: gate, bindings, effect, end; steps whose work is a run."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum

from activities.automation_runs.node_execution import completion, kept_output
from activities.automation_runs.nodes import invocation
from activities.automation_runs.nodes.logic import transform
from activities.contracts import CalledRun
from activities.database_errors import awaiting_database, is_away
from activities.turns import CallHeldError
from models.automation.action_runs import execution
from models.automation.action_runs.rules import PlannedStep, StepStatus
from models.automation.actions import rules as action_rules
from models.automation.automation_runs import calls
from models.automation.automation_runs import rules as automation_run_rules
from models.automation.automation_runs.acceptance import TOO_LONG, RunRequest, is_too_long
from models.automation.automation_runs.slots import accepted_start_request
from models.automation.automations import runnable_versions
from models.automation.automations.rules.graph.kinds import NodeKind
from models.automation.automations.rules.language.bindings import BindingContext, resolve
from models.automation.inbox.rules import Judgement, loop
from models.automation.inbox.store import keep
from models.core.base import Id, JsonObject
from models.core.expressions.rules.expressions import saved_expression
from models.messages.jobs.rules import OPEN_JOB, JobStatus
from models.messages.jobs.store import find_job
from models.messages.jobs.store import start_request as start_job_request
from models.sources.data_source_runs.acceptance import accept_refresh
from models.sources.data_source_runs.acceptance import start_request as start_refresh_request
from models.sources.data_source_runs.queries import run_in_workspace
from models.sources.data_source_runs.rules import OPEN_RUN as OPEN_REFRESH
from models.sources.data_source_runs.rules import RunTrigger, workflow_kind_of
from models.sources.resource_imports.commands import record_import
from runtime.database import Database, UnitOfWork
from runtime.processes import exit_codes
from runtime.processes.bounded_processes import evaluate_bounded
from runtime.processes.fault_injection import FaultPoint, inject_fault
from runtime.temporal.workflow_kinds import WorkflowKind

LONGEST_WAIT = timedelta(days=1)
"""For an automation run whose end a step waits for."""

OUTSIDE = frozenset(
    {
        action_rules.ActionKind.HTTP_REQUEST,
        action_rules.ActionKind.SEND_EMAIL,
        action_rules.ActionKind.SEND_WEBHOOK,
    }
)
"""Kinds whose effect leaves the machine."""

_NODE_KINDS: Mapping[action_rules.ActionKind, str] = {
    action_rules.ActionKind.SEND_NOTIFICATION: NodeKind.NOTIFY
}
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
    failure: invocation.Failure | None = None


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

    header: execution.ActionRunHeader
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
        transactions: Mapping[str, invocation.Transaction],
        effects: Mapping[str, invocation.Effect],
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
            row = await execution.pass_gate(work, attempt.header, attempt.step.id)
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
        return await self._failed(attempt, automation_run_rules.NodeError("timeout", message))

    async def _open(self, attempt: Attempt) -> StepReply | invocation.Outgoing:
        header, step = attempt.header, attempt.step
        async with self._database.transaction() as work:
            row = await execution.pass_gate(work, header, step.id)
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
        if step.kind is action_rules.ActionKind.TRANSFORM:
            result: invocation.NodeResult | None = transform(parameters, context)
        elif step.kind in CALLS:
            result = await CALLS[step.kind].begin(work, header, step, parameters)
        else:
            perform = self._transactions[node_kind(step.kind)]
            result = await perform(invocation.Invocation(work, header.actor, parameters))
        if result is None:
            await execution.start_step(work, header.run_id, step.id, attempt.number)
            return StepReply(StepState.WAITING)
        return await _completed(work, attempt, result)

    async def _end(
        self, attempt: Attempt, result: Callable[[], invocation.NodeResult]
    ) -> StepReply:
        async with self._database.transaction() as work:
            row = await execution.pass_gate(work, attempt.header, attempt.step.id)
            if row.status in ENDED:
                return ENDED[row.status]
            return await _completed(work, attempt, result())

    async def _failed(self, attempt: Attempt, error: Exception) -> StepReply:
        """Write a final failure; leave the step open for another attempt."""
        if isinstance(error, automation_run_rules.RunClosedError):
            return StepReply(StepState.CLOSED)
        if is_away(error):
            raise error
        failure = invocation.failure_of(error)
        if failure.retryable and not attempt.last:
            return StepReply(StepState.RETRY, failure)
        try:
            refusal = error if isinstance(error, calls.NotCallableError) else None
            return await awaiting_database(lambda: self._fail(attempt, failure, refusal))
        except automation_run_rules.RunClosedError:
            return StepReply(StepState.CLOSED)

    async def _fail(
        self, attempt: Attempt, failure: invocation.Failure, refusal: calls.NotCallableError | None
    ) -> StepReply:
        header, step = attempt.header, attempt.step
        async with self._database.transaction() as work:
            row = await execution.pass_gate(work, header, step.id)
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
            if refusal is not None and refusal.judgement is not None:
                await _keep_call(work, header, step, refusal.automation_id, refusal.judgement)
        return StepReply(StepState.FAILED)


async def _context(
    work: UnitOfWork, header: execution.ActionRunHeader, step: PlannedStep
) -> BindingContext:
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
        raise automation_run_rules.NodeError(
            "binding_error", "when: The expression must return true or false."
        )
    return holds


def _outgoing(
    attempt: Attempt, row: execution.StepRow, parameters: JsonObject, work: UnitOfWork
) -> invocation.Outgoing:
    header, step = attempt.header, attempt.step
    invocation.check_named(parameters, step.parameters)
    return invocation.Outgoing(
        workspace_id=header.workspace_id,
        parameters=parameters,
        key=f"{header.effect_key}:{step.id}",
        began_at=row.started_at or work.now,
        last=attempt.last,
        actor=header.actor,
    )


async def _completed(
    work: UnitOfWork, attempt: Attempt, result: invocation.NodeResult
) -> StepReply:
    output = completion(result, None).output
    run_id, step_id = attempt.header.run_id, attempt.step.id
    await execution.complete_step(work, run_id, step_id, output, attempt.number)
    return StepReply(StepState.SUCCEEDED)


def node_kind(kind: action_rules.ActionKind) -> str:
    return _NODE_KINDS.get(kind, kind.value)


def _overdue() -> invocation.NodeResult:
    raise automation_run_rules.NodeError("timeout", "The called run did not end within a day.")


NOT_LIVE = "No published and enabled automation has this id."


async def call_automation(
    work: UnitOfWork, header: execution.ActionRunHeader, step: PlannedStep, parameters: JsonObject
) -> invocation.NodeResult | None:
    """Accept a run whose payload is the action's input; None when the step waits for its end.

    Raises calls.NotCallableError for an automation that cannot be run, or not with this input.
    """
    config = action_rules.RunAutomationConfig.model_validate(parameters)
    version = await runnable_versions.live(work, header.workspace_id, config.automation_id)
    if version is None:
        _, reason = await runnable_versions.dormant(work, header.workspace_id, config.automation_id)
        dormant = Judgement.of_dormant(reason)
        raise calls.NotCallableError(config.automation_id, "not_found", NOT_LIVE, dormant)
    if is_too_long(header.chain):
        judgement = loop(header.chain)
        raise calls.NotCallableError(config.automation_id, "loop", TOO_LONG, judgement)
    run_id = execution.called_run_id(header.run_id, step.id)
    # The caller that waits is the run whose node requested the action, if there is one.
    waiting = header.run_id if header.node is None else header.node.run_id
    request = RunRequest(
        automation_run_rules.RunSource.AUTOMATION,
        header.input,
        run_id=run_id,
        parent_run_id=waiting if config.wait else None,
        chain=header.chain,
        started_by_caller=config.wait,
    )
    accepted = await calls.accept_called(work, header.actor, version, request)
    await _keep_call(work, header, step, config.automation_id, accepted.judgement)
    if config.wait:
        return None
    return invocation.NodeResult(
        {"runId": str(run_id), "status": automation_run_rules.RunStatus.QUEUED.value}
    )


async def _keep_call(
    work: UnitOfWork,
    header: execution.ActionRunHeader,
    step: PlannedStep,
    automation_id: Id,
    judgement: Judgement,
) -> None:
    """Keep a call of a step and what became of it, for the automation that is called."""
    run_id = execution.called_run_id(header.run_id, step.id)
    event = calls.call_event(header.workspace_id, header.action_id, run_id, header.input)
    await keep(work, event, {automation_id: judgement})


async def called_automation(
    work: UnitOfWork, header: execution.ActionRunHeader, step: PlannedStep
) -> CalledRun:
    """The run a step waits for, as the step's workflow starts it."""
    run_id = execution.called_run_id(header.run_id, step.id)
    start = await accepted_start_request(work, run_id)
    assert start is not None, "the step has accepted it"
    return CalledRun(str(run_id), str(header.workspace_id), dict(start))


async def automation_end(
    work: UnitOfWork, header: execution.ActionRunHeader, step: PlannedStep
) -> Callable[[], invocation.NodeResult] | None:
    """The function that gives the end of the run a step waits for, or raises its failure.

    None while the run is open.
    """
    run_id = execution.called_run_id(header.run_id, step.id)
    row = await calls.called_run_outcome(work, header.workspace_id, run_id)
    if row is not None and row.status in automation_run_rules.OPEN_RUN:
        return None

    def end() -> invocation.NodeResult:
        if row is None or row.status != automation_run_rules.RunStatus.SUCCEEDED:
            reason = "It was deleted." if row is None else row.error or f"It was {row.status}."
            raise automation_run_rules.NodeError("run_failed", f"The automation failed: {reason}")
        return invocation.NodeResult(
            {"runId": str(run_id), "status": row.status, "output": row.output or {}}
        )

    return end


async def call_refresh(
    work: UnitOfWork, header: execution.ActionRunHeader, step: PlannedStep, parameters: JsonObject
) -> invocation.NodeResult | None:
    """Accept a refresh; None when the step waits for its end.

    A refresh that already runs is the result as it is. Raises what accepting raises.
    """
    config = action_rules.RefreshDataSourceConfig.model_validate(parameters)
    run_id = execution.called_run_id(header.run_id, step.id)
    automated = header.node is not None
    run = await accept_refresh(
        work,
        header.actor,
        config.data_source_id,
        run_id,
        trigger=RunTrigger.AUTOMATION if automated else RunTrigger.ACTION,
        started_by_caller=True,
    )
    if run.id != run_id:
        return invocation.NodeResult({"runId": str(run.id), "status": run.status.value})
    return None


async def called_refresh(
    work: UnitOfWork, header: execution.ActionRunHeader, step: PlannedStep
) -> CalledRun:
    """The refresh a step waits for, as the step's workflow starts it."""
    run_id = execution.called_run_id(header.run_id, step.id)
    run = await run_in_workspace(work, header.workspace_id, run_id)
    request = await start_refresh_request(work, run)
    workspace_id, workflow_kind = str(header.workspace_id), workflow_kind_of(run.data_source_id)
    return CalledRun(str(run_id), workspace_id, dict(request), workflow_kind, in_line=True)


async def refresh_end(
    work: UnitOfWork, header: execution.ActionRunHeader, step: PlannedStep
) -> Callable[[], invocation.NodeResult] | None:
    """The function that gives the end of the refresh, or raises its failure; None while open."""
    run = await run_in_workspace(
        work, header.workspace_id, execution.called_run_id(header.run_id, step.id)
    )
    if run.status in OPEN_REFRESH:
        return None

    def end() -> invocation.NodeResult:
        if run.status != JobStatus.SUCCEEDED:
            raise automation_run_rules.NodeError(
                "run_failed", f"The refresh failed: {run.error or run.status}"
            )
        return invocation.NodeResult(
            {"runId": str(run.id), "status": run.status, "stats": run.stats}
        )

    return end


async def call_import(
    work: UnitOfWork, header: execution.ActionRunHeader, step: PlannedStep, parameters: JsonObject
) -> invocation.NodeResult | None:
    """Accept an import, which the step waits for. Raises what `record_import` raises."""
    invocation.check_named(parameters, step.parameters)
    config = action_rules.ImportResourceConfig.model_validate(parameters)
    job_id = execution.called_run_id(header.run_id, step.id)
    await record_import(work, header.actor, job_id, config.connection_id, config.resource)
    return None


async def called_import(
    work: UnitOfWork, header: execution.ActionRunHeader, step: PlannedStep
) -> CalledRun:
    """The import a step waits for, as the step's workflow starts it."""
    job_id = execution.called_run_id(header.run_id, step.id)
    job = await find_job(work, header.workspace_id, WorkflowKind.RESOURCE_IMPORT, job_id)
    request = dict(start_job_request(job.subject_id, "Import", "action"))
    workspace_id, workflow_kind = str(header.workspace_id), WorkflowKind.RESOURCE_IMPORT
    return CalledRun(str(job_id), workspace_id, request, workflow_kind, in_line=True)


async def import_end(
    work: UnitOfWork, header: execution.ActionRunHeader, step: PlannedStep
) -> Callable[[], invocation.NodeResult] | None:
    """The function that gives the end of the import, or raises its failure; None while open."""
    job_id = execution.called_run_id(header.run_id, step.id)
    job = await find_job(work, header.workspace_id, WorkflowKind.RESOURCE_IMPORT, job_id)
    if job.status in OPEN_JOB:
        return None

    def end() -> invocation.NodeResult:
        if job.status != JobStatus.SUCCEEDED or job.result is None:
            raise automation_run_rules.NodeError(
                job.error_code or "run_failed", job.error or "The import failed."
            )
        return invocation.NodeResult(
            {"imported": job.result["counts"], "skipped": job.result["skipped"]}
        )

    return end


@dataclass(frozen=True, slots=True)
class Call:
    """The call of a run by a step, and its end.

    `begin` gives None when the step waits; `awaited` is then the run, and `end` what gives its
    result or raises its failure, None while it is open.
    """

    begin: Callable[
        [UnitOfWork, execution.ActionRunHeader, PlannedStep, JsonObject],
        Awaitable[invocation.NodeResult | None],
    ]
    awaited: Callable[[UnitOfWork, execution.ActionRunHeader, PlannedStep], Awaitable[CalledRun]]
    end: Callable[
        [UnitOfWork, execution.ActionRunHeader, PlannedStep],
        Awaitable[Callable[[], invocation.NodeResult] | None],
    ]


CALLS: Mapping[action_rules.ActionKind, Call] = {
    action_rules.ActionKind.IMPORT_RESOURCE: Call(call_import, called_import, import_end),
    action_rules.ActionKind.REFRESH_DATA_SOURCE: Call(call_refresh, called_refresh, refresh_end),
    action_rules.ActionKind.RUN_AUTOMATION: Call(
        call_automation, called_automation, automation_end
    ),
}
"""Kinds whose work is a run."""
