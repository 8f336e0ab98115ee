"""Writing very many records at once: from rows, from COPY lines, or as a field changes.

Imports and refreshes write this way. The records are typed values of writable fields, checked when
they were read; they have no links, no contents and no template. History, the side index and
computed values are kept as for any other write; `events.emit_written` tells automations. A change
of a field reaches records in the trash too, because they may be restored.
"""

from collections.abc import Collection, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from models.core.access.rules import Actor
from models.core.base import Id
from models.core.values import next_updated_at
from models.data.fields.commands import advance_number
from models.data.fields.queries import next_number_of
from models.data.fields.rules.fields import FieldKind, FieldSpec, Schema
from models.data.records import rows as record_rows
from models.data.records.computed_values import MAX_AT_ONCE, recompute, request_recomputation
from models.data.records.links import incoming_relations, seen_links, sides_of
from models.data.records.rules.computed_order import Stale
from models.data.records.rules.values import COPIED_COLUMNS
from models.data.records.side_index import index_where
from models.data.records.tables import record
from runtime.database import UnitOfWork
from runtime.errors import ConflictError
from runtime.postgresql.copy_format import HEADER, TRAILER


async def insert_from(
    work: UnitOfWork,
    actor: Actor,
    schema: Schema,
    source: sa.CTE,
    count: int,
    also: Sequence[sa.CTE] = (),
) -> None:
    """Insert `count` records.

    `source` has the columns `id`, made in this transaction by the database's clock, in whose order
    they are numbered, `title`, `data`, `links`,
    `omitted` and `content_surface_id`; `also` is written by the same statement.
    """
    parameters = record_rows.write_parameters(work, actor, schema)
    number: sa.ColumnElement[int | None] = sa.literal(None, sa.BigInteger)
    if any(spec.kind is FieldKind.AUTO_NUMBER for spec in schema.fields.values()):
        place = sa.func.row_number().over(order_by=source.c.id) - 1
        number = sa.select(record_rows.COUNTED.c.first).scalar_subquery() + place
        parameters["count"] = count
    # The change that tells of a creation has the id of the record, which is as new.
    statement = record_rows.inserting(number, source, source.c.id).add_cte(*also)
    await work.execute(statement, parameters)


async def update_from(
    work: UnitOfWork, actor: Actor, schema: Schema, source: sa.CTE, also: Sequence[sa.CTE] = ()
) -> int:
    """Change records; returns their number.

    `source` is made of `held_records`. It has `creation_columns` of them, and `kind`, `before`,
    `after`, `omitted`, `title`, `data`, `archived`, `updated_by_user_id`, `updated_at` and
    `deleted_at`; `data` is all that a record has then. `also` is written by the same statement.
    """
    statement = record_rows.replacing(source).add_cte(*also)
    return (
        await work.execute(statement, record_rows.write_parameters(work, actor, schema))
    ).rowcount


async def derive_where(work: UnitOfWork, schema: Schema, condition: sa.ColumnElement[bool]) -> None:
    """Bring up to date what is derived from the records that meet a condition.

    Computed values of many records, and the values that follow from them elsewhere, are left to
    jobs.
    """
    await index_where(work, schema, condition, None)
    if not any(spec.relation or spec.derived for spec in schema.fields.values()):
        return
    rows = await work.rows(
        sa.select(record.c.id)
        .where(
            record.c.workspace_id == schema.workspace_id,
            record.c.database_id == schema.database_id,
            condition,
        )
        .limit(MAX_AT_ONCE + 1)
    )
    if len(rows) <= MAX_AT_ONCE:
        await recompute(work, schema, [row.id for row in rows], None)
        return
    derived = [key for key, spec in schema.fields.items() if spec.derived]
    stale = [Stale(schema.database_id, (), derived)] if derived else []
    for incoming in await incoming_relations(work, schema):
        keys = [spec.key for spec in incoming.followers]
        stale += [Stale(incoming.database_id, (), keys)] if keys else []
    for part in stale:
        await request_recomputation(work, schema.workspace_id, part)


_COPY = f"COPY {record.name} ({', '.join(COPIED_COLUMNS)}) FROM STDIN (FORMAT BINARY)"


async def copy_records(work: UnitOfWork, lines: bytes) -> None:
    """Take lines of `copied_record` as new records of a new database.

    It takes a third of what `insert_from` takes: the records are where they stay at once, and ids
    are counted.
    """
    driver = await work.driver()
    async with driver.cursor() as cursor, cursor.copy(_COPY) as copy:
        await copy.write(HEADER + lines + TRAILER)


MAX_RECORDS = 10_000
"""Records that one request changes; a job changes more."""


