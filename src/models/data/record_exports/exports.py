"""Exports of records: accepted, read page by page, recorded as files."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from models.content.files.commands import register_private_file
from models.content.files.queries import StoredFile, file_names, stored_file
from models.content.files.rules import Content, file_name
from models.core.access.rules import MANAGERS, Actor, Level
from models.core.base import Id
from models.core.lifecycle.lost_workers import with_worker_wait
from models.core.pagination import PageRequest, native, plain
from models.data.fields.queries import database_level, load_schema, stored_label
from models.data.fields.rules.fields import FieldSpec
from models.data.fields.rules.settings import zone
from models.data.record_exports.rules import Cell, Legend, columns, named_ids, rows_of
from models.data.record_exports.shapes import CreateExport, ExportDetail, ExportFormat, ExportList
from models.data.records.details import record_details, unseen_fields
from models.data.records.queries import choose_route, in_time, read_page
from models.data.records.rules.query.plan import read_query
from models.data.records.shapes import RecordQuery
from models.data.views.queries import through_its_view
from models.messages.jobs import store as job_store
from models.messages.jobs.rules import OPEN_JOB
from models.people.members import members_of
from runtime.crypto import KeyRing
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError
from runtime.temporal.workflow_kinds import WorkflowKind

_SLASH = re.compile(r"[/\\]")
"""Characters that would make directories of the label in a file name."""
_TYPES = {
    ExportFormat.CSV: "text/csv; charset=utf-8",
    ExportFormat.XLSX: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}


async def accept_export(
    work: UnitOfWork, actor: Actor, database_id: Id, export_id: Id, body: CreateExport
) -> None:
    """Accept the job that writes the file; nothing happens when `export_id` is accepted already.

    The manifest of the view and the fields are fixed now. Raises `NotFoundError` for the
    database and the view, `ValidationError` for what is wrong with the query.
    """
    schema = await load_schema(work, actor.workspace_id, database_id)
    asked = body.model_dump(by_alias=True, exclude_unset=True, exclude={"format"})
    base_query = RecordQuery.model_validate(asked)
    base_query = await through_its_view(work, actor, database_id, base_query)
    unseen = await unseen_fields(work, actor, schema)
    specs = columns(read_query(base_query, schema.fields, work.now, unseen).shown_fields)
    settled = {
        "fields": [spec.key for spec in specs],
        **dict.fromkeys(("view_id", "group_by", "aggregates")),
    }
    query = base_query.model_copy(update=settled)
    await job_store.accept_job(
        work,
        actor,
        WorkflowKind.EXPORT,
        export_id,
        database_id,
        summary=f"Export records as {body.format.upper()}",
        input={
            "format": body.format.value,
            "labels": [spec.label for spec in specs],
            "query": query.model_dump(mode="json", by_alias=True, exclude_none=True),
        },
    )


async def cancel_export(work: UnitOfWork, actor: Actor, export_id: Id) -> None:
    """Cancel an open export; a finished one stays as it is. Raises `NotFoundError`."""
    found = await visible_export(work, actor, export_id)
    if found.status in OPEN_JOB:
        await job_store.cancel_job(work, found)


async def record_export(
    work: UnitOfWork, job: job_store.JobRow, object_key: str, size: int, sha256: bytes
) -> Id:
    """Record the file of an export, private to its actor; the file's id is the export's."""
    label = await stored_label(work, job.workspace_id, job.subject_id)
    file_format = ExportFormat(job.input["format"])
    content = Content(
        name=file_name(f"{_SLASH.sub('-', label)}.{file_format}"),
        mime_type=_TYPES[file_format],
        byte_size=size,
        sha256=sha256,
        object_key=object_key,
    )
    file_id: Id = job.id
    whose = {"workspace_id": job.workspace_id, "user_id": job.actor_user_id}
    await register_private_file(work, content, file_id=file_id, **whose)
    return file_id


RECORDS_AT_ONCE = 500
"""Records read at once: other work of the worker waits while they become cells."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of an export, and the position of the last one; None when they are the last."""

    columns: list[FieldSpec]
    rows: list[list[Cell]]
    position: list[Any] | None


