"""The steps of the job that copies a database, one transaction each.

The first creates the database, the following copy its records and then its links a span at a time,
and the last makes the copy visible. Until then it has no item, so nobody finds it; a copy that
fails is removed. It has the records that existed when it began, each as it was when its span was
copied; one that is deleted meanwhile may be left out. The job fails when the fields change.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime

from sqlalchemy import select

from models.content.items.joins import ITEM, live_items
from models.content.items.queries import closed_items
from models.core.base import Id, JsonObject
from models.data.database_copies.access import closed_targets, parent_of_copy
from models.data.database_copies.commands.completion import publish
from models.data.database_copies.commands.rows import (
    Copy,
    Span,
    copy_links,
    copy_records,
    last_of,
    remove_records,
)
from models.data.database_copies.queries import find_source
from models.data.database_copies.rules import copied_field, copy_label, digest, left_out
from models.data.fields.commands import delete_unplaced, insert_database, insert_fields
from models.data.fields.locks import await_schema, own_fields
from models.data.fields.queries import load_schema, removed_keys
from models.data.fields.rules.fields import FieldSpecs
from models.data.fields.rules.kinds import FieldKind
from models.data.records.queries.records import newest_record
from models.messages.jobs.queries import job_actor
from models.messages.jobs.rows import JobRow
from runtime.database import UnitOfWork
from runtime.errors import ConflictError

CHUNK = 5_000
"""Records of one transaction."""

_RECORDS, _LINKS, _PUBLISH = "records", "links", "publish"


@dataclass(frozen=True, slots=True)
class _Step:
    """The progress of a copy, stored in its job."""

    fields: str
    """The digest of the fields when it began."""
    phase: str
    newest: str | None = None
    after: str | None = None
    copied: int = 0
    left_out: Sequence[str] = ()
    """Keys of the fields that the copy does not get."""


async def copy_chunk(work: UnitOfWork, job: JobRow, size: int = CHUNK) -> JsonObject | None:
    """One step of a locked job; gives the progress from which the next continues, None at the end.

    Raises `NotFoundError` when the database is gone, `DeniedError` when the actor may no longer
    create a copy there, `ConflictError` when the fields changed meanwhile.
    """
    copy = Copy(job.workspace_id, job.subject_id, job.id)
    step = _Step(**job.progress) if job.progress else None
    if step is not None and step.phase == _PUBLISH:
        await own_fields(work, copy.workspace_id)
    await await_schema(work, copy.source_id)
    fields = (await load_schema(work, copy.workspace_id, copy.source_id)).fields
    if step is None:
        return asdict(await _begin(work, job, copy, fields))
    if step.fields != digest(fields):
        raise ConflictError("The fields were changed while the database was being copied.")
    kept = {key: spec for key, spec in fields.items() if key not in step.left_out}
    if step.phase != _PUBLISH:
        return asdict(await _copy_span(work, copy, kept, step, size))
    await publish(work, job, copy, kept, step.left_out, with_records=step.newest is not None)
    return None


async def _begin(work: UnitOfWork, job: JobRow, copy: Copy, fields: FieldSpecs) -> _Step:
    """Insert the row and the fields of the copy; without records the last step follows."""
    actor = await job_actor(work, job)
    source = await find_source(work, copy.workspace_id, copy.source_id)
    parent_id = await parent_of_copy(work, actor, source)
    siblings = await work.rows(
        live_items(copy.workspace_id, ITEM.title).where(
            ITEM.parent_item_id.is_not_distinct_from(parent_id),
            ITEM.id.not_in(select(closed_items(actor).c.id)),
        )
    )
    label = copy_label(source.label, {row.title for row in siblings})
    values = {
        "id": copy.copy_id,
        "label": label,
        "description": source.description,
        "settings": source.settings,
        "record_layout": source.record_layout,
        "created_at": work.now,
        "updated_at": work.now,
    }
    await insert_database(work, copy.workspace_id, values, None)
    closed = await closed_targets(work, actor, copy.source_id, fields)
    without = left_out(fields, copy.source_id, closed)
    kept = [spec for key, spec in fields.items() if key not in without]
    copies = [copied_field(spec, copy.source_id, copy.copy_id) for spec in kept]
    await insert_fields(work, copy.workspace_id, copy.copy_id, copies)
    newest = None
    if job.input["includeRecords"]:
        newest = await newest_record(work, copy.workspace_id, copy.source_id)
    if newest is None:
        return _Step(digest(fields), _PUBLISH, left_out=sorted(without))
    return _Step(digest(fields), _RECORDS, newest.isoformat(), left_out=sorted(without))


async def _copy_span(
    work: UnitOfWork, copy: Copy, fields: FieldSpecs, step: _Step, size: int
) -> _Step:
    """Copy the next records, or their links once all records are copied."""
    assert step.newest is not None
    after = None if step.after is None else Id(step.after)
    span = Span(copy, datetime.fromisoformat(step.newest), after)
    upto = await last_of(work, span, size)
    span = replace(span, upto=upto)
    if step.phase == _LINKS:
        await copy_links(work, span, fields)
    else:
        gone = (await removed_keys(work, copy.workspace_id, [copy.source_id]))[copy.source_id]
        timers = [spec.key for spec in fields.values() if spec.kind is FieldKind.TIMER]
        made = await copy_records(work, span, [*gone, *step.left_out], timers)
        step = replace(step, copied=step.copied + made)
    if upto is not None:
        return replace(step, after=str(upto))
    links = step.phase == _RECORDS and any(spec.relation for spec in fields.values())
    return replace(step, after=None, phase=_LINKS if links else _PUBLISH)


async def remove_chunk(work: UnitOfWork, job: JobRow, size: int = CHUNK) -> bool:
    """Remove a part of a copy that failed; True when nothing is left of it."""
    copy = Copy(job.workspace_id, job.subject_id, job.id)
    if await remove_records(work, copy, size) == size:
        return False
    await delete_unplaced(work, copy.workspace_id, copy.copy_id)
    return True
