"""Writing databases and fields, under the lock they share with writers of records.

Writers of records share the lock and read the schema after taking it; a change of fields takes it
exclusively. So no value is stored by the rules of a field that has changed. A change that takes
longer than a second, such as that of a field's kind in many records, is not waited for.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import psycopg
import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert as upsert

from models.core.base import Id, JsonObject, deferred_adapter
from models.core.bundles import BundleKind, Row, Stage, shape_problem
from models.core.keys import free_key, slug
from models.core.values import next_updated_at
from models.data.fields.rows import DATABASE, DatabaseRow, field_specs, live_databases
from models.data.fields.rules.fields import FieldKind, FieldSpec, Option, Schema
from models.data.fields.rules.settings import read_settings
from models.data.fields.tables import DatabaseField, database, field, removed_field
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, InProgressError
from runtime.postgresql.schema import Timestamp
from runtime.postgresql.statements import PreparedStatement, lock_name

_LOCK_KEY = sa.bindparam("key", type_=sa.BigInteger)

_SHARED = PreparedStatement(sa.select(sa.func.pg_advisory_xact_lock_shared(_LOCK_KEY)))

_TRY_SHARED_LOCK = PreparedStatement(
    sa.select(sa.func.pg_try_advisory_xact_lock_shared(_LOCK_KEY).label("shared"))
)

LOCK_WAIT = "1s"
"""The time a writer waits for a change of fields to end."""

_ALONE = PreparedStatement(sa.select(sa.func.pg_advisory_xact_lock(_LOCK_KEY)))


class DatabaseBusyError(InProgressError):
    """Something that takes a while is done to a database: nothing is written meanwhile."""


class FieldsChangingError(DatabaseBusyError):
    """The fields of a database are being changed."""

    def __init__(self) -> None:
        super().__init__("The fields of this database are being changed. Try again in a moment.")


async def share_schema(work: UnitOfWork, database_id: Id) -> None:
    """Keep the fields of a database as they are until the transaction ends.

    Raises FieldsChangingError when they are being changed and that does not end soon.
    """
    at_once = await _TRY_SHARED_LOCK.first(work, {"key": _lock_key(database_id)})
    if at_once is None or not at_once.shared:
        await share_schema_soon(work, database_id)


async def share_schema_soon(work: UnitOfWork, database_id: Id) -> None:
    """`share_schema` where the lock was not to be had at once."""
    await share_soon(work, _lock_key(database_id), FieldsChangingError)


async def share_soon(work: UnitOfWork, key: int, busy: type[DatabaseBusyError]) -> None:
    """Share a lock that someone holds alone; `busy` is raised when that does not end soon."""
    try:
        async with work.savepoint():
            await work.execute(sa.select(sa.func.set_config("lock_timeout", LOCK_WAIT, True)))
            await _SHARED.rows(work, {"key": key})
            await work.execute(sa.select(sa.func.set_config("lock_timeout", "0", True)))
    except psycopg.errors.LockNotAvailable:
        raise busy from None


async def await_schema(work: UnitOfWork, database_id: Id) -> None:
    """`share_schema` for jobs, which wait as long as it takes."""
    await _SHARED.rows(work, {"key": _lock_key(database_id)})


def sharing(database_id: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    """The column `shared`: true when the lock of `share_schema` was to be had at once.

    For a statement that finds the database itself; `share_schema_soon` follows where it is false.
    """
    tail = sa.func.substring(sa.func.uuid_send(database_id), 9)
    return sa.func.pg_try_advisory_xact_lock_shared(sa.cast(tail, sa.BigInteger)).label("shared")


async def own_schema(work: UnitOfWork, database_id: Id) -> None:
    """Take the lock exclusively: wait for the writers of records, and keep others out."""
    await _ALONE.rows(work, {"key": _lock_key(database_id)})


async def own_fields(work: UnitOfWork, workspace_id: Id) -> None:
    """Lock the fields of a workspace, whose databases relations connect, against other changes.

    Taken before the lock of any database, so that two such changes never deadlock.
    """
    # The number of the workspace itself is that of its tree, which is shared at the same time.
    await lock_name(work, f"fields/{workspace_id}")


def _lock_key(database_id: Id) -> int:
    """The last 8 bytes of a UUIDv7 are random."""
    return int.from_bytes(database_id.bytes[8:], "big", signed=True)


_KEY_ATTEMPTS = 5


async def lock_fields(work: UnitOfWork, schema: Schema, keys: Collection[str]) -> Schema:
    """The schema with these fields as they are now, locked until the transaction ends.

    They are locked in the order of their ids, so that two writers never deadlock.
    """
    rows = await work.rows(
        sa.select(field)
        .where(
            field.c.workspace_id == schema.workspace_id,
            field.c.database_id == schema.database_id,
            field.c.key.in_(keys),
        )
        .order_by(field.c.id)
        .with_for_update(),
        of=DatabaseField,
    )
    return replace(schema, fields={**schema.fields, **field_specs(rows)})


async def store_options(work: UnitOfWork, schema: Schema, keys: Collection[str]) -> None:
    """Write the options of locked fields."""
    for key in keys:
        spec = schema.fields[key]
        await work.execute(
            sa.update(field)
            .where(field.c.workspace_id == schema.workspace_id, field.c.id == spec.id)
            .values(options=[option.wire() for option in spec.options], updated_at=work.now)
        )


async def hold_database(work: UnitOfWork, workspace_id: Id, database_id: Id) -> DatabaseRow:
    """A database, locked until the transaction ends. Raises `NotFoundError`."""
    return await work.one(
        sa.select(database)
        .where(database.c.workspace_id == workspace_id, database.c.id == database_id)
        .with_for_update(),
        "database",
        of=DatabaseRow,
    )


async def write_database(
    work: UnitOfWork, workspace_id: Id, database_id: Id, **values: object
) -> None:
    """Set columns of a database, and always its `updatedAt`."""
    await work.execute(
        sa.update(database)
        .where(database.c.workspace_id == workspace_id, database.c.id == database_id)
        .values(**values, updated_at=next_updated_at(database.c.updated_at, work.now))
    )


async def insert_database(
    work: UnitOfWork, workspace_id: Id, values: dict[str, object], key: str | None
) -> None:
    """Insert a database under the given key, or under the first free one the label suggests.

    When another transaction takes the key meanwhile, the next free one is tried.
    """
    base_key = key or slug(str(values["label"]), "database")
    for _ in range(1 if key else _KEY_ATTEMPTS):
        chosen = key or await free_key(work, database, workspace_id, base_key)
        inserted = await work.first(
            upsert(database)
            .values(**values, workspace_id=workspace_id, key=chosen)
            .on_conflict_do_nothing(index_elements=["workspace_id", "key"])
            .returning(database.c.id)
        )
        if inserted is not None:
            return
    raise ConflictError(
        f"The key {base_key} is in use, perhaps by a database in the trash. Choose another key."
    )


async def delete_unplaced(work: UnitOfWork, workspace_id: Id, database_id: Id) -> None:
    """Delete a database that has no item, with its fields."""
    await work.execute(
        sa.delete(field).where(
            field.c.workspace_id == workspace_id, field.c.database_id == database_id
        )
    )
    await work.execute(
        sa.delete(database).where(
            database.c.workspace_id == workspace_id,
            database.c.id == database_id,
            database.c.item_id.is_(None),
        )
    )


def taking_numbers(
    workspace_id: sa.ColumnElement[Any],
    database_id: sa.ColumnElement[Any],
    count: sa.ColumnElement[int],
) -> sa.CTE:
    """The taking of `count` numbers of a database: `first` is the lowest."""
    return (
        sa.update(database)
        .where(database.c.workspace_id == workspace_id, database.c.id == database_id)
        .values(next_number=database.c.next_number + count)
        .returning((database.c.next_number - count).label("first"))
        .cte("counted")
    )


async def advance_number(work: UnitOfWork, workspace_id: Id, database_id: Id, count: int) -> None:
    """Take `count` numbers of a database that were given away already."""
    await work.execute(
        sa.update(database)
        .where(database.c.workspace_id == workspace_id, database.c.id == database_id)
        .values(next_number=database.c.next_number + count)
    )


async def insert_fields(
    work: UnitOfWork, workspace_id: Id, database_id: Id, fields: Sequence[FieldSpec]
) -> None:
    """Insert the rows of new fields."""
    rows = [
        {
            **_columns(spec),
            "id": spec.id,
            "workspace_id": workspace_id,
            "database_id": database_id,
            "key": spec.key,
            "created_at": work.now,
            "updated_at": work.now,
        }
        for spec in fields
    ]
    await work.execute(sa.insert(field).values(rows))


async def write_field(
    work: UnitOfWork, workspace_id: Id, spec: FieldSpec, *, values_change: bool = False
) -> None:
    """Update the row of a field.

    With `values_change` its values become others, so its side index is no longer valid.
    """
    stale = {"index_id": None, "index_ready": False} if values_change else {}
    await work.execute(
        sa.update(field)
        .where(field.c.workspace_id == workspace_id, field.c.id == spec.id)
        .values(**_columns(spec), **stale, updated_at=next_updated_at(field.c.updated_at, work.now))
    )


async def delete_field_row(work: UnitOfWork, workspace_id: Id, field_id: Id) -> None:
    await work.execute(
        sa.delete(field).where(field.c.workspace_id == workspace_id, field.c.id == field_id)
    )


def _columns(spec: FieldSpec) -> dict[str, Any]:
    return {
        "label": spec.label,
        "kind": spec.kind.value,
        "required": spec.required,
        "default_value": spec.default,
        "options": [option.wire() for option in spec.options],
        "settings": spec.settings,
        "position": spec.position,
    }


async def name_index(work: UnitOfWork, workspace_id: Id, field_id: Id, index_id: Id) -> None:
    """Give a field a side index that is not complete yet."""
    await work.execute(
        sa.update(field)
        .where(field.c.workspace_id == workspace_id, field.c.id == field_id)
        .values(index_id=index_id, index_ready=False)
    )


async def complete_index(work: UnitOfWork, workspace_id: Id, index_id: Id) -> None:
    """Let queries use a side index."""
    await work.execute(
        sa.update(field)
        .where(field.c.workspace_id == workspace_id, field.c.index_id == index_id)
        .values(index_ready=True)
    )


async def abandon_index(work: UnitOfWork, workspace_id: Id, index_id: Id) -> None:
    """Let go of an index that cannot be built; its entries are swept by the next job."""
    await work.execute(
        sa.update(field)
        .where(field.c.workspace_id == workspace_id, field.c.index_id == index_id)
        .values(index_id=None, index_ready=False)
    )


async def remember_removed(
    work: UnitOfWork, workspace_id: Id, database_id: Id, spec: FieldSpec
) -> None:
    """Keep the key of a removed field from others while records store values under it."""
    removed = {"id": spec.id, "database_id": database_id, "key": spec.key}
    await work.execute(
        sa.insert(removed_field).values(**removed, workspace_id=workspace_id, removed_at=work.now)
    )


async def forget_removed(work: UnitOfWork, workspace_id: Id, field_id: Id) -> None:
    """Free the key of a removed field."""
    await work.execute(
        sa.delete(removed_field).where(
            removed_field.c.workspace_id == workspace_id, removed_field.c.id == field_id
        )
    )


async def write_key(work: UnitOfWork, workspace_id: Id, field_id: Id, key: str) -> None:
    """Give a field another key; its values and what names it are the caller's to change."""
    # The clock, as the transaction may have waited for writers that are younger than it.
    until = sa.func.greatest(sa.literal(work.now, Timestamp), sa.func.clock_timestamp())
    former = sa.func.jsonb_build_array(
        sa.func.jsonb_build_object("key", field.c.key, "until", until)
    )
    await work.execute(
        sa.update(field)
        .where(field.c.workspace_id == workspace_id, field.c.id == field_id)
        .values(
            key=key,
            former_keys=field.c.former_keys + former,
            updated_at=next_updated_at(field.c.updated_at, work.now),
        )
    )


