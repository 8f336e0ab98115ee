"""The history of records, written by the statement that writes the records.

Half of what a new record costs would be its history, and most records of an import never change. So
a creation stays with its record until something changes it.
"""

from typing import Any, TypeAlias

from sqlalchemy import CTE, ColumnElement, Insert, Text, Uuid, bindparam, case, func, select, text

from models.core.counted_ids import numbered_id
from models.data.record_changes.commands import recording, recording_rows
from models.data.records.queries.creations import unwritten_creations
from models.data.records.tables import record
from runtime.schema import Timestamp

Sql: TypeAlias = ColumnElement[Any]

WORKSPACE = bindparam("of_workspace", type_=Uuid)
DATABASE = bindparam("of_database", type_=Uuid)
USER = bindparam("by_user", type_=Uuid)
PRINCIPAL_TYPE = bindparam("principal_type", type_=Text)
RUN_ID = bindparam("run_id", type_=Uuid)
NOW = bindparam("now", type_=Timestamp)

WRITTEN = {record.c.creation_principal_type: None, record.c.creation_run_id: None}
"""The values of a record whose creation is written."""


def recording_these(
    source: CTE,
    kind: Sql,
    before: Sql,
    after: Sql,
    *conditions: ColumnElement[bool],
    change_id: Sql | None = None,
) -> Insert:
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
    }
    return recording(values, *conditions)


def recording_creations(*conditions: ColumnElement[bool]) -> Insert:
    """The insertion of the creations that are read from these records.

    It belongs to every statement that changes values: what that statement sees is what was created.
    The statement gives `WRITTEN` to the records. A creation has the id of its record, which comes
    from the clock of its writer; a clock that is ahead may not put it behind the change.
    """
    earlier = func.uuidv7(text("interval '-1 second'"), type_=Uuid)
    now = select(func.uuidv7(type_=Uuid)).scalar_subquery()
    change_id = case((record.c.id < now, record.c.id), else_=earlier)
    return recording_rows(unwritten_creations(change_id, func.now()).where(*conditions))
