"""Writing records: one alone, or many that are written together or not at all.

The API calls these, and so do the nodes of automations.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from models.core.access.rules import Actor
from models.core.base import Id
from models.data.fields.locks import share_schema
from models.data.fields.queries import load_schema
from models.data.record_changes.rules import ChangeKind
from models.data.records.commands.schema import share_schema_of
from models.data.records.commands.write import Written, write_records
from models.data.records.rules.write.operations import change_of, creation, read_operations
from models.data.records.rules.write.writes import Write, WriteOp
from models.data.records.shapes import (
    BatchResult,
    CreateRecord,
    RecordBatch,
    RecordDetail,
    UpdateRecord,
)
from runtime.database import UnitOfWork


async def create_record(
    work: UnitOfWork, actor: Actor, database_id: Id, body: CreateRecord
) -> RecordDetail:
    """A new record.

    Raises `NotFoundError` for the database and whatever the body names, `ValidationError` at
    `data.<fieldKey>` and `relations.<fieldKey>`.
    """
    return (await _into(work, actor, database_id, creation(body))).record


@dataclass(frozen=True, slots=True)
class Upserted:
    """The record, and whether it is new."""

    record: RecordDetail
    created: bool


async def upsert_record(
    work: UnitOfWork, actor: Actor, database_id: Id, by: Sequence[str], body: CreateRecord
) -> Upserted:
    """Change the one record that has the body's values in the fields `by`, or create it.

    Two upserts of the same values wait for each other, so they never create it twice.
    Raises also `ValidationError` for `by`, `ConflictError` when several records match.
    """
    write = creation(body, WriteOp.UPSERT, by)
    written = await _into(work, actor, database_id, write)
    return Upserted(written.record, created=written.kind is ChangeKind.CREATED)


async def update_record(
    work: UnitOfWork,
    actor: Actor,
    record_id: Id,
    body: UpdateRecord,
    expected_updated_at: datetime | None = None,
) -> RecordDetail:
    """Merge values into a record; null clears a key. `expected_updated_at` is as last read.

    What is so already is not written: `updatedAt` stays, and the history has no entry.
    Raises `NotFoundError`, `ValidationError` at `data.<fieldKey>`, and `ConflictError` when the
    record is no longer the one that was read.
    """
    return await _change(work, actor, change_of(record_id, body, expected_updated_at))


async def archive_record(
    work: UnitOfWork, actor: Actor, record_id: Id, expected_updated_at: datetime | None = None
) -> RecordDetail:
    """Take a record out of the lists that do not ask for archived ones."""
    write = Write(
        op=WriteOp.ARCHIVE,
        record_id=record_id,
        archived=True,
        expected_updated_at=expected_updated_at,
    )
    return await _change(work, actor, write)


async def restore_record(
    work: UnitOfWork, actor: Actor, record_id: Id, expected_updated_at: datetime | None = None
) -> RecordDetail:
    """Bring a record back from the archive, or within 30 days from the trash."""
    write = Write(
        op=WriteOp.RESTORE,
        record_id=record_id,
        archived=False,
        expected_updated_at=expected_updated_at,
    )
    return await _change(work, actor, write)


async def delete_record(
    work: UnitOfWork, actor: Actor, record_id: Id, expected_updated_at: datetime | None = None
) -> RecordDetail:
    """Put a record into the trash and return it as it was."""
    return await _change(
        work,
        actor,
        Write(op=WriteOp.DELETE, record_id=record_id, expected_updated_at=expected_updated_at),
    )


async def write_batch(
    work: UnitOfWork, actor: Actor, database_id: Id, body: RecordBatch
) -> BatchResult:
    """Do all operations, or none (decisions C3).

    No record may be meant twice. Raises `NotFoundError`, `ValidationError` and `ConflictError`,
    each naming every operation it is about as `operations.<i>`.
    """
    writes, problems = read_operations(body.operations)
    await share_schema(work, database_id)
    schema = await load_schema(work, actor.workspace_id, database_id)
    results = await write_records(work, actor, schema, writes, problems)
    created = sum(result.kind is ChangeKind.CREATED for result in results)
    deleted = sum(result.kind is ChangeKind.DELETED for result in results)
    return BatchResult.model_construct(
        records=[result.record for result in results],
        created=created,
        updated=len(results) - created - deleted,
        deleted=deleted,
    )


async def _into(work: UnitOfWork, actor: Actor, database_id: Id, write: Write) -> Written:
    await share_schema(work, database_id)
    schema = await load_schema(work, actor.workspace_id, database_id)
    return (await write_records(work, actor, schema, [write]))[0]


async def _change(work: UnitOfWork, actor: Actor, write: Write) -> RecordDetail:
    assert write.record_id is not None
    schema = await share_schema_of(work, actor.workspace_id, write.record_id)
    return (await write_records(work, actor, schema, [write]))[0].record