async def strip_values(
    work: UnitOfWork,
    workspace_id: Id,
    database_id: Id,
    key: str,
    after: Id | None,
    *,
    computed: bool,
) -> Id | None:
    """Remove the value under a key from the next records after one, in the order of their ids.

    Gives the id of the last of them, or None when no more follow.
    """
    holder: sa.Column[Any] = record.c.computed if computed else record.c.data
    chunk = (
        sa.select(record.c.id)
        .where(*_of(workspace_id, database_id), *([] if after is None else [record.c.id > after]))
        .order_by(record.c.id)
        .limit(MAX_RECORDS)
    )
    ids = [row.id for row in await work.rows(chunk)]
    conditions = (
        *_of(workspace_id, database_id),
        record.c.id == sa.func.any(ids),
        holder.op("?")(key),
    )
    stripped = {holder: holder.op("-", return_type=JSONB())(sa.literal(key, sa.Text))}
    statement = sa.update(record).where(*conditions)
    if computed:
        statement = statement.values(stripped)
    else:
        creations = record_rows.recording_creations(*conditions).cte("creations")
        statement = statement.values({**stripped, **record_rows.WRITTEN}).add_cte(creations)
    await work.execute(statement)
    return ids[-1] if len(ids) == MAX_RECORDS else None


async def clear_options(
    work: UnitOfWork, schema: Schema, spec: FieldSpec, removed_keys: Collection[str]
) -> list[Id]:
    """Remove deleted options from the records that chose them; gives the ids of the records.

    Raises `ConflictError` when too many did.
    """
    value = record.c.data[spec.key]
    keys = sa.literal(sorted(removed_keys), sa.ARRAY(sa.Text))
    multiple = spec.kind is FieldKind.MULTI_SELECT
    chosen = value.op("?|")(keys) if multiple else value.astext == sa.func.any(keys)
    ids = [
        row.id
        for row in await work.rows(
            sa.select(record.c.id)
            .where(*_of(schema.workspace_id, schema.database_id), chosen)
            .limit(MAX_RECORDS + 1)
        )
    ]
    if len(ids) > MAX_RECORDS:
        raise ConflictError(
            f"More than {MAX_RECORDS} records use an option that the list removes. Change"
            " them first, or convert the field."
        )
    conditions = (*_of(schema.workspace_id, schema.database_id), record.c.id == sa.func.any(ids))
    await work.execute(
        sa.update(record)
        .where(*conditions)
        .values(
            {
                record.c.data: _without(spec.key, keys, many=multiple),
                record.c.updated_at: next_record_updated_at(work),
                **record_rows.WRITTEN,
            }
        )
        .add_cte(record_rows.recording_creations(*conditions).cte("creations"))
    )
    return ids


def _without(key: str, keys: sa.ColumnElement[Any], *, many: bool) -> sa.ColumnElement[Any]:
    """A record's data without these options; a value with no option left is removed."""
    cleared = record.c.data.op("-", return_type=JSONB())(sa.literal(key, sa.Text))
    if not many:
        return cleared
    left = record.c.data[key].op("-", return_type=JSONB())(keys)
    kept = sa.func.jsonb_build_object(sa.literal(key, sa.Text), left, type_=JSONB)
    merged: sa.ColumnElement[Any] = cleared.op("||", return_type=JSONB())(kept)
    return merged


def next_record_updated_at(work: UnitOfWork) -> sa.ColumnElement[Any]:
    return next_updated_at(record.c.updated_at, work.now)


async def number_records(work: UnitOfWork, workspace_id: Id, database_id: Id) -> None:
    """Number the records that have no number, oldest first, and advance `next_number`."""
    first = next_number_of(workspace_id, database_id)
    numbered = (
        sa.select(
            record.c.id,
            (
                sa.func.row_number().over(order_by=(record.c.created_at, record.c.id)) - 1 + first
            ).label("number"),
        )
        .where(*_of(workspace_id, database_id), record.c.number.is_(None))
        .cte("numbered")
    )
    written = await work.execute(
        sa.update(record)
        .where(*_of(workspace_id, database_id), record.c.id == numbered.c.id)
        .values(number=numbered.c.number)
    )
    await advance_number(work, workspace_id, database_id, written.rowcount)


def _of(workspace_id: Id, database_id: Id) -> tuple[sa.ColumnElement[bool], ...]:
    return (record.c.workspace_id == workspace_id, record.c.database_id == database_id)


async def refuse_several(work: UnitOfWork, workspace_id: Id, relation: FieldSpec) -> None:
    """Raise `ConflictError` while a record points at several others by a relation."""
    seen = seen_links(workspace_id, sides_of({relation.key: relation}), None).subquery("link")
    several = await work.first(
        sa.select(seen.c.own).group_by(seen.c.own).having(sa.func.count() > 1).limit(1)
    )
    if several is not None:
        raise ConflictError(
            "Some records link to several others in this field. Keep one link for each first."
        )


async def rename_values(
    work: UnitOfWork, workspace_id: Id, database_id: Id, key: str, new_key: str, *, computed: bool
) -> None:
    """Keep the values of a field under another key, in all records, the trash included."""
    holder: sa.Column[Any] = record.c.computed if computed else record.c.data
    renamed = holder.op("-", return_type=JSONB())(sa.literal(key, sa.Text)).op(
        "||", return_type=JSONB()
    )(sa.func.jsonb_build_object(sa.literal(new_key, sa.Text), holder[key]))
    await work.execute(
        sa.update(record)
        .where(*_of(workspace_id, database_id), holder.op("?")(key))
        .values({holder: renamed})
    )
