"""The statements that write records: one for all new ones, one for all changed ones.

What they write travels as one JSON document, which PostgreSQL reads faster than arrays or COPY.
The history is written by the statement that writes the records.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic_core import to_json
from sqlalchemy import (
    ARRAY,
    CTE,
    BigInteger,
    Boolean,
    ColumnElement,
    FromClause,
    Insert,
    Integer,
    Text,
    Update,
    Uuid,
    and_,
    bindparam,
    case,
    cast,
    column,
    func,
    insert,
    literal,
    literal_column,
    null,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import JSONB

from models.core.access.rules import Actor
from models.core.base import Id
from models.data.fields.commands import taking_numbers
from models.data.fields.rules.fields import Schema
from models.data.record_changes.rules import ChangeKind, RecordedChange
from models.data.records.commands.history import (
    DATABASE,
    NOW,
    PRINCIPAL_TYPE,
    RUN_ID,
    USER,
    WORKSPACE,
    WRITTEN,
    Sql,
    recording_creations,
    recording_these,
)
from models.data.records.queries.creations import titled_values
from models.data.records.rules.write.writes import Planned, StoredRecord
from models.data.records.tables import record
from runtime.database import UnitOfWork
from runtime.prepared_statement import PreparedStatement
from runtime.schema import Timestamp

_CREATED = literal(ChangeKind.CREATED.value, Text)
_COLUMNS = [record.c[name] for name in StoredRecord._fields]


def _entries(*columns: ColumnElement[Any]) -> CTE:
    """The rows of the document."""
    rows: FromClause = (
        func.jsonb_to_recordset(cast(bindparam("rows", type_=Text), JSONB))
        .table_valued(column("id", Uuid), column("omitted", ARRAY(Text)), *columns)
        .render_derived(name="entry", with_types=True)
    )
    return select(rows).cte("source")


def inserting(number: Sql, source: CTE, change_id: Sql | None = None) -> Insert:
    """The insertion of new records, which `source` describes, and of the history of some.

    `write_parameters` gives its parameters, and `change_id` the ids of the history. A creation that
    the record will not tell is written: links stand elsewhere, and long values are left out.
    """
    is_plain = and_(source.c.links.is_(None), source.c.omitted.is_(None))
    values = {
        "id": source.c.id,
        "workspace_id": WORKSPACE,
        "database_id": DATABASE,
        "title": source.c.title,
        "data": source.c.data,
        "content_surface_id": source.c.content_surface_id,
        "number": number,
        "archived": literal(False, Boolean),
        "created_by_user_id": USER,
        "updated_by_user_id": USER,
        "created_at": NOW,
        "updated_at": NOW,
        "creation_principal_type": case((is_plain, PRINCIPAL_TYPE)),
        "creation_run_id": case((is_plain, RUN_ID)),
    }
    selected = select(*values.values())
    # What the row says already is not sent again for its history.
    omitted = func.coalesce(source.c.omitted, literal_column("'{}'::text[]"))
    links = func.coalesce(source.c.links, literal_column("'{}'::jsonb"))
    after = titled_values(source.c.title, source.c.data).op("||")(links).op("-")(omitted)
    history = recording_these(source, _CREATED, null(), after, ~is_plain, change_id=change_id)
    return insert(record).from_select(list(values), selected).add_cte(history.cte("history"))


_NEW = _entries(
    column("title", Text),
    column("data", JSONB),
    column("links", JSONB),
    column("content_surface_id", Uuid),
    column("place", Integer),
)
_INSERT = PreparedStatement(inserting(literal(None, BigInteger), _NEW))

COUNTED = taking_numbers(WORKSPACE, DATABASE, bindparam("count", type_=BigInteger))
"""Takes `count` numbers of the database: `first` is the lowest."""
# One statement counts and inserts: the counter's row lock orders concurrent creations.
_INSERT_NUMBERED = PreparedStatement(
    inserting(select(COUNTED.c.first).scalar_subquery() + _NEW.c.place, _NEW).returning(
        record.c.id, record.c.number
    )
)

_CHANGED = _entries(
    column("kind", Text),
    column("before", JSONB),
    column("after", JSONB),
    column("title", Text),
    column("data", JSONB),
    column("cleared", ARRAY(Text)),
    column("archived", Boolean),
    column("updated_by_user_id", Uuid),
    column("updated_at", Timestamp),
    column("deleted_at", Timestamp),
)


def updating(source: CTE) -> Update:
    """The change of records that `source` describes, with its history, by `write_parameters`."""
    remaining = record.c.data.op("-", return_type=JSONB())(source.c.cleared)
    columns = ("title", "archived", "updated_by_user_id", "updated_at", "deleted_at")
    conditions = (
        record.c.workspace_id == WORKSPACE,
        record.c.database_id == DATABASE,
        record.c.id == source.c.id,
    )
    creations = recording_creations(*conditions)
    history = recording_these(source, source.c.kind, source.c.before, source.c.after)
    return (
        update(record)
        .where(*conditions)
        .values(
            {
                record.c.data: remaining.op("||", return_type=JSONB())(source.c.data),
                **{record.c[name]: source.c[name] for name in columns},
                **WRITTEN,
            }
        )
        .add_cte(creations.cte("creations"), history.cte("history"))
    )


_UPDATE = PreparedStatement(updating(_CHANGED))

_THESE = (
    select(*_COLUMNS)
    .where(
        record.c.workspace_id == WORKSPACE,
        record.c.database_id == DATABASE,
        record.c.id == func.any(bindparam("ids", type_=ARRAY(Uuid))),
    )
    .order_by(record.c.id)
)
_READ = PreparedStatement(_THESE)
# In the order of their ids: two writers never wait for each other in a circle.
_LOCK = PreparedStatement(_THESE.with_for_update(key_share=True))

_HOLD = PreparedStatement(
    select(record.c.id)
    .where(
        record.c.workspace_id == WORKSPACE,
        record.c.id == func.any(bindparam("ids", type_=ARRAY(Uuid))),
    )
    .order_by(record.c.id)
    .with_for_update(key_share=True)
)


async def hold_records(work: UnitOfWork, workspace_id: Id, ids: Iterable[Id]) -> None:
    """Hold records of any database until the end."""
    await _HOLD.rows(work, {"of_workspace": workspace_id, "ids": list(ids)})


async def lock_records(
    work: UnitOfWork, schema: Schema, ids: Iterable[Id]
) -> dict[Id, StoredRecord]:
    """The given records that the database has, also in the trash, held until the end."""
    return await _these(work, schema, ids, _LOCK)


async def read_records(
    work: UnitOfWork, schema: Schema, ids: Iterable[Id]
) -> dict[Id, StoredRecord]:
    """The given records that the database has, also in the trash."""
    return await _these(work, schema, ids, _READ)


async def _these(
    work: UnitOfWork, schema: Schema, ids: Iterable[Id], statement: PreparedStatement
) -> dict[Id, StoredRecord]:
    parameters = {
        "of_workspace": schema.workspace_id,
        "of_database": schema.database_id,
        "ids": list(ids),
    }
    return {row.id: StoredRecord(*row) for row in await statement.rows(work, parameters)}


async def insert_records(
    work: UnitOfWork, actor: Actor, schema: Schema, plans: Sequence[Planned], *, numbered: bool
) -> Mapping[Id, int]:
    """Write new records and their history; gives the number of each, if they are numbered."""
    rows = [_new_row(plan, place) for place, plan in enumerate(plans)]
    parameters = _with_rows(work, actor, schema, rows)
    if not numbered:
        await _INSERT.execute(work, parameters)
        return {}
    parameters["count"] = len(rows)
    written = await _INSERT_NUMBERED.rows(work, parameters)
    return {row.id: row.number for row in written}


def _new_row(plan: Planned, place: int) -> Mapping[str, Any]:
    """A row of the document; what few records have is left out, and costs the others nothing."""
    row = {"id": plan.after.id, "title": plan.after.title, "data": plan.after.data, "place": place}
    if plan.links:
        row["links"] = plan.links
    if omitted := _history_of(plan).omitted:
        row["omitted"] = omitted
    if plan.after.content_surface_id is not None:
        row["content_surface_id"] = plan.after.content_surface_id
    return row


async def update_records(
    work: UnitOfWork, actor: Actor, schema: Schema, plans: Sequence[Planned]
) -> None:
    """Write the new state of locked records, and their history."""
    rows = [
        {
            "id": plan.after.id,
            "omitted": _history_of(plan).omitted or None,
            "kind": _history_of(plan).kind,
            "before": _history_of(plan).before,
            "after": _history_of(plan).after,
            "title": plan.after.title,
            "data": plan.change.data,
            "cleared": sorted(plan.change.cleared),
            "archived": plan.after.archived,
            "updated_by_user_id": plan.after.updated_by_user_id,
            "updated_at": plan.after.updated_at,
            "deleted_at": plan.after.deleted_at,
        }
        for plan in plans
    ]
    await _UPDATE.execute(work, _with_rows(work, actor, schema, rows))


def _history_of(plan: Planned) -> RecordedChange:
    assert plan.history is not None, "what changes nothing is not written"
    return plan.history


def _with_rows(
    work: UnitOfWork, actor: Actor, schema: Schema, rows: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    return {**write_parameters(work, actor, schema), "rows": to_json(rows).decode()}


def write_parameters(work: UnitOfWork, actor: Actor, schema: Schema) -> dict[str, Any]:
    """The parameters of a write: its place, its user and its time."""
    return {
        "of_workspace": schema.workspace_id,
        "of_database": schema.database_id,
        "by_user": actor.user_id,
        "principal_type": actor.principal.type,
        "run_id": actor.principal.run_id,
        "now": work.now,
    }
