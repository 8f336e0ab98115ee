"""Copying a database: accepted, copied in steps by a job, made visible at last.

Each step is one transaction. The first creates the database, the following copy its records and
then its links a span at a time, and the last makes the copy visible. Until then it has no item, so
that it is not found; a copy that fails is removed. It has the records that existed when it began,
each as it was when its span was copied; one that is deleted meanwhile may be left out. The job
fails when the fields change.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Protocol

import sqlalchemy as sa

from models.content.grants import grant_manage
from models.content.items import commands as item_commands
from models.content.items.joins import ITEM, live_items
from models.content.items.queries import closed_items
from models.content.items.rules import AccessMode, ItemKind
from models.core.access.rules import Actor, Level, Scope, level_on
from models.core.base import Id, Input, JsonObject
from models.core.keys import first_free, slug
from models.data.database_copies import copying
from models.data.databases.field_changes import add_to_layout, remove_from_layout, remove_usages
from models.data.databases.shapes import DatabaseDetail
from models.data.databases.store import get_database
from models.data.fields import commands as field_commands
from models.data.fields.queries import load_schema, removed_keys, stored_label
from models.data.fields.queries import visible as visible_database
from models.data.fields.rows import DATABASE, find_fields, live_databases
from models.data.fields.rules.fields import FieldKind, FieldSpec, FieldSpecs
from models.data.fields.shapes import MAX_FIELDS
from models.data.record_templates import record_template
from models.data.records.computed_values import request_recomputation
from models.data.records.queries import newest_record
from models.data.records.rules.computed_order import FOLLOWING, Stale
from models.data.views.queries import view
from models.data.views.rules.kinds import ViewScope
from models.messages.jobs.store import JobRow, accept_job, job_actor, succeeded_job
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, DeniedError, NotFoundError
from runtime.temporal.workflow_kinds import WorkflowKind


class DuplicateDatabase(Input):
    """Body of duplicate database; without `includeRecords` the copy is empty."""

    include_records: bool = False


class SourceDatabase(Protocol):
    """A database that is copied, with columns of its item."""

    label: str
    description: str | None
    settings: JsonObject
    record_layout: JsonObject
    next_number: int
    parent_item_id: Id | None
    icon: str | None
    color: str | None
    access_mode: str
    item_metadata: JsonObject


async def find_source(work: UnitOfWork, workspace_id: Id, database_id: Id) -> SourceDatabase:
    """A database with columns of its item. Raises `NotFoundError`."""
    return await work.one(
        live_databases(
            workspace_id,
            *DATABASE,
            *(ITEM[name] for name in ("parent_item_id", "icon", "color", "access_mode")),
            ITEM.metadata.label("item_metadata"),
        ).where(DATABASE.id == database_id),
        "database",
        of=SourceDatabase,
    )


async def copy_outcome(
    work: UnitOfWork, actor: Actor, copy_id: Id, *, last: bool
) -> DatabaseDetail | None:
    """The copy when it is complete, None while it is not.

    Raises `ConflictError` when it failed, `InProgressError` when this is the last time to ask.
    """
    job = await succeeded_job(
        work,
        actor.workspace_id,
        WorkflowKind.DATABASE_DUPLICATE,
        copy_id,
        failed="The copy failed and was removed.",
        in_progress=_STILL_COPYING if last else None,
    )
    return None if job is None else await get_database(work, actor, copy_id)


_STILL_COPYING = "The database is still being copied. Repeat the same request for the outcome."

_DATABASE = frozenset({Scope.DATABASES_READ, Scope.DATABASES_WRITE})
_RECORDS_TOO = frozenset({Scope.RECORDS_READ, Scope.RECORDS_WRITE})


def check_copy_scopes(actor: Actor, *, with_records: bool) -> None:
    """Raise `DeniedError` unless the actor may read what is copied, and write what is made of it.

    No one reads by copying what their credential keeps them from.
    """
    missing = sorted((_DATABASE | _RECORDS_TOO if with_records else _DATABASE) - actor.scopes)
    if missing:
        raise DeniedError(f"The credential lacks the scope {' and '.join(missing)}.")


async def parent_of_copy(work: UnitOfWork, actor: Actor, source: SourceDatabase) -> Id | None:
    """The parent of a copy: the source's, or None, the root, for an actor who may not create there.

    Raises `DeniedError` for an actor who may create nothing at the root either.
    """
    try:
        await item_commands.check_parent(work, actor, source.parent_item_id)
    except (NotFoundError, DeniedError):
        await item_commands.check_parent(work, actor, None)
        return None
    return source.parent_item_id


async def closed_targets(
    work: UnitOfWork, actor: Actor, source_id: Id, fields: FieldSpecs
) -> set[Id]:
    """The databases that these relations point into and the actor does not edit.

    Copied, such a relation would add its other side to them.
    """
    closed = set()
    for target_id in sorted({spec.target_id for spec in copying.outward(fields, source_id)}):
        place = await visible_database(work, [actor.workspace_id], target_id, actor.user_id)
        if place is not None and level_on(place, actor.role) < Level.EDIT:
            closed.add(target_id)
    return closed


async def check_relation_targets(
    work: UnitOfWork, actor: Actor, source_id: Id, fields: FieldSpecs
) -> None:
    """Raise `DeniedError` for a relation into a database the actor does not edit any more."""
    if await closed_targets(work, actor, source_id, fields):
        raise DeniedError("You no longer have edit access to a related database.")


async def accept_copy(
    work: UnitOfWork, actor: Actor, database_id: Id, copy_id: Id, body: DuplicateDatabase
) -> None:
    """Accept the job that makes the copy `copy_id`; nothing happens when it is accepted already.

    Raises `NotFoundError` for the database, `DeniedError` for an actor who may create nothing at
    the root, or lacks a scope for what is copied.
    """
    check_copy_scopes(actor, with_records=body.include_records)
    await parent_of_copy(work, actor, await find_source(work, actor.workspace_id, database_id))
    await accept_job(
        work,
        actor,
        WorkflowKind.DATABASE_DUPLICATE,
        copy_id,
        database_id,
        summary="Duplicate a database with its records"
        if body.include_records
        else "Duplicate a database",
        input={"includeRecords": body.include_records},
    )


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
    copy = copying.Copy(job.workspace_id, job.subject_id, job.id)
    step = _Step(**job.progress) if job.progress else None
    if step is None or step.phase == _PUBLISH:
        await item_commands.share_tree(work, copy.workspace_id)
    if step is not None and step.phase == _PUBLISH:
        await field_commands.own_fields(work, copy.workspace_id)
    await field_commands.await_schema(work, copy.source_id)
    fields = (await load_schema(work, copy.workspace_id, copy.source_id)).fields
    if step is None:
        return asdict(await _begin(work, job, copy, fields))
    if step.fields != copying.digest(fields):
        raise ConflictError("The fields were changed while the database was being copied.")
    kept = {key: spec for key, spec in fields.items() if key not in step.left_out}
    if step.phase != _PUBLISH:
        return asdict(await _copy_span(work, copy, kept, step, size))
    await publish_copy(work, job, copy, kept, step.left_out, with_records=step.newest is not None)
    return None


async def _begin(work: UnitOfWork, job: JobRow, copy: copying.Copy, fields: FieldSpecs) -> _Step:
    """Insert the row and the fields of the copy; without records the last step follows."""
    actor = await job_actor(work, job)
    source = await find_source(work, copy.workspace_id, copy.source_id)
    parent_id = await parent_of_copy(work, actor, source)
    siblings = await work.rows(
        live_items(copy.workspace_id, ITEM.title).where(
            ITEM.parent_item_id.is_not_distinct_from(parent_id),
            ITEM.id.not_in(sa.select(closed_items(actor).c.id)),
        )
    )
    label = copying.copy_label(source.label, {row.title for row in siblings})
    values = {
        "id": copy.copy_id,
        "label": label,
        "description": source.description,
        "settings": source.settings,
        "record_layout": source.record_layout,
        "created_at": work.now,
        "updated_at": work.now,
    }
    await field_commands.insert_database(work, copy.workspace_id, values, None)
    closed = await closed_targets(work, actor, copy.source_id, fields)
    without = copying.left_out(fields, copy.source_id, closed)
    kept = [spec for key, spec in fields.items() if key not in without]
    copies = [copying.copied_field(spec, copy.source_id, copy.copy_id) for spec in kept]
    await field_commands.insert_fields(work, copy.workspace_id, copy.copy_id, copies)
    newest = None
    if job.input["includeRecords"]:
        newest = await newest_record(work, copy.workspace_id, copy.source_id)
    if newest is None:
        return _Step(copying.digest(fields), _PUBLISH, left_out=sorted(without))
    return _Step(copying.digest(fields), _RECORDS, newest.isoformat(), left_out=sorted(without))


async def _copy_span(
    work: UnitOfWork, copy: copying.Copy, fields: FieldSpecs, step: _Step, size: int
) -> _Step:
    """Copy the next records, or their links once all records are copied."""
    assert step.newest is not None
    after = None if step.after is None else Id(step.after)
    span = copying.Span(copy, datetime.fromisoformat(step.newest), after)
    upto = await copying.last_of(work, span, size)
    span = replace(span, upto=upto)
    if step.phase == _LINKS:
        await copying.copy_links(work, span, fields)
    else:
        gone = (await removed_keys(work, copy.workspace_id, [copy.source_id]))[copy.source_id]
        timers = [spec.key for spec in fields.values() if spec.kind is FieldKind.TIMER]
        made = await copying.copy_records(work, span, [*gone, *step.left_out], timers)
        step = replace(step, copied=step.copied + made)
    if upto is not None:
        return replace(step, after=str(upto))
    links = step.phase == _RECORDS and any(spec.relation for spec in fields.values())
    return replace(step, after=None, phase=_LINKS if links else _PUBLISH)


async def remove_chunk(work: UnitOfWork, job: JobRow, size: int = CHUNK) -> bool:
    """Remove a part of a copy that failed; True when nothing is left of it."""
    copy = copying.Copy(job.workspace_id, job.subject_id, job.id)
    if await copying.remove_records(work, copy, size) == size:
        return False
    await field_commands.delete_unplaced(work, copy.workspace_id, copy.copy_id)
    return True


async def publish_copy(
    work: UnitOfWork,
    job: JobRow,
    copy: copying.Copy,
    fields: FieldSpecs,
    left_out: Sequence[str],
    *,
    with_records: bool,
) -> None:
    """Give a copy its views, its templates and its item, so that it is found.

    Views, templates and layout lose what names a field that is left out.

    The caller holds the lock on the fields of the workspace. Raises `DeniedError` when the actor
    may no longer create the copy there.
    """
    actor = await job_actor(work, job)
    source = await find_source(work, copy.workspace_id, copy.source_id)
    await check_relation_targets(work, actor, copy.source_id, fields)
    label = await stored_label(work, copy.workspace_id, copy.copy_id)
    await _refresh_fields(work, copy, fields)
    await _add_inverses(work, copy, fields, label)
    views = await _copy_views(work, actor, copy, fields)
    await _copy_templates(work, copy, fields, with_records=with_records)
    item_id = await _create_item(work, actor, copy, source, label)
    await field_commands.write_database(
        work,
        copy.workspace_id,
        copy.copy_id,
        item_id=item_id,
        description=source.description,
        settings=source.settings,
        record_layout=copying.copied_layout(source.record_layout, fields, copy.source_id, views),
        next_number=source.next_number if with_records else 1,
    )
    await _forget_fields(work, copy, left_out)
    following = [spec.key for spec in fields.values() if spec.kind in FOLLOWING]
    if with_records and following:
        # Links and values were copied in different transactions; what derives from both is stale.
        stale = Stale(copy.copy_id, (), following)
        await request_recomputation(work, copy.workspace_id, stale, user_id=actor.user_id)


async def _forget_fields(work: UnitOfWork, copy: copying.Copy, left_out: Sequence[str]) -> None:
    """Remove the fields that a copy does not have from what names them."""
    for key in left_out:
        await remove_usages(work, copy.workspace_id, copy.copy_id, key)
        await remove_from_layout(work, copy.workspace_id, copy.copy_id, key)


async def _refresh_fields(work: UnitOfWork, copy: copying.Copy, fields: FieldSpecs) -> None:
    """Copy labels, defaults and options again, because they may have changed meanwhile.

    Raises `ConflictError` for options that were removed: copied records may have chosen them.
    """
    before = await find_fields(work, copy.workspace_id, copy.copy_id)
    for key, spec in fields.items():
        now = copying.copied_field(spec, copy.source_id, copy.copy_id)
        if before[key].option_keys.keys() - now.option_keys.keys():
            raise ConflictError("The options of a field were changed while records were copied.")
        if now != before[key]:
            await field_commands.write_field(work, copy.workspace_id, now)


async def _add_inverses(
    work: UnitOfWork, copy: copying.Copy, fields: FieldSpecs, label: str
) -> None:
    """Add the inverse fields of the copy's relations to the databases they point into."""
    relations = copying.outward(fields, copy.source_id)
    for target_id in sorted({spec.target_id for spec in relations}):
        await field_commands.own_schema(work, target_id)
        target_fields = await find_fields(work, copy.workspace_id, target_id)
        removed = await removed_keys(work, copy.workspace_id, [target_id])
        keys = {*target_fields, *removed[target_id]}
        by_id = {spec.id: spec for spec in target_fields.values()}
        inverses: list[FieldSpec] = []
        for relation in relations:
            if relation.target_id == target_id:
                inverse = by_id[relation.inverse_id]
                key = first_free(slug(label, "field"), keys)
                keys.add(key)
                inverses.append(copying.copied_inverse(inverse, relation, copy.copy_id, label, key))
        if len(target_fields) + len(inverses) > MAX_FIELDS:
            raise ConflictError(
                f"A relation points into a database that has {MAX_FIELDS} fields already."
            )
        last = max(spec.position for spec in target_fields.values())
        inverses = [replace(spec, position=last + 1 + place) for place, spec in enumerate(inverses)]
        await field_commands.insert_fields(work, copy.workspace_id, target_id, inverses)
        shown = {**target_fields, **{spec.key: spec for spec in inverses}}
        await add_to_layout(
            work, copy.workspace_id, target_id, shown, [spec.key for spec in inverses]
        )


