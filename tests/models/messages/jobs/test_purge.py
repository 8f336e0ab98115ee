"""Jobs that ended long ago are forgotten."""

from typing import Any

import pytest
from sqlalchemy import insert, update

from models.data.databases.field_conversion import conversion_value
from models.messages.jobs.store import job, purge_jobs
from models.sources.data_sources.commands import purge_previews
from models.sources.provider_calls import purge_calls
from runtime.ids import new_id
from runtime.temporal.workflow_kinds import WorkflowKind
from tests.support.ageing import ago, ids_of, old_job, purged, rows_of
from tests.support.spaces import Space


async def test_only_jobs_that_ended_long_ago_go(space: Space, foreign: Space) -> None:
    kept = {
        await old_job(space, 29),
        await old_job(space, 29, accepted=31),
        await old_job(space, 31, "running"),
        await old_job(space, 31, "queued"),
    }
    for status in ("succeeded", "failed", "cancelled"):
        await old_job(space, 31, status)
    theirs = await old_job(foreign, 29)
    await purged(space.database, purge_jobs, ago(30))
    assert await ids_of(space, job) == kept
    assert await ids_of(foreign, job) == {theirs}
    assert await purged(space.database, purge_jobs, ago(30)) == 0


@pytest.mark.parametrize(
    ("workflow_kind", "purge"),
    [(WorkflowKind.PROVIDER_CALL, purge_calls), (WorkflowKind.DATA_SOURCE_PREVIEW, purge_previews)],
)
async def test_previews_of_outside_resources_are_purged_after_an_hour(
    space: Space, workflow_kind: WorkflowKind, purge: Any
) -> None:
    other, call = await old_job(space, 1), await old_job(space, 1)
    async with space.database.transaction() as work:
        await work.execute(
            update(job).where(job.c.id == call).values(workflow_kind=workflow_kind.value)
        )
    async with space.database.transaction() as work:
        assert await purge(work)
    assert await ids_of(space, job) == {other}


async def test_the_rows_of_a_job_are_purged_with_it_in_batches(space: Space) -> None:
    await purged(space.database, purge_jobs, ago(30))
    job_id = await old_job(space, 31, "failed")
    async with space.database.transaction() as work:
        for _ in range(5):
            await work.execute(
                insert(conversion_value).values(
                    job_id=job_id,
                    record_id=new_id(),
                    workspace_id=space.id,
                    value=1,
                    record_updated_at=work.now,
                )
            )
    assert await purged(space.database, purge_jobs, ago(30), limit=2) == 6
    assert not (await rows_of(space)).keys() & {"job", "field_conversion_value"}
