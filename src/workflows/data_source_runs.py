"""Workflows of refreshes and imports: fetch, stage and apply rows, or nothing of it."""

import asyncio
from collections.abc import Mapping

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError, is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from activities.data_source_runs.steps import CONTINUE, STAGE_AGAIN, DataSourceRunActivities
    from models.sources.data_source_runs.rules import Stage
    from runtime.temporal.workflow_kinds import Queue
    from workflows import policies
    from workflows.calls import MARKS, call_outside, end_as_row


@workflow.defn(name="DataSourceRefresh")
class DataSourceRefresh:
    """One run; the argument is its id. Nothing of it is visible before all of it is."""

    @workflow.run
    async def run(self, run_id: str) -> str:
        return await execute(run_id, "The refresh")


@workflow.defn(name="SpreadsheetImport")
class SpreadsheetImport:
    """One run; the argument is its id. Nothing of it is visible before all of it is."""

    @workflow.run
    async def run(self, run_id: str) -> str:
        return await execute(run_id, "The import")


async def execute(run_id: str, label: str) -> str:
    """Execute a run; gives its final status, or ends the execution as the row did."""
    table, where = StageTable(), ""
    try:
        status = await _steps(run_id, table)
    except (ActivityError, asyncio.CancelledError) as error:
        cancelled = is_cancelled_exception(error)
        table.stop("cancelled" if cancelled else "failed")
        where = f" at {table.stage}{_code(error)}"
        # A second cancel must not leave staged rows and an open row behind.
        status = await asyncio.shield(_close(run_id, cancelled=cancelled))
    return await end_as_row(status, label, where)


def _code(error: BaseException) -> str:
    """The kind of the problem a stage ended with, as its row has it."""
    cause = error.__cause__
    return f": {cause.type}" if isinstance(cause, ApplicationError) else ""


class StageTable:
    """One line per stage: its state, and what it counted once it is over.

    The counts of a running stage are in the heartbeats of its pending activity.
    """

    def __init__(self) -> None:
        self._states: dict[Stage, str] = {}
        self._counts: dict[Stage, Mapping[str, int]] = {}
        self.stage = Stage.FETCH

    def begin(self, stage: Stage) -> None:
        self.stage = stage
        self._show("running")

    def end(self, counts: Mapping[str, int]) -> None:
        self._counts[self.stage] = counts
        self._show("succeeded")

    def stop(self, state: str) -> None:
        """The run ends in this stage."""
        self._show(state)

    def markdown(self) -> str:
        """A table with one line per stage, in their order."""
        lines = ["| Stage | Status | Counts |", "|---|---|---|"]
        for stage in Stage:
            state = self._states.get(stage)
            shown = "-" if state is None else f"{MARKS[state]} {state}"
            lines.append(f"| {stage} | {shown} | {_in_words(self._counts.get(stage, {}))} |")
        return "\n".join(lines)

    def _show(self, state: str) -> None:
        self._states[self.stage] = state
        workflow.set_current_details(self.markdown())


async def _steps(run_id: str, table: StageTable) -> str:
    table.begin(Stage.FETCH)
    fetched = await call_outside(
        lambda queue, _: workflow.execute_activity_method(
            DataSourceRunActivities.fetch,
            run_id,
            task_queue=queue,
            summary="Fetch",
            start_to_close_timeout=policies.FETCH_TIMEOUT,
            heartbeat_timeout=policies.HEARTBEAT_TIMEOUT,
            retry_policy=policies.FETCH_RETRY,
        )
    )
    table.end(fetched.counts)
    if fetched.status != CONTINUE:
        return fetched.status
    status = STAGE_AGAIN
    # Staged rows are in an unlogged table, which PostgreSQL empties after a crash.
    while status == STAGE_AGAIN:
        status = await _stage_and_apply(run_id, table)
    return status


async def _stage_and_apply(run_id: str, table: StageTable) -> str:
    table.begin(Stage.STAGE)
    staged = await workflow.execute_activity_method(
        DataSourceRunActivities.stage,
        run_id,
        task_queue=Queue.BULK,
        summary="Stage rows",
        start_to_close_timeout=policies.STAGE_TIMEOUT,
        heartbeat_timeout=policies.HEARTBEAT_TIMEOUT,
        retry_policy=policies.JOB_RETRY,
    )
    table.end(staged.counts)
    if staged.status != CONTINUE:
        return staged.status
    table.begin(Stage.APPLY)
    applied = await workflow.execute_activity_method(
        DataSourceRunActivities.apply,
        run_id,
        task_queue=Queue.BULK,
        summary="Apply rows",
        start_to_close_timeout=policies.APPLY_TIMEOUT,
        heartbeat_timeout=policies.HEARTBEAT_TIMEOUT,
        retry_policy=policies.JOB_RETRY,
    )
    table.end(applied.counts)
    return applied.status


async def _close(run_id: str, *, cancelled: bool) -> str:
    return await workflow.execute_activity_method(
        DataSourceRunActivities.close,
        args=[run_id, cancelled],
        task_queue=Queue.BULK,
        summary="Roll back",
        start_to_close_timeout=policies.STAGE_TIMEOUT,
        heartbeat_timeout=policies.HEARTBEAT_TIMEOUT,
        retry_policy=policies.DATABASE_RETRY,
    )


def _in_words(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in counts.items()) or "-"
