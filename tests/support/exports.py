"""Exports as tests ask for them: over HTTP, with a worker of the test's own behind it."""

import asyncio
import csv
import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any
from uuid import UUID

from openpyxl import load_workbook
from sqlalchemy import select

from activities.jobs.exports import PART, Exports
from activities.jobs.transactions import FAILED, MORE, JobActivities
from models.messages.jobs.rules import OPEN_JOB, JobStatus
from models.messages.jobs.store import job
from runtime.database import Database
from runtime.object_store import ObjectStore
from runtime.temporal.workflow_kinds import WorkflowKind
from tests.support.client import Client

Json = dict[str, Any]


class Exporting:
    """A worker that knows exports alone."""

    def __init__(self, database: Database, store: ObjectStore, part: int = PART) -> None:
        self.database = database
        self.jobs = JobActivities(database, {WorkflowKind.EXPORT: Exports(store, part)})

    async def open_jobs(self, workspace_id: UUID) -> list[str]:
        async with self.database.transaction() as work:
            rows = await work.rows(
                select(job.c.id).where(
                    job.c.workspace_id == workspace_id,
                    job.c.workflow_kind == WorkflowKind.EXPORT.value,
                    job.c.status.in_(OPEN_JOB),
                )
            )
        return [str(row.id) for row in rows]

    async def finish(self, job_id: str) -> str:
        """Chunk by chunk to the end, as the workflow does it."""
        while (outcome := await self.jobs.advance_job(job_id)) == MORE:
            pass
        if outcome == FAILED:
            while await self.jobs.undo_job(job_id, JobStatus.FAILED.value) == MORE:
                pass
        return outcome

    @asynccontextmanager
    async def running(self, workspace_id: UUID) -> AsyncIterator[None]:
        """Finish every requested export of a workspace, until the block ends."""

        async def work() -> None:
            while True:
                for job_id in await self.open_jobs(workspace_id):
                    await self.finish(job_id)
                await asyncio.sleep(0.02)

        task = asyncio.create_task(work())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def export(client: Client, database_id: str, **body: Any) -> Json:
    """An export that is waited for."""
    answer = await client.post(f"/v1/databases/{database_id}/export", json=body)
    assert answer.status_code == 200, answer.text
    shown: Json = answer.json()["data"]
    return shown


async def content(client: Client, exported: Json) -> bytes:
    """The bytes of its file."""
    assert exported["status"] == "succeeded", exported
    answer = await client.get(exported["file"]["downloadUrl"])
    assert answer.status_code == 200
    return answer.content


def read_csv(data: bytes) -> list[list[str]]:
    """The rows of a CSV file as a program reads them."""
    return list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline="")))


def read_xlsx(data: bytes) -> list[list[Any]]:
    """The values of the only sheet."""
    sheet = load_workbook(io.BytesIO(data)).active
    assert sheet is not None
    return [[cell.value for cell in row] for row in sheet.iter_rows()]