async def _copy_views(
    work: UnitOfWork, actor: Actor, copy: copying.Copy, fields: FieldSpecs
) -> dict[Id, Id]:
    """Copy the shared views and the actor's personal ones; gives the ids of their copies."""
    rows = await work.rows(
        sa.select(view)
        .where(
            view.c.workspace_id == copy.workspace_id,
            view.c.database_id == copy.source_id,
            view.c.item_id.is_(None),
            sa.or_(view.c.scope == ViewScope.SHARED.value, view.c.owner_user_id == actor.user_id),
        )
        .order_by(view.c.position, view.c.id)
    )
    copied = {row.id: copying.copied_id(copy.copy_id, row.id) for row in rows}
    relation_ids = copying.copied_relation_ids(fields, copy.source_id, copy.copy_id)
    values = [
        {
            **row._mapping,
            "id": copied[row.id],
            "database_id": copy.copy_id,
            "relation_field_id": relation_ids.get(row.relation_field_id),
            "definition_version": 1,
            "created_at": work.now,
            "updated_at": work.now,
        }
        for row in rows
    ]
    await work.execute(sa.insert(view), values)
    return copied


async def _copy_templates(
    work: UnitOfWork, copy: copying.Copy, fields: FieldSpecs, *, with_records: bool
) -> None:
    """Copy the record templates with what stands on their surfaces."""
    mine = (
        record_template.c.workspace_id == copy.workspace_id,
        record_template.c.database_id == copy.source_id,
    )
    rows = await work.rows(sa.select(record_template).where(*mine))
    if not rows:
        return
    await copying.copy_surfaces(
        work, copy, sa.select(record_template.c.content_surface_id).where(*mine)
    )
    inward = {
        spec.key for spec in fields.values() if spec.relation and spec.target_id == copy.source_id
    }
    values = [
        {
            **row._mapping,
            "id": copying.copied_id(copy.copy_id, row.id),
            "database_id": copy.copy_id,
            "relations": copying.copied_relations(
                row.relations, inward, copy.copy_id, with_records=with_records
            ),
            "content_surface_id": copying.copied_id(copy.copy_id, row.content_surface_id),
            "created_at": work.now,
            "updated_at": work.now,
        }
        for row in rows
    ]
    await work.execute(sa.insert(record_template), values)


async def _create_item(
    work: UnitOfWork, actor: Actor, copy: copying.Copy, source: SourceDatabase, label: str
) -> Id:
    """The item of the copy, beside the source and with its access mode.

    In another place it is restricted: what is above the source may keep others out. On a restricted
    one only the actor gets a grant; they may add others.
    """
    parent_id = await parent_of_copy(work, actor, source)
    item_id = await item_commands.create_item_for(
        work,
        actor,
        ItemKind.DATABASE,
        copy.copy_id,
        label,
        parent_item_id=parent_id,
        icon=source.icon,
    )
    beside = parent_id == source.parent_item_id
    mode = AccessMode(source.access_mode) if beside else AccessMode.RESTRICTED
    look = {"color": source.color, "metadata": source.item_metadata}
    await item_commands.change_item(work, actor, item_id, {**look, "access_mode": mode.value})
    if mode is AccessMode.RESTRICTED:
        await grant_manage(work, actor, item_id)
    return item_id
