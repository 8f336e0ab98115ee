"""Statements that write the rows of records, each with the history it leaves.

Half of what a new record costs would be its history, and most records of an import never change. So
a creation stays with its record until something changes it. What the statements write travels as
one JSON document, which PostgreSQL reads faster than arrays or COPY.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import sqlalchemy as sa
from pydantic_core import to_json
from sqlalchemy.dialects.postgresql import JSONB

from models.core.access.rules import Actor
from models.core.base import Id
from models.core.repository import numbered_id
from models.data.fields.commands import taking_numbers
from models.data.fields.rules.fields import TITLE_KEY, Schema
from models.data.record_changes.history import changes_with, recording, recording_rows
from models.data.record_changes.rules import ChangeKind, RecordedChange
from models.data.records.rules.writes import Planned, StoredRecord
from models.data.records.tables import record
from runtime.database import UnitOfWork
from runtime.postgresql.schema import Timestamp
from runtime.postgresql.statements import PreparedStatement


def titled_values(
    title: sa.ColumnElement[Any], data: sa.ColumnElement[Any]
) -> sa.ColumnElement[Any]:
    """The values of a record with its title, as the history keeps them."""
    titled = sa.func.jsonb_build_object(sa.literal_column(f"'{TITLE_KEY}'"), title)
    return titled.op("||", return_type=JSONB())(data)


def unwritten_creations(
    change_id: sa.ColumnElement[Id],
    written_at: sa.ColumnElement[Any],
    created: sa.FromClause,
    after: sa.ColumnElement[Any],
) -> sa.Select[Any]:
    """The creations that are read from records (`created`), with the columns of changes.

    Their types are the same, too: PostgreSQL would not look into each part of `CHANGES` by its
    index otherwise.
    """
    return sa.select(
        change_id.label("id"),
        created.c.workspace_id,
        created.c.database_id,
        created.c.id.label("record_id"),
        sa.cast(sa.literal_column(f"'{ChangeKind.CREATED.value}'"), sa.String).label("kind"),
        created.c.created_by_user_id.label("actor_user_id"),
        created.c.creation_principal_type.label("principal_type"),
        created.c.creation_run_id.label("run_id"),
        sa.cast(sa.null(), JSONB).label("before"),
        after.label("after"),
        sa.cast(sa.null(), sa.ARRAY(sa.Text)).label("omitted_keys"),
        created.c.created_at.label("at"),
        written_at.label("written_at"),
        sa.cast(sa.null(), sa.Uuid).label("undo_id"),
        created.c.creation_node_id.label("node_id"),
    ).where(created.c.creation_principal_type.is_not(None))


_CREATED_VALUES = titled_values(record.c.title, record.c.data)

CHANGES_WITH_CREATIONS = changes_with(
    unwritten_creations(record.c.id, sa.cast(sa.null(), Timestamp), record, _CREATED_VALUES)
)
"""All changes of records."""


def last_change(workspace_id: Id, record_id: Id) -> sa.Select[Any]:
    """The last change of a record: when it was made (`at`), and by which run (`run_id`)."""
    return (
        sa.select(CHANGES_WITH_CREATIONS.c.run_id, CHANGES_WITH_CREATIONS.c.at)
        .where(
            CHANGES_WITH_CREATIONS.c.workspace_id == workspace_id,
            CHANGES_WITH_CREATIONS.c.record_id == record_id,
        )
        .order_by(CHANGES_WITH_CREATIONS.c.id.desc())
        .limit(1)
    )


Sql: TypeAlias = sa.ColumnElement[Any]

WORKSPACE = sa.bindparam("of_workspace", type_=sa.Uuid)
DATABASE = sa.bindparam("of_database", type_=sa.Uuid)
USER = sa.bindparam("by_user", type_=sa.Uuid)
PRINCIPAL_TYPE = sa.bindparam("principal_type", type_=sa.Text)
RUN_ID = sa.bindparam("run_id", type_=sa.Uuid)
NODE_ID = sa.bindparam("node_id", type_=sa.Text)
UNDO_ID = sa.bindparam("undo_id", type_=sa.Uuid)
NOW = sa.bindparam("now", type_=Timestamp)

WRITTEN = {
    record.c.creation_principal_type: None,
    record.c.creation_run_id: None,
    record.c.creation_node_id: None,
}
"""The values of a record whose creation is written."""


def recording_these(
    source: sa.CTE,
    kind: Sql,
    before: Sql,
    after: Sql,
    *conditions: sa.ColumnElement[bool],
    change_id: Sql | None = None,
) -> sa.Insert:
    """The insertion of what the source rows say of themselves; their ids are new unless given."""
    values = {
        "id": numbered_id() if change_id is None else change_id,
        "workspace_id": WORKSPACE,
        "database_id": DATABASE,
        "record_id": source.c.id,
        "kind": kind,
        "actor_user_id": USER,
        "principal_type": PRINCIPAL_TYPE,
        "run_id": RUN_ID,
        "before": before,
        "after": after,
        "omitted_keys": source.c.omitted,
        "at": NOW,
        "undo_id": UNDO_ID,
        "node_id": NODE_ID,
    }
    return recording(values, *conditions)


def recording_creations(*conditions: sa.ColumnElement[bool]) -> sa.Insert:
    """The insertion of the creations that are read from these records.

    It belongs to every statement that changes values: what that statement sees is what was created.
    The statement gives `WRITTEN` to the records.
    """
    return _recording_creations(record, _CREATED_VALUES, *conditions)


def _recording_creations(
    created: sa.FromClause, after: Sql, *conditions: sa.ColumnElement[bool]
) -> sa.Insert:
    """The insertion of the creations that are read from records (`created`).

    A creation has the id of its record, which comes from the clock of its writer; a clock that is
    ahead may not put it behind the change.
    """
    earlier = sa.func.uuidv7(sa.text("interval '-1 second'"), type_=sa.Uuid)
    now = sa.select(sa.func.uuidv7(type_=sa.Uuid)).scalar_subquery()
    change_id = sa.case((created.c.id < now, created.c.id), else_=earlier)
    creations = unwritten_creations(change_id, sa.func.now(), created, after)
    return recording_rows(creations.where(*conditions))


_CREATED = sa.literal(ChangeKind.CREATED.value, sa.Text)
_COLUMNS = [record.c[name] for name in StoredRecord._fields]


def _entries(*columns: sa.ColumnElement[Any]) -> sa.CTE:
    """The rows of the document."""
    rows: sa.FromClause = (
        sa.func.jsonb_to_recordset(sa.cast(sa.bindparam("rows", type_=sa.Text), JSONB))
        .table_valued(sa.column("id", sa.Uuid), sa.column("omitted", sa.ARRAY(sa.Text)), *columns)
        .render_derived(name="entry", with_types=True)
    )
    return sa.select(rows).cte("source")


def inserting(number: Sql, source: sa.CTE, change_id: Sql | None = None) -> sa.Insert:
    """The insertion of new records, which `source` describes, and of the history of some.

    `write_parameters` gives its parameters, and `change_id` the ids of the history. A creation that
    the record will not tell is written: links stand elsewhere, and long values are left out.
    """
    is_plain = sa.and_(source.c.links.is_(None), source.c.omitted.is_(None))
    values = {
        "id": source.c.id,
        "workspace_id": WORKSPACE,
        "database_id": DATABASE,
        "title": source.c.title,
        "data": source.c.data,
        "content_surface_id": source.c.content_surface_id,
        "number": number,
        "archived": sa.literal(False, sa.Boolean),
        "created_by_user_id": USER,
        "updated_by_user_id": USER,
        "created_at": NOW,
        "updated_at": NOW,
        "creation_principal_type": sa.case((is_plain, PRINCIPAL_TYPE)),
        "creation_run_id": sa.case((is_plain, RUN_ID)),
        "creation_node_id": sa.case((is_plain, NODE_ID)),
    }
    selected = sa.select(*values.values())
    # Values of the row are not sent again for its history.
    omitted = sa.func.coalesce(source.c.omitted, sa.literal_column("'{}'::text[]"))
    links = sa.func.coalesce(source.c.links, sa.literal_column("'{}'::jsonb"))
    after = titled_values(source.c.title, source.c.data).op("||")(links).op("-")(omitted)
    history = recording_these(source, _CREATED, sa.null(), after, ~is_plain, change_id=change_id)
    return sa.insert(record).from_select(list(values), selected).add_cte(history.cte("history"))


_NEW = _entries(
    sa.column("title", sa.Text),
    sa.column("data", JSONB),
    sa.column("links", JSONB),
    sa.column("content_surface_id", sa.Uuid),
    sa.column("place", sa.Integer),
)
_INSERT = PreparedStatement(inserting(sa.literal(None, sa.BigInteger), _NEW))

COUNTED = taking_numbers(WORKSPACE, DATABASE, sa.bindparam("count", type_=sa.BigInteger))
"""Takes `count` numbers of the database: `first` is the lowest."""

# One statement counts and inserts: the counter's row lock orders concurrent creations.
_INSERT_NUMBERED = PreparedStatement(
    inserting(sa.select(COUNTED.c.first).scalar_subquery() + _NEW.c.place, _NEW).returning(
        record.c.id, record.c.number
    )
)

_CHANGED = _entries(
    sa.column("kind", sa.Text),
    sa.column("before", JSONB),
    sa.column("after", JSONB),
    sa.column("title", sa.Text),
    sa.column("data", JSONB),
    sa.column("cleared", sa.ARRAY(sa.Text)),
    sa.column("archived", sa.Boolean),
    sa.column("updated_by_user_id", sa.Uuid),
    sa.column("updated_at", Timestamp),
    sa.column("deleted_at", Timestamp),
)


def _updating(source: sa.CTE, data: Sql, creations: sa.Insert) -> sa.Update:
    """The change of records that `source` describes, with its history, by `write_parameters`."""
    columns = ("title", "archived", "updated_by_user_id", "updated_at", "deleted_at")
    history = recording_these(source, source.c.kind, source.c.before, source.c.after)
    return (
        sa.update(record)
        .where(*_described(source))
        .values(
            {
                record.c.data: data,
                **{record.c[name]: source.c[name] for name in columns},
                **WRITTEN,
            }
        )
        .add_cte(creations.cte("creations"), history.cte("history"))
    )


def _described(source: sa.CTE) -> tuple[sa.ColumnElement[bool], ...]:
    return (
        record.c.workspace_id == WORKSPACE,
        record.c.database_id == DATABASE,
        record.c.id == source.c.id,
    )


_PATCHED = record.c.data.op("-", return_type=JSONB())(_CHANGED.c.cleared)
_UPDATE = PreparedStatement(
    _updating(
        _CHANGED,
        _PATCHED.op("||", return_type=JSONB())(_CHANGED.c.data),
        recording_creations(*_described(_CHANGED)),
    )
)


def held_records(
    rows: sa.FromClause, *conditions: sa.ColumnElement[bool], beside: Mapping[str, Sql]
) -> sa.Subquery:
    """The records among these rows, each held until the end, with more columns `beside` theirs.

    New values are computed of these columns: columns of the rows may be as they were before
    another writer ended. Records are held in the order in which all writers hold them, and
    without the key, so that links to them can be written meanwhile.
    """
    return (
        sa.select(*record.c, *(column.label(name) for name, column in beside.items()))
        .select_from(rows)
        .where(*conditions)
        .order_by(record.c.id)
        .with_for_update(key_share=True, of=record)
        .subquery("held")
    )


CREATION = (
    *("id", "workspace_id", "database_id", "created_by_user_id", "created_at"),
    *("creation_principal_type", "creation_run_id", "creation_node_id"),
)
"""The columns of a record that its creation is read from, beside its values."""


def creation_columns(held_rows: sa.Subquery) -> Sequence[Sql]:
    """The columns by which `replacing` writes creations; `created` are the values."""
    is_unwritten = held_rows.c.creation_principal_type.is_not(None)
    created = sa.case((is_unwritten, titled_values(held_rows.c.title, held_rows.c.data)))
    return [*(held_rows.c[name] for name in CREATION), created.label("created")]


def replacing(source: sa.CTE) -> sa.Update:
    """The change of held records to the content of `source`, with its history.

    `write_parameters` gives its parameters. `source` has `creation_columns` beside the change.
    """
    return _updating(source, source.c.data, _recording_creations(source, source.c.created))


_THESE = (
    sa.select(*_COLUMNS)
    .where(
        record.c.workspace_id == WORKSPACE,
        record.c.database_id == DATABASE,
        record.c.id == sa.func.any(sa.bindparam("ids", type_=sa.ARRAY(sa.Uuid))),
    )
    .order_by(record.c.id)
)
_READ = PreparedStatement(_THESE)

# In the order of their ids: two writers never wait for each other in a circle.
_LOCK = PreparedStatement(_THESE.with_for_update(key_share=True))

_HOLD = PreparedStatement(
    sa.select(record.c.id)
    .where(
        record.c.workspace_id == WORKSPACE,
        record.c.id == sa.func.any(sa.bindparam("ids", type_=sa.ARRAY(sa.Uuid))),
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
        "undo_id": actor.principal.undo_id,
        "node_id": actor.principal.node_id,
        "now": work.now,
    }
