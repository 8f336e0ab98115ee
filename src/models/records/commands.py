"""Writing records: every value checked against the fields, every statement inside the workspace.

The API calls these, and so do the nodes of automations.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import (
    ARRAY,
    CTE,
    ColumnElement,
    Row,
    Text,
    cast,
    func,
    insert,
    literal,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import JSONB

from models.access.rules import Actor
from models.base import Id
from models.databases.commands import lock_fields, store_options
from models.databases.queries import load_schema
from models.databases.rules.fields import Schema
from models.databases.rules.kinds import TITLE_KEY, FieldKind
from models.databases.tables import database
from models.records.details import record_detail
from models.records.queries import load_schema_of, this_record
from models.records.rules.data import Change, check_new, check_patch, shown_key, with_title
from models.records.rules.options import grow_options
from models.records.shapes import CreateRecord, RecordDetail, UpdateRecord
from models.records.tables import record
from models.workspaces.tables import workspace_member
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, NotFoundError, ValidationError
from runtime.ids import new_id

MAX_DATA_BYTES = 1 << 20


async def create_record(
    work: UnitOfWork, actor: Actor, database_id: Id, body: CreateRecord
) -> RecordDetail:
    """A new record.

    Raises `NotFoundError` for the database, `ValidationError` at `data.<fieldKey>`.
    """
    schema = await load_schema(work, actor.workspace_id, database_id)
    if body.template_id is not None:
        raise NotFoundError("record template")
    _refuse_relations(body.relations)
    return await insert_record(work, actor, schema, with_title(body.data, body.title))


async def insert_record(
    work: UnitOfWork, actor: Actor, schema: Schema, written: Mapping[str, Any]
) -> RecordDetail:
    """A new record with these values, in a database whose schema was just read."""
    schema, written = await _with_new_options(work, schema, written)
    change = check_new(schema.fields, written)
    await _check_people(work, schema, change)
    statement = (
        insert(record)
        .values(
            id=new_id(),
            workspace_id=schema.workspace_id,
            database_id=schema.database_id,
            title=change.title or "",
            data=change.data,
            archived=False,
            created_by_user_id=actor.user_id,
            updated_by_user_id=actor.user_id,
            created_at=work.now,
            updated_at=work.now,
        )
        .returning(record, _SIZE)
    )
    if any(spec.kind is FieldKind.AUTO_NUMBER for spec in schema.fields.values()):
        # One statement counts and inserts: the counter's row lock orders concurrent creations.
        counted = _next_number(schema)
        statement = statement.values(number=select(counted.c.number).scalar_subquery())
    return _stored(await work.first(statement), schema)


async def update_record(
    work: UnitOfWork,
    actor: Actor,
    record_id: Id,
    body: UpdateRecord,
    expected: datetime | None = None,
) -> RecordDetail:
    """Merge values into a record; null clears a key. `expected` is the `updatedAt` last read.

    Raises `NotFoundError`, `ValidationError` at `data.<fieldKey>`, and `ConflictError` when the
    record is no longer the one that was read.
    """
    schema = await load_schema_of(work, actor.workspace_id, record_id)
    _refuse_relations(body.relations)
    written = with_title(body.data, body.title)
    if body.title is None and "title" in body.model_fields_set:
        written = {**written, TITLE_KEY: None}
    return await change_record(work, actor, schema, record_id, written, body.archived, expected)


async def change_record(
    work: UnitOfWork,
    actor: Actor,
    schema: Schema,
    record_id: Id,
    written: Mapping[str, Any],
    archived: bool | None = None,
    expected: datetime | None = None,
) -> RecordDetail:
    """Change a record of a database whose schema was just read."""
    schema, written = await _with_new_options(work, schema, written)
    change = check_patch(schema.fields, written)
    await _check_people(work, schema, change)
    statement = (
        update(record)
        .where(*this_record(actor.workspace_id, record_id))
        .values(
            data=_merged(change),
            title=record.c.title if change.title is None else change.title,
            archived=record.c.archived if archived is None else archived,
            updated_by_user_id=actor.user_id,
            updated_at=_later(work.now),
        )
        .returning(record, _SIZE)
    )
    if expected is not None:
        statement = statement.where(record.c.updated_at == expected)
    row = await work.first(statement)
    if row is None and expected is not None:
        raise ConflictError("The record was changed since it was read. Read it again.")
    return _stored(row, schema)


async def delete_record(work: UnitOfWork, actor: Actor, record_id: Id) -> RecordDetail:
    """Put a record into the trash and return it as it was. Raises `NotFoundError`."""
    schema = await load_schema_of(work, actor.workspace_id, record_id)
    row = await work.first(
        update(record)
        .where(*this_record(actor.workspace_id, record_id))
        .values(deleted_at=work.now)
        .returning(record)
    )
    if row is None:
        raise NotFoundError("record")
    return record_detail(row, schema.fields)


_SIZE = func.octet_length(cast(record.c.data, Text)).label("data_bytes")


def _merged(change: Change) -> ColumnElement[Any]:
    kept = record.c.data.op("-", return_type=JSONB())(literal(sorted(change.cleared), ARRAY(Text)))
    merged: ColumnElement[Any] = kept.op("||", return_type=JSONB())(literal(change.data, JSONB))
    return merged


def _later(now: datetime) -> ColumnElement[datetime]:
    """Now, or just after the last change: `updatedAt` never repeats, so If-Match sees each."""
    return func.greatest(
        literal(now, record.c.updated_at.type),
        record.c.updated_at + timedelta(milliseconds=1),
    )


def _next_number(schema: Schema) -> CTE:
    return (
        update(database)
        .where(database.c.workspace_id == schema.workspace_id, database.c.id == schema.database_id)
        .values(next_number=database.c.next_number + 1)
        .returning((database.c.next_number - 1).label("number"))
        .cte("counted")
    )


def _stored(row: Row[Any] | None, schema: Schema) -> RecordDetail:
    if row is None:
        raise NotFoundError("record")
    if row.data_bytes > MAX_DATA_BYTES:
        raise ValidationError.at("data", "holds more than 1 MiB in all")
    return record_detail(row, schema.fields)


def _refuse_relations(relations: Mapping[str, Any] | None) -> None:
    """No database has relation fields yet, so no key of `relations` is one."""
    for key in relations or ():
        raise ValidationError.at(
            f"relations.{shown_key(key)}", "is not the key of a relation field of this database"
        )


async def _with_new_options(
    work: UnitOfWork, schema: Schema, written: Mapping[str, Any]
) -> tuple[Schema, Mapping[str, Any]]:
    """Add the options that the written values bring, where their fields allow it."""
    wanted = grow_options(schema, written, new_id)
    if not wanted.grown:
        return schema, wanted.written
    locked = await lock_fields(work, schema, wanted.grown)
    grown = grow_options(locked, written, new_id)
    await store_options(work, grown.schema, grown.grown)
    return grown.schema, grown.written


async def _check_people(work: UnitOfWork, schema: Schema, change: Change) -> None:
    """Every person a record names is a member: nobody else's id tells whether it exists."""
    people = change.people(schema.fields)
    if not people:
        return
    rows = await work.rows(
        select(workspace_member.c.user_id).where(
            workspace_member.c.workspace_id == schema.workspace_id,
            workspace_member.c.user_id.in_([Id(user) for user in people]),
        )
    )
    strangers = people.keys() - {str(row.user_id) for row in rows}
    if strangers:
        stranger = min(strangers)
        raise ValidationError.at(people[stranger], f"{stranger} is not a member of this workspace")