async def read_rows(
    work: UnitOfWork, job: job_store.JobRow, position: Sequence[Any] | None
) -> Rows:
    """The next rows of an export, as its actor sees them now.

    Raises `NotFoundError` when the database is gone, `DeniedError` when they may not see it any
    more, `ValidationError` when its fields no longer fit the query.
    """
    actor = await _actor(work, job)
    schema = await load_schema(work, job.workspace_id, job.subject_id)
    body = RecordQuery.model_validate(job.input["query"])
    unseen = await unseen_fields(work, actor, schema)
    query = read_query(body, schema.fields, work.now, unseen)
    after = None if position is None else tuple(native(value) for value in position)
    async with in_time():
        route = await choose_route(work, schema, query)
        rows = await read_page(work, schema, query, route, after, RECORDS_AT_ONCE)
    specs = columns(query.shown_fields)
    records = await record_details(work, actor, schema, rows, query.shown_fields)
    names = await names_of(work, job.workspace_id, set(named_ids(records, specs)))
    legend = Legend(names, zone(body.timezone or "UTC"))
    last = [plain(value) for value in query.order.position(rows[-1])] if rows else None
    return Rows(
        specs,
        rows_of(records, specs, legend),
        last if len(rows) == RECORDS_AT_ONCE else None,
    )


async def _actor(work: UnitOfWork, job: job_store.JobRow) -> Actor:
    """The one who asked, who must still see the database."""
    actor = await job_store.job_actor(work, job)
    if await database_level(work, actor, job.subject_id) < Level.VIEW:
        raise NotFoundError("database")
    return actor


async def names_of(work: UnitOfWork, workspace_id: Id, ids: set[str]) -> dict[str, str]:
    """The names of people and files by id."""
    if not ids:
        return {}
    wanted = sa.any_(sa.literal([Id(one) for one in ids], sa.ARRAY(sa.Uuid)))
    member = members_of(workspace_id).subquery()
    name = sa.func.coalesce(member.c.name, member.c.email).label("name")
    people = sa.select(member.c.user_id.label("id"), name).where(member.c.user_id == wanted)
    files = file_names(workspace_id, [Id(one) for one in ids])
    rows = await work.rows(sa.union_all(people, files))
    return {str(row.id): row.name for row in rows if row.name is not None}


async def export_detail(
    work: UnitOfWork, actor: Actor, export_id: Id, keys: KeyRing
) -> ExportDetail:
    """An export of the actor's own; owners and administrators read everyone's.

    Raises `NotFoundError`, also when the actor no longer sees the database.
    """
    found = await visible_export(work, actor, export_id)
    result = found.result or {}
    stored = None
    if "fileId" in result:
        stored = await stored_file(work, actor.workspace_id, Id(result["fileId"]), keys)
    return await with_worker_wait(work, _shown(found, stored), is_open=found.status in OPEN_JOB)


async def visible_export(work: UnitOfWork, actor: Actor, export_id: Id) -> job_store.JobRow:
    """The job of an export that the actor may see. Raises `NotFoundError`."""
    job = await job_store.find_job(work, actor.workspace_id, WorkflowKind.EXPORT, export_id)
    own = job.actor_user_id == actor.user_id or actor.role in MANAGERS
    if not own or await database_level(work, actor, job.subject_id) < Level.VIEW:
        raise NotFoundError("export")
    return job


async def list_exports(work: UnitOfWork, actor: Actor, page: PageRequest) -> ExportList:
    """The actor's own exports, or everyone's for owners and administrators, newest first."""
    rows = job_store.jobs_of(actor.workspace_id, WorkflowKind.EXPORT, *job_store.JOB)
    if actor.role not in MANAGERS:
        rows = rows.where(job_store.JOB.actor_user_id == actor.user_id)
    jobs = await page.descending(work, rows, job_store.JOB.id, of=job_store.JobRow)
    return ExportList.of(jobs, lambda job: _shown(job, None))


def _shown(job: job_store.JobRow, stored: StoredFile | None) -> ExportDetail:
    return ExportDetail(
        id=job.id,
        status=job.status,
        format=ExportFormat(job.input["format"]),
        record_count=job.progress.get("count", 0),
        file=stored,
        error=job.error,
        created_at=job.created_at,
        completed_at=job.completed_at,
    )


async def export_outcome(
    work: UnitOfWork, actor: Actor, export_id: Id, keys: KeyRing, *, last: bool
) -> ExportDetail | None:
    """The export when it has ended or this is the last time to ask, else None."""
    detail = await export_detail(work, actor, export_id, keys)
    return detail if last or detail.status not in OPEN_JOB else None
