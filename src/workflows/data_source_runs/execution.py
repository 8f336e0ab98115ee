"""The steps of refreshes and imports: fetch, stage and apply rows, or nothing of it."""

import asyncio

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError, is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from activities.data_source_runs.steps import CONTINUE, STAGE_AGAIN, DataSourceRunActivities
    from models.sources.data_source_runs.rules import Stage
    from runtime.families import Queue
    from workflows.data_source_runs.stage_table import StageTable
    from workflows.endings import end_as_row
    from workflows.outside_calls import call_outside
    from workflows.policies import (
        APPLY_TIMEOUT,
        DATABASE_RETRY,
        FETCH_RETRY,
        FETCH_TIMEOUT,
        HEARTBEAT_TIMEOUT,
        JOB_RETRY,
        STAGE_TIMEOUT,
    )


async def execute(run_id: str, label: str) -> str:
    """Execute a run; gives its final status, or ends the execution as the row did."""
    table, where = StageTable(), ""
    try:
        status = await _steps(run_id, table)
    except (ActivityError, asyncio.CancelledError) as error:
        cancelled = is_cancelled_exception(error)
        table.stop("cancelled" if cancelled else "failed")
        where = f" at {table.stage}{_code(error)}"
        status = await asyncio.shield(_close(run_id, cancelled=cancelled))
    return await end_as_row(status, label, where)


def _code(error: BaseException) -> str:
    """The kind of the problem a stage ended with, as its row has it."""
    cause = error.__cause__
    return f": {cause.type}" if isinstance(cause, ApplicationError) else ""


async def _steps(run_id: str, table: StageTable) -> str:
    table.begin(Stage.FETCH)
    fetched = await call_outside(
        lambda queue, _: workflow.execute_activity_method(
            DataSourceRunActivities.fetch,
            run_id,
            task_queue=queue,
            summary="Fetch",
            start_to_close_timeout=FETCH_TIMEOUT,
            heartbeat_timeout=HEARTBEAT_TIMEOUT,
            retry_policy=FETCH_RETRY,
        )
    )
    table.end(fetched.counts)
    if fetched.status != CONTINUE:
        return fetched.status
    status = STAGE_AGAIN
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
        start_to_close_timeout=STAGE_TIMEOUT,
        heartbeat_timeout=HEARTBEAT_TIMEOUT,
        retry_policy=JOB_RETRY,
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
        start_to_close_timeout=APPLY_TIMEOUT,
        heartbeat_timeout=HEARTBEAT_TIMEOUT,
        retry_policy=JOB_RETRY,
    )
    table.end(applied.counts)
    return applied.status


async def _close(run_id: str, *, cancelled: bool) -> str:
    return await workflow.execute_activity_method(
        DataSourceRunActivities.close,
        args=[run_id, cancelled],
        task_queue=Queue.BULK,
        summary="Take back",
        start_to_close_timeout=STAGE_TIMEOUT,
        heartbeat_timeout=HEARTBEAT_TIMEOUT,
        retry_policy=DATABASE_RETRY,
    )
