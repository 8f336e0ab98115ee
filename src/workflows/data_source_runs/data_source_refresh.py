"""The workflow that brings rows in: a refresh of a data source, or an import of a spreadsheet."""

import asyncio

from temporalio import workflow
from temporalio.exceptions import ActivityError, is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from activities.data_source_runs.steps import CONTINUE, STAGE_AGAIN, DataSourceRunActivities
    from runtime.families import Queue
    from workflows.endings import end_as_row
    from workflows.policies import (
        APPLY_TIMEOUT,
        DATABASE_RETRY,
        FETCH_RETRY,
        FETCH_TIMEOUT,
        HEARTBEAT_TIMEOUT,
        JOB_RETRY,
        STAGE_TIMEOUT,
    )


@workflow.defn(name="DataSourceRefresh")
class DataSourceRefresh:
    """One run; the argument is its id. Nothing of it is visible before all of it is."""

    @workflow.run
    async def run(self, run_id: str) -> str:
        try:
            status = await _bring_in(run_id)
        except (ActivityError, asyncio.CancelledError) as error:
            cancelled = is_cancelled_exception(error)
            status = await asyncio.shield(_close(run_id, cancelled=cancelled))
        return await end_as_row(status, "The run")


async def _bring_in(run_id: str) -> str:
    fetched = await workflow.execute_activity_method(
        DataSourceRunActivities.fetch,
        run_id,
        task_queue=Queue.IO,
        summary="Fetch",
        start_to_close_timeout=FETCH_TIMEOUT,
        heartbeat_timeout=HEARTBEAT_TIMEOUT,
        retry_policy=FETCH_RETRY,
    )
    if fetched != CONTINUE:
        return fetched
    status = STAGE_AGAIN
    while status == STAGE_AGAIN:
        status = await _stage_and_apply(run_id)
    return status


async def _stage_and_apply(run_id: str) -> str:
    staged = await workflow.execute_activity_method(
        DataSourceRunActivities.stage,
        run_id,
        task_queue=Queue.BULK,
        summary="Stage rows",
        start_to_close_timeout=STAGE_TIMEOUT,
        heartbeat_timeout=HEARTBEAT_TIMEOUT,
        retry_policy=JOB_RETRY,
    )
    if staged != CONTINUE:
        return staged
    return await workflow.execute_activity_method(
        DataSourceRunActivities.apply,
        run_id,
        task_queue=Queue.BULK,
        summary="Apply rows",
        start_to_close_timeout=APPLY_TIMEOUT,
        heartbeat_timeout=HEARTBEAT_TIMEOUT,
        retry_policy=JOB_RETRY,
    )


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
