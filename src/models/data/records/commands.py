"""Commands on records: create, upsert, change, delete, batch; contents, timers, the trash.

The API calls these commands, and so do the nodes of automations.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from models.content.surfaces.commands import create_content_surface
from models.content.surfaces.queries import detail, find_surface
from models.content.surfaces.shapes import SurfaceDetail
from models.core.access.rules import Actor, Scope
from models.core.base import Id
from models.core.purging import Retention
from models.data.fields.commands import share_schema, share_schema_soon, sharing
from models.data.fields.queries import load_schema
from models.data.fields.rules.fields import Schema
from models.data.record_changes.rules import ChangeKind
from models.data.records import shapes
from models.data.records.computed_values import recompute
from models.data.records.queries import this_record
from models.data.records.rules.writes import Write, WriteOp, change_of, creation, read_operations
from models.data.records.side_index import index_records
from models.data.records.tables import record
from models.data.records.write import Written, write_records
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError
from runtime.postgresql.statements import PreparedStatement


async def create_record(
    work: UnitOfWork, actor: Actor, database_id: Id, body: shapes.CreateRecord
) -> shapes.RecordDetail:
    """A new record.

    Raises `NotFoundError` for the database and whatever the body names, `ValidationError` at
    `data.<fieldKey>` and `relations.<fieldKey>`.
    """
    return (await _into(work, actor, database_id, creation(body))).record


@dataclass(frozen=True, slots=True)
class Upserted:
    """The record, and whether it is new."""

    record: shapes.RecordDetail
    created: bool


async def upsert_record(
    work: UnitOfWork, actor: Actor, database_id: Id, by: Sequence[str], body: shapes.CreateRecord
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
    body: shapes.UpdateRecord,
    expected_updated_at: datetime | None = None,
) -> shapes.RecordDetail:
    """Merge values into a record; null clears a key. `expected_updated_at` is as last read.

    What is so already is not written: `updatedAt` stays, and the history has no entry.
    Raises `NotFoundError`, `ValidationError` at `data.<fieldKey>`, and `ConflictError` when the
    record is no longer the one that was read.
    """
    return await _change(work, actor, change_of(record_id, body, expected_updated_at))


async def archive_record(
    work: UnitOfWork, actor: Actor, record_id: Id, expected_updated_at: datetime | None = None
) -> shapes.RecordDetail:
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
) -> shapes.RecordDetail:
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
) -> shapes.RecordDetail:
    """Put a record into the trash and return it as it was."""
    return await _change(
        work,
        actor,
        Write(op=WriteOp.DELETE, record_id=record_id, expected_updated_at=expected_updated_at),
    )


async def write_batch(
    work: UnitOfWork, actor: Actor, database_id: Id, body: shapes.RecordBatch
) -> shapes.BatchResult:
    """Do all operations, or none (interface.md#writes-of-records).

    No record may be meant twice. Raises `NotFoundError`, `ValidationError` and `ConflictError`,
    each naming every operation it is about as `operations.<i>`.
    """
    writes, problems = read_operations(body.operations)
    await share_schema(work, database_id)
    schema = await load_schema(work, actor.workspace_id, database_id)
    results = await write_records(work, actor, schema, writes, problems)
    created = sum(result.kind is ChangeKind.CREATED for result in results)
    deleted = sum(result.kind is ChangeKind.DELETED for result in results)
    return shapes.BatchResult.model_construct(
        records=[result.record for result in results],
        created=created,
        updated=len(results) - created - deleted,
        deleted=deleted,
    )


async def _into(work: UnitOfWork, actor: Actor, database_id: Id, write: Write) -> Written:
    await share_schema(work, database_id)
    schema = await load_schema(work, actor.workspace_id, database_id)
    return (await write_records(work, actor, schema, [write]))[0]


async def _change(work: UnitOfWork, actor: Actor, write: Write) -> shapes.RecordDetail:
    assert write.record_id is not None
    schema = await share_schema_of(work, actor.workspace_id, write.record_id)
    return (await write_records(work, actor, schema, [write]))[0].record


_SHARED = PreparedStatement(
    sa.select(record.c.database_id, sharing(record.c.database_id)).where(
        record.c.workspace_id == sa.bindparam("workspace_id", type_=sa.Uuid),
        record.c.id == sa.bindparam("record_id", type_=sa.Uuid),
    )
)


async def share_schema_of(work: UnitOfWork, workspace_id: Id, record_id: Id) -> Schema:
    """The schema of a record, in the trash or not, which stays as it is until the end.

    Raises `NotFoundError`, also when its database is in the trash, and `FieldsChangingError`. The
    fields are read by a statement of their own: one that waited for the lock would still see what
    was there before.
    """
    found = await _SHARED.first(work, {"workspace_id": workspace_id, "record_id": record_id})
    if found is None:
        raise NotFoundError("record")
    if not found.shared:
        await share_schema_soon(work, found.database_id)
    return await load_schema(work, workspace_id, found.database_id, "record")


async def content_surface(work: UnitOfWork, actor: Actor, record_id: Id) -> SurfaceDetail:
    """The content of a record with its blocks, made if it has none. Raises `NotFoundError`."""
    surface_id = await _surface_of(work, actor, record_id)
    found = await find_surface(work, actor, surface_id, Scope.SURFACES_WRITE)
    return await detail(work, actor, found)


async def _surface_of(work: UnitOfWork, actor: Actor, record_id: Id) -> Id:
    """The surface that a record names; the record is locked until it names one.

    Raises `NotFoundError`.
    """
    conditions = this_record(actor.workspace_id, record_id)
    row = await work.one(
        sa.select(record.c.database_id, record.c.content_surface_id)
        .where(*conditions)
        .with_for_update(key_share=True),
        "record",
    )
    if row.content_surface_id is not None:
        existing: Id = row.content_surface_id
        return existing
    made = await create_content_surface(work, actor, row.database_id, record_id)
    await work.execute(sa.update(record).where(*conditions).values(content_surface_id=made))
    return made


async def hold_record(work: UnitOfWork, schema: Schema, record_id: Id) -> bool:
    """Hold a record, in the trash or not, until the transaction ends; False when it is gone."""
    held = sa.select(record.c.id).where(*_this(schema, record_id)).with_for_update(key_share=True)
    return await work.first(held) is not None


async def write_timer(
    work: UnitOfWork, schema: Schema, record_id: Id, key: str, total_ms: int, running: Id | None
) -> None:
    """Write a timer of a held record, and what follows from it."""
    value = {"totalMs": total_ms, "runningEntryId": None if running is None else str(running)}
    merged = record.c.computed.op("||", return_type=JSONB())(sa.literal({key: value}, JSONB))
    await work.execute(sa.update(record).where(*_this(schema, record_id)).values(computed=merged))
    await index_records(work, schema, [record_id], [key])
    await recompute(work, schema, [record_id], [key])


def _this(schema: Schema, record_id: Id) -> tuple[sa.ColumnElement[bool], ...]:
    return (
        record.c.workspace_id == schema.workspace_id,
        record.c.database_id == schema.database_id,
        record.c.id == record_id,
    )


purge_records = Retention(record, record.c.deleted_at, order=(record.c.deleted_at, record.c.id))
"""Records in the trash, with their links, comments, contents and history.

Nothing follows from a record in the trash, so nothing is computed anew.
"""
