"""The changes of records, with the creations that are read from records which nothing changed."""

from typing import Any

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Select,
    String,
    Text,
    cast,
    func,
    literal_column,
    null,
    select,
)
from sqlalchemy.dialects.postgresql import JSONB

from models.core.base import Id
from models.data.fields.rules.kinds import TITLE_KEY
from models.data.record_changes.queries import changes_with
from models.data.record_changes.rules import ChangeKind
from models.data.records.tables import record
from runtime.schema import Timestamp

UNWRITTEN = record.c.creation_principal_type.is_not(None)
"""True of a record whose creation is read from it."""


def titled_values(title: ColumnElement[Any], data: ColumnElement[Any]) -> ColumnElement[Any]:
    """The values of a record with its title, as the history keeps them."""
    titled = func.jsonb_build_object(literal_column(f"'{TITLE_KEY}'"), title)
    return titled.op("||", return_type=JSONB())(data)


def unwritten_creations(
    change_id: ColumnElement[Id], written_at: ColumnElement[Any]
) -> Select[Any]:
    """The creations that are read from their records, with the columns of changes.

    Their types are the same, too: PostgreSQL would not look into each part of `CHANGES` by its
    index otherwise.
    """
    return select(
        change_id.label("id"),
        record.c.workspace_id,
        record.c.database_id,
        record.c.id.label("record_id"),
        cast(literal_column(f"'{ChangeKind.CREATED.value}'"), String).label("kind"),
        record.c.created_by_user_id.label("actor_user_id"),
        record.c.creation_principal_type.label("principal_type"),
        record.c.creation_run_id.label("run_id"),
        cast(null(), JSONB).label("before"),
        titled_values(record.c.title, record.c.data).label("after"),
        cast(null(), ARRAY(Text)).label("omitted_keys"),
        record.c.created_at.label("at"),
        written_at.label("written_at"),
    ).where(UNWRITTEN)


CHANGES = changes_with(unwritten_creations(record.c.id, cast(null(), Timestamp)))
"""All changes of records."""


def last_change(workspace_id: Id, record_id: Id) -> Select[Any]:
    """The last change of a record: when it was made (`at`), and by which run (`run_id`)."""
    return (
        select(CHANGES.c.run_id, CHANGES.c.at)
        .where(CHANGES.c.workspace_id == workspace_id, CHANGES.c.record_id == record_id)
        .order_by(CHANGES.c.id.desc())
        .limit(1)
    )
