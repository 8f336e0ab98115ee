"""Workflows of a legacy import: check, review, each workspace, verify, roll back (ADR 0043)."""

import asyncio

from temporalio import workflow
from temporalio.common import WorkflowIDReusePolicy
from temporalio.exceptions import (
    ActivityError,
    ChildWorkflowError,
    WorkflowAlreadyStartedError,
    is_cancelled_exception,
)

with workflow.unsafe.imports_passed_through():
    from activities import legacy_imports
    from models.workspace.legacy_imports.rules import PARALLEL, StepKind
    from runtime.temporal.workflow_kinds import Queue
    from workflows import policies
    from workflows.calls import end_as_row, transact


@workflow.defn(name="LegacyImport")
class LegacyImport:
    """One execution of a run; a retry or a rollback of an ended run is another one.

    The rows of the run decide the next step. The execution reads it, executes it, and repeats.
    While a person has to act it waits, without a limit.
    """

    def __init__(self) -> None:
        self._decisions = 0

    @workflow.signal
    def decided(self, decision: str) -> None:
        """A person has decided about the run; `decision` is for readers of the history."""
        workflow.set_current_details(f"Decided: {decision}.")
        self._decisions += 1

    @workflow.run
    async def run(self, run_id: str) -> str:
        try:
            status = await self._steps(run_id)
        except (ActivityError, asyncio.CancelledError) as error:
            # A second cancel must not leave the row of the run open.
            status = await asyncio.shield(_close(run_id, error))
        return await end_as_row(status, "The legacy import")

    async def _steps(self, run_id: str) -> str:
        while True:
            # Read before the step: a decision made during it must end the wait that follows.
            decisions = self._decisions
            step = await transact(
                legacy_imports.LegacyImportTransactions.advance, workflow.info().workflow_id
            )
            if step.kind == StepKind.END:
                return step.status
            # A signal that the next execution does not get is in the rows, which it reads first.
            if policies.has_long_history():
                workflow.continue_as_new(run_id)
            await self._do(run_id, step, decisions)

    async def _do(self, run_id: str, step: legacy_imports.NextStep, decisions: int) -> None:
        workflow.set_current_details(f"Status: {step.status.replace('_', ' ')}")
        match step.kind:
            case StepKind.VALIDATE:
                await _with_bundle(
                    run_id, legacy_imports.BundleActivities.validate, "Validate the bundle"
                )
            case StepKind.COMPARE:
                await _with_bundle(
                    run_id, legacy_imports.BundleActivities.compare, "Compare the bundle"
                )
            case StepKind.WORKSPACES:
                await _work_on(step)
            case _:
                # Without a timeout: it may be weeks until someone has looked.
                await workflow.wait_condition(lambda: self._decisions > decisions)


async def _with_bundle(run_id: str, method: object, summary: str) -> None:
    await workflow.execute_activity_method(
        method,  # type: ignore[arg-type]  # one of two methods of the same form
        run_id,
        task_queue=Queue.BULK,
        summary=summary,
        start_to_close_timeout=policies.BUNDLE_TIMEOUT,
        heartbeat_timeout=policies.HEARTBEAT_TIMEOUT,
        retry_policy=policies.JOB_RETRY,
    )


async def _work_on(step: legacy_imports.NextStep) -> None:
    """Have the work on each of the workspaces done, some of them at once."""
    # Each workspace takes a slot of `bulk`, which jobs of others need, too.
    room = asyncio.Semaphore(PARALLEL)

    async def work_on(entry_id: str) -> None:
        async with room:
            await _work_on_entry(entry_id, step)

    await asyncio.gather(*map(work_on, step.entries))


async def _work_on_entry(entry_id: str, step: legacy_imports.NextStep) -> None:
    try:
        await workflow.execute_child_workflow(
            ImportWorkspace.run,
            entry_id,
            id=f"{step.execution}/{entry_id}",
            id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
            static_summary=step.status.replace("_", " ").capitalize(),
        )
    except WorkflowAlreadyStartedError:
        # It was the child of an execution before this one, and is about to be ended with that.
        await workflow.sleep(
            policies.RESTART_PAUSE, summary="Waiting for an earlier execution to end"
        )
    except ChildWorkflowError as error:
        if is_cancelled_exception(error):
            raise
        reason = f"Unexpected error: {_root(error)}."
        await transact(
            legacy_imports.LegacyImportTransactions.fail_workspace,
            legacy_imports.Trouble(entry_id, reason),
        )


async def _close(run_id: str, error: BaseException) -> str:
    cancelled = is_cancelled_exception(error)
    if cancelled and workflow.cancellation_reason() is not None:
        reason = "Cancelled in Temporal."
    else:
        reason = f"Unexpected error: {_root(error)}."
    return await transact(
        legacy_imports.LegacyImportTransactions.close,
        legacy_imports.Trouble(run_id, reason, cancelled),
    )


def _root(error: BaseException) -> str:
    """The kind of the error at the bottom, which holds no user data."""
    while error.__cause__ is not None:
        error = error.__cause__
    return getattr(error, "type", None) or type(error).__name__


@workflow.defn(name="ImportWorkspace")
class ImportWorkspace:
    """Do as the status of its run asks: check, import, verify or roll back."""

    @workflow.run
    async def run(self, entry_id: str) -> str:
        """The stage that the workspace is in afterwards."""
        table = ["| Stage | Counts |", "|---|---|"]
        while True:
            reply = await workflow.execute_activity_method(
                legacy_imports.WorkspaceActivities.work_on,
                entry_id,
                task_queue=Queue.BULK,
                summary=f"Stage {len(table) - 1}",
                start_to_close_timeout=policies.BUNDLE_TIMEOUT,
                heartbeat_timeout=policies.HEARTBEAT_TIMEOUT,
                retry_policy=policies.JOB_RETRY,
            )
            counts = ", ".join(f"{count:,} {name}" for name, count in sorted(reply.counts.items()))
            table.append(f"| {reply.stage} | {counts or '-'} |")
            workflow.set_current_details("\n".join(table))
            if reply.done:
                return reply.stage
