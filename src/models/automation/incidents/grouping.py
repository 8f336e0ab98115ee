"""Grouping failed runs into incidents, behind the runs, with the records they were about.

The records are remembered as runs are grouped: an incident of 100,000 runs is read like any other.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Protocol

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert as upsert

from models.automation.automation_runs.history import touched_records
from models.automation.automation_runs.queries import RUN, failed_node_of
from models.automation.automation_runs.rules import RunStatus
from models.automation.incidents import rules
from models.automation.incidents.closing import announce, failure_notice
from models.automation.incidents.queries import IncidentRecordList
from models.automation.incidents.tables import (
    Incident,
    incident,
    incident_record,
    incident_run,
    incident_version,
    ungrouped_failure,
)
from models.content.items.queries import sees_items
from models.core.access.rules import Actor
from models.core.base import Id
from models.core.pagination import PageRequest
from models.data.fields.rows import DATABASE, live_database_of
from models.data.records.queries import RECORD, this_record
from runtime.database import UnitOfWork
from runtime.ids import new_id
from runtime.processes.fault_injection import FaultPoint, inject_fault

MOST_AT_ONCE = 500
FAILURES_DUE = sa.exists(sa.select(ungrouped_failure.c.run_id))


class _FailureRow(Protocol):
    id: Id
    workspace_id: Id
    automation_id: Id
    automation_version_id: Id
    status: str
    completed_at: datetime
    error: str | None
    node_id: str | None
    error_code: str | None
    node_error: str | None


@dataclass(frozen=True, slots=True)
class _Failure:
    run: _FailureRow
    error_code: str | None
    message: str
    fingerprint: bytes

    @property
    def key(self) -> tuple[Id, bytes]:
        return self.run.automation_id, self.fingerprint


async def group_failures(work: UnitOfWork) -> int:
    """Group some of the runs that failed. Returns their number; repeat until 0.

    The notes go in the transaction that counts their runs, so each run is counted once.
    """
    run_ids = await _take(work)
    if not run_ids:
        return 0
    failures = await _failures(work, run_ids)
    groups: defaultdict[tuple[Id, bytes], list[_Failure]] = defaultdict(list)
    for failure in failures:
        groups[failure.key].append(failure)
    touched = await touched_records(work, run_ids)
    for row in await _incidents(work, groups):
        group = groups[row.automation_id, row.fingerprint]
        await _add(work, row, group)
        await keep_records(work, row, [failure.run for failure in group], touched)
    inject_fault(FaultPoint.AFTER_GROUPING_BEFORE_COMMIT, run_ids[0])
    return len(run_ids)


async def _take(work: UnitOfWork) -> Sequence[Id]:
    """Delete the next notes; the runs that they name."""
    note = ungrouped_failure.c
    next_ones = (
        sa.select(note.run_id)
        .order_by(note.run_id)
        .limit(MOST_AT_ONCE)
        .with_for_update(skip_locked=True)
    )
    statement = sa.delete(ungrouped_failure).where(note.run_id.in_(next_ones))
    return sorted(row.run_id for row in await work.rows(statement.returning(note.run_id)))


async def _failures(work: UnitOfWork, run_ids: Sequence[Id]) -> Sequence[_Failure]:
    node = failed_node_of(RUN.id).lateral("node")
    rows = await work.rows(
        sa.select(
            RUN.id,
            RUN.workspace_id,
            RUN.automation_id,
            RUN.automation_version_id,
            RUN.status,
            sa.func.coalesce(RUN.completed_at, RUN.created_at).label("completed_at"),
            RUN.error,
            node.c.node_id,
            node.c.error_code,
            node.c.error.label("node_error"),
        )
        .outerjoin(node, sa.literal(True))
        .where(RUN.id == sa.any_(sa.literal(list(run_ids), sa.ARRAY(sa.Uuid))))
        .order_by(RUN.completed_at, RUN.id),
        of=_FailureRow,
    )
    return [_failure(row) for row in rows]


def _failure(row: _FailureRow) -> _Failure:
    timed_out = RunStatus.TIMED_OUT if row.status == RunStatus.TIMED_OUT else None
    code = row.error_code or timed_out
    message = rules.normalised(row.node_error or row.error or "")
    digest = rules.fingerprint_of(row.automation_id, row.node_id, code, message)
    return _Failure(row, code, message, digest)


async def _incidents(
    work: UnitOfWork, groups: Mapping[tuple[Id, bytes], Sequence[_Failure]]
) -> Sequence[Incident]:
    """The incidents of failures, locked in one order; missing ones are made."""
    if not groups:
        return []
    rows = [_row(work, failures[0]) for _, failures in sorted(groups.items())]
    await work.execute(
        upsert(incident).on_conflict_do_nothing(index_elements=["automation_id", "fingerprint"]),
        rows,
    )
    keys = sa.tuple_(incident.c.automation_id, incident.c.fingerprint)
    statement = sa.select(incident).where(keys.in_(sorted(groups))).order_by(incident.c.id)
    return await work.rows(statement.with_for_update(), of=Incident)


def _row(work: UnitOfWork, failure: _Failure) -> dict[str, Any]:
    """The row of an incident that nothing was added to yet."""
    run = failure.run
    moments = ("first_failed_at", "last_failed_at", "opened_at", "watched_since")
    return {
        "id": new_id(),
        "workspace_id": run.workspace_id,
        "automation_id": run.automation_id,
        "fingerprint": failure.fingerprint,
        "node_id": run.node_id,
        "error_code": failure.error_code,
        "message": failure.message,
        **dict.fromkeys(("runs", "runs_before", "openings"), 0),
        **dict.fromkeys(moments, run.completed_at),
        "checked_at": work.now,
        "last_run_id": run.id,
        "last_version_id": run.automation_version_id,
        "muted": False,
        "note": "",
    }


async def _add(work: UnitOfWork, row: Incident, failures: Sequence[_Failure]) -> None:
    """Add failures, the oldest first, to a locked incident, and tell what that changes."""
    before = rules.Course(
        **{name: getattr(row, name) for name in rules.Course.__dataclass_fields__}
    )
    course, change = rules.after(before, [failure.run.completed_at for failure in failures])
    last = failures[-1].run
    values = {**asdict(course), "last_run_id": last.id}
    values["last_version_id"] = last.automation_version_id
    if course.opened_at != before.opened_at:
        values["watched_since"] = course.opened_at
    if course.closed_at is None:
        values |= {"close_reason": None, "closed_by_user_id": None}
    await work.execute(sa.update(incident).where(incident.c.id == row.id).values(values))
    await _keep_runs(work, row, [failure.run for failure in failures])
    if change is not None:
        shown = failures[0].run if change is rules.IncidentChange.OPENED else last
        size = 10 ** rules.magnitude(course.runs_now) if change is rules.IncidentChange.GREW else 0
        notice = failure_notice(change, course.runs_now, shown.error or "")
        key = f"{course.openings}/{change}/{size}"
        await announce(work, row.id, change, notice, run_id=shown.id, key=key)


async def _keep_runs(work: UnitOfWork, row: Incident, runs: Sequence[_FailureRow]) -> None:
    """Record the runs of an incident, and their number for each version."""
    own = {"workspace_id": row.workspace_id, "incident_id": row.id}
    rows = [{**own, "run_id": run.id, "failed_at": run.completed_at} for run in runs]
    # A row that was put back may fail again.
    await work.execute(upsert(incident_run).on_conflict_do_nothing(), rows)
    counts = Counter(run.automation_version_id for run in runs)
    statement = upsert(incident_version)
    statement = statement.on_conflict_do_update(
        index_elements=["incident_id", "automation_version_id"],
        set_={"runs": incident_version.c.runs + statement.excluded.runs},
    )
    versions = [
        {**own, "automation_version_id": version_id, "runs": number}
        for version_id, number in counts.items()
    ]
    await work.execute(statement, versions)


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
                "last_failed_at": sa.func.greatest(_record.last_failed_at, later.last_failed_at),
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
        sa.select(
            incident_record,
            RECORD.database_id,
            RECORD.title,
            DATABASE.label.label("database_label"),
        )
        .join(RECORD.id.table, sa.and_(*this_record(_record.workspace_id, _record.record_id)))
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
    return IncidentRecordList.of(rows)
