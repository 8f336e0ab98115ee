"""Copies of databases as tests drive them: one chunk after the other, with no engine between."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import func, select, text

from activities.jobs.records import DatabaseCopies
from activities.jobs.transactions import FAILED, MORE, Chunks, JobActivities
from models.content.surfaces.queries import surface
from models.core.access.rules import Actor
from models.data.database_copies.commands import DuplicateDatabase, accept_copy
from models.data.fields.tables import database, field
from models.data.record_templates import record_template
from models.data.records.tables import record
from models.data.views.queries import view
from models.messages.jobs.rules import JobStatus
from models.messages.jobs.store import job
from runtime.database import Database
from runtime.ids import new_id
from runtime.temporal.workflow_kinds import WorkflowKind

_BULK = text(
    "INSERT INTO record (id, workspace_id, database_id, title, data, archived, created_at,"
    " updated_at) SELECT gen_random_uuid(), :workspace_id, :database_id, 'Record ' || n,"
    " jsonb_build_object('code', 'c' || n, 'price', n), n % 7 = 0, now(), now()"
    " FROM generate_series(1, :count) n"
)


async def fill(target: Database, workspace_id: UUID, database_id: UUID, count: int) -> None:
    """Put many records into a database that has the fields `code` and `price`."""
    values = {"workspace_id": workspace_id, "database_id": database_id, "count": count}
    async with target.transaction() as work:
        await work.execute(_BULK, values)


@dataclass(frozen=True, slots=True)
class Duplicating:
    """One copy that is being made."""

    target: Database
    copy_id: UUID
    activities: JobActivities

    async def step(self) -> str:
        return await self.activities.advance_job(str(self.copy_id))

    async def finish(self) -> str:
        """Chunk by chunk to the end, as the workflow does it."""
        while (outcome := await self.step()) == MORE:
            pass
        if outcome == FAILED:
            await self.take_back()
        return outcome

    async def take_back(self) -> None:
        failed = JobStatus.FAILED.value
        while await self.activities.undo_job(str(self.copy_id), failed) == MORE:
            pass

    async def row(self) -> Any:
        async with self.target.transaction() as work:
            return await work.first(select(job).where(job.c.id == self.copy_id))

    async def left(self) -> dict[str, int]:
        """What there is of the copy, table by table; nothing where there is none."""
        async with self.target.transaction() as work:
            found = {
                "database": await work.scalar(
                    select(func.count()).where(database.c.id == self.copy_id)
                )
            }
            for table in (field, record, view, record_template, surface):
                count = select(func.count()).where(table.c.database_id == self.copy_id)
                found[table.name] = await work.scalar(count)
        return {name: count for name, count in found.items() if count}


async def duplicate(
    target: Database,
    actor: Actor,
    database_id: UUID,
    *,
    records: bool = True,
    chunks: Chunks | None = None,
) -> Duplicating:
    """Accept a copy, to be driven by the test."""
    copy_id = new_id()
    body = DuplicateDatabase.model_validate({"includeRecords": records})
    async with target.transaction() as work:
        await accept_copy(work, actor, database_id, copy_id, body)
    workflow_kinds = {WorkflowKind.DATABASE_DUPLICATE: chunks or DatabaseCopies(100)}
    return Duplicating(target, copy_id, JobActivities(target, workflow_kinds))