async def rewrite_settings(
    work: UnitOfWork, workspace_id: Id, field_id: Id, settings: JsonObject
) -> None:
    """Store the settings of a field in which another field has another key."""
    await work.execute(
        sa.update(field)
        .where(field.c.workspace_id == workspace_id, field.c.id == field_id)
        .values(settings=settings, updated_at=next_updated_at(field.c.updated_at, work.now))
    )


KEY = re.compile(r"[a-z][a-z0-9_]{0,62}")
_FILE = "databases.ndjson"
_OPTIONS = deferred_adapter(list[Option])


def of_live_databases(workspace_id: Id, table: sa.FromClause) -> sa.Select[Any]:
    """The rows of a table that belong to databases outside the trash."""
    return sa.select(table).where(
        table.c.workspace_id == workspace_id,
        table.c.database_id.in_(live_databases(workspace_id, DATABASE.id)),
    )


def _databases(workspace_id: Id) -> sa.Select[Any]:
    return live_databases(workspace_id, *DATABASE)


def _fields(workspace_id: Id) -> sa.Select[Any]:
    return of_live_databases(workspace_id, field)


def _field_problem(row: Row) -> str | None:
    """The problem of a field as a bundle has it."""
    if row["kind"] not in set(FieldKind):
        return f"unknown kind of field: {row['kind'][:50]}"
    if not KEY.fullmatch(row["key"]):
        return "the key of a field is not valid"
    problem = shape_problem(_OPTIONS, row["options"], "options")
    if problem is not None:
        return problem
    kind, keys = FieldKind(row["kind"]), {option["key"] for option in row["options"]}
    problems = read_settings(kind, row["settings"], keys, "settings").problems
    if problems:
        return f"{problems[0].path}: {problems[0].message}"
    if kind is FieldKind.RELATION and not row["settings"].get("inverseFieldId"):
        return "settings.inverseFieldId: a relation has an inverse field"
    return None


DATABASES = BundleKind(
    name="database",
    stage=Stage.SCHEMA,
    file=_FILE,
    table=database,
    rows=_databases,
    references={"item_id": "item"},
    required=("item_id",),
    contents=("settings", "record_layout"),
    unique_key=True,
)

FIELDS = BundleKind(
    name="field",
    stage=Stage.SCHEMA,
    file=_FILE,
    table=field,
    rows=_fields,
    references={"database_id": "database"},
    contents=("settings", "default_value"),
    lists=("options",),
    left_out={
        "index_id": "a side index is built where queries ask for it",
        "index_ready": "as index_id",
        "former_keys": "the history of records, which has them, stays behind",
    },
    check=_field_problem,
)
