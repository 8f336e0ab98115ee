"""Records that the runs of incidents were about, or wrote before they failed.

They are remembered as runs are grouped: an incident of 100,000 runs is read like any other.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from sqlalchemy import and_, func, select
from sqlalchemy.dialects.postgresql import insert as upsert

from models.automation.incidents.shapes import IncidentRecordList, IncidentRecordShape
from models.automation.incidents.tables import Incident, incident_record
from models.content.items.queries import sees_items
from models.core.access.rules import Actor
from models.core.base import Id
from models.core.pagination import PageRequest
from models.data.fields.joins import DATABASE, live_database_of
from models.data.records.queries.records import RECORD, this_record
from runtime.database import UnitOfWork

_record = incident_record.c


class FailedRun(Protocol):
    """A failed run, and when it failed."""

    id: Id
    completed_at: datetime


class _NamedRecord(Protocol):
    record_id: Id
    database_id: Id
    database_label: str
    title: str
    runs: int
    last_failed_at: datetime
    last_run_id: Id


async def keep_records(
    work: UnitOfWork,
    row: Incident,
    runs: Iterable[FailedRun],
    touched: Mapping[Id, Sequence[Id]],
) -> None:
    """Write down the records of runs, the oldest first, that are added to a locked incident."""
    rows: dict[Id, dict[str, object]] = {}
    counts: dict[Id, int] = {}
    for run in runs:
        for record_id in touched.get(run.id, ()):
            counts[record_id] = counts.get(record_id, 0) + 1
            rows[record_id] = {"last_failed_at": run.completed_at, "last_run_id": run.id}
    if not rows:
        return
    own = {"incident_id": row.id, "workspace_id": row.workspace_id}
    statement = upsert(incident_record)
    later = statement.excluded
    await work.execute(
        statement.on_conflict_do_update(
            index_elements=["incident_id", "record_id"],
            set_={
                "runs": _record.runs + later.runs,
                "last_failed_at": func.greatest(_record.last_failed_at, later.last_failed_at),
                "last_run_id": later.last_run_id,
            },
        ),
        [
            {**own, **one, "record_id": record_id, "runs": counts[record_id]}
            for record_id, one in rows.items()
        ],
    )


async def list_incident_records(
    work: UnitOfWork, actor: Actor, incident_id: Id, page: PageRequest
) -> IncidentRecordList:
    """The records of an incident that the actor sees, the one that a run failed with last first."""
    statement = (
        select(
            incident_record,
            RECORD.database_id,
            RECORD.title,
            DATABASE.label.label("database_label"),
        )
        .join(RECORD.id.table, and_(*this_record(_record.workspace_id, _record.record_id)))
        .join(*live_database_of(RECORD.id.table))
        .where(
            _record.workspace_id == actor.workspace_id,
            _record.incident_id == incident_id,
            sees_items(actor, DATABASE.item_id),
        )
    )
    rows = await page.descending(
        work, statement, _record.last_failed_at, _record.record_id, of=_NamedRecord
    )
    return IncidentRecordList(
        records=[IncidentRecordShape.model_validate(row) for row in rows.items],
        cursor=rows.cursor,
    )
