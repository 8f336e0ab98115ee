"""Accepting exports, and recording the files they become."""

import re

from models.content.files.commands import register_private_file
from models.content.files.rules import Content, file_name
from models.core.access.rules import Actor
from models.core.base import Id
from models.data.fields.queries import load_schema, stored_label
from models.data.record_exports.queries import visible_export
from models.data.record_exports.rules import columns
from models.data.record_exports.shapes import CreateExport, ExportFormat
from models.data.records.queries.visibility import unseen_fields
from models.data.records.rules.query.query import read_query
from models.data.records.shapes import RecordQuery
from models.data.views.queries import through_its_view
from models.messages.jobs.commands import accept_job, cancel_job
from models.messages.jobs.rows import JobRow
from models.messages.jobs.rules import OPEN_JOB
from runtime.database import UnitOfWork
from runtime.families import Family

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
    await accept_job(
        work,
        actor,
        Family.EXPORT,
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
        await cancel_job(work, found)


async def record_export(
    work: UnitOfWork, job: JobRow, object_key: str, size: int, sha256: bytes
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
