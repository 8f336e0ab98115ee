"""The last step of a copy: one transaction makes it visible, with its views and templates."""

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import insert, or_, select

from models.content.grants.commands import grant_manage
from models.content.items.commands import change_item, create_item_for
from models.content.items.rules import AccessMode, ItemKind
from models.core.access.rules import Actor
from models.core.base import Id
from models.core.keys import first_free, slug
from models.data.database_copies.access import check_relation_targets, parent_of_copy
from models.data.database_copies.commands.rows import Copy, copy_surfaces
from models.data.database_copies.queries import SourceDatabase, find_source
from models.data.database_copies.rules import (
    copied_field,
    copied_id,
    copied_inverse,
    copied_layout,
    copied_relation_ids,
    copied_relations,
    outward,
)
from models.data.databases.commands.field_usages import remove_usages
from models.data.databases.commands.layouts import add_to_layout, remove_from_layout
from models.data.fields.commands import insert_fields, write_database, write_field
from models.data.fields.field_rows import find_fields
from models.data.fields.locks import own_schema
from models.data.fields.queries import removed_keys, stored_label
from models.data.fields.rules.fields import FieldSpec, FieldSpecs
from models.data.fields.shapes import MAX_FIELDS
from models.data.record_templates.tables import record_template
from models.data.records.commands.recomputation_jobs import request_recomputation
from models.data.records.rules.write.computed_order import FOLLOWING, Stale
from models.data.views.rules.kinds import ViewScope
from models.data.views.tables import view
from models.messages.jobs.queries import job_actor
from models.messages.jobs.rows import JobRow
from runtime.database import UnitOfWork
from runtime.errors import ConflictError


async def publish(
    work: UnitOfWork,
    job: JobRow,
    copy: Copy,
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
    await write_database(
        work,
        copy.workspace_id,
        copy.copy_id,
        item_id=item_id,
        description=source.description,
        settings=source.settings,
        record_layout=copied_layout(source.record_layout, fields, copy.source_id, views),
        next_number=source.next_number if with_records else 1,
    )
    await _forget_fields(work, copy, left_out)
    following = [spec.key for spec in fields.values() if spec.kind in FOLLOWING]
    if with_records and following:
        # Links and values were copied in different transactions; what derives from both is stale.
        stale = Stale(copy.copy_id, (), following)
        await request_recomputation(work, copy.workspace_id, stale, user_id=actor.user_id)


async def _forget_fields(work: UnitOfWork, copy: Copy, left_out: Sequence[str]) -> None:
    """Remove the fields that a copy does not have from what names them."""
    for key in left_out:
        await remove_usages(work, copy.workspace_id, copy.copy_id, key)
        await remove_from_layout(work, copy.workspace_id, copy.copy_id, key)


async def _refresh_fields(work: UnitOfWork, copy: Copy, fields: FieldSpecs) -> None:
    """Copy labels, defaults and options again, because they may have changed meanwhile.

    Raises `ConflictError` for options that were removed: copied records may have chosen them.
    """
    before = await find_fields(work, copy.workspace_id, copy.copy_id)
    for key, spec in fields.items():
        now = copied_field(spec, copy.source_id, copy.copy_id)
        if before[key].option_keys.keys() - now.option_keys.keys():
            raise ConflictError("The options of a field were changed while records were copied.")
        if now != before[key]:
            await write_field(work, copy.workspace_id, now)


async def _add_inverses(work: UnitOfWork, copy: Copy, fields: FieldSpecs, label: str) -> None:
    """Add the inverse fields of the copy's relations to the databases they point into."""
    relations = outward(fields, copy.source_id)
    for target_id in sorted({spec.target_id for spec in relations}):
        await own_schema(work, target_id)
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
                inverses.append(copied_inverse(inverse, relation, copy.copy_id, label, key))
        if len(target_fields) + len(inverses) > MAX_FIELDS:
            raise ConflictError(
                f"A relation points into a database that has {MAX_FIELDS} fields already."
            )
        last = max(spec.position for spec in target_fields.values())
        inverses = [replace(spec, position=last + 1 + place) for place, spec in enumerate(inverses)]
        await insert_fields(work, copy.workspace_id, target_id, inverses)
        shown = {**target_fields, **{spec.key: spec for spec in inverses}}
        await add_to_layout(
            work, copy.workspace_id, target_id, shown, [spec.key for spec in inverses]
        )


async def _copy_views(
    work: UnitOfWork, actor: Actor, copy: Copy, fields: FieldSpecs
) -> dict[Id, Id]:
    """Copy the shared views and the actor's personal ones; gives the ids of their copies."""
    rows = await work.rows(
        select(view)
        .where(
            view.c.workspace_id == copy.workspace_id,
            view.c.database_id == copy.source_id,
            view.c.item_id.is_(None),
            or_(view.c.scope == ViewScope.SHARED.value, view.c.owner_user_id == actor.user_id),
        )
        .order_by(view.c.position, view.c.id)
    )
    copied = {row.id: copied_id(copy.copy_id, row.id) for row in rows}
    relation_ids = copied_relation_ids(fields, copy.source_id, copy.copy_id)
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
    await work.execute(insert(view), values)
    return copied


async def _copy_templates(
    work: UnitOfWork, copy: Copy, fields: FieldSpecs, *, with_records: bool
) -> None:
    """Copy the record templates with what stands on their surfaces."""
    mine = (
        record_template.c.workspace_id == copy.workspace_id,
        record_template.c.database_id == copy.source_id,
    )
    rows = await work.rows(select(record_template).where(*mine))
    if not rows:
        return
    await copy_surfaces(work, copy, select(record_template.c.content_surface_id).where(*mine))
    inward = {
        spec.key for spec in fields.values() if spec.relation and spec.target_id == copy.source_id
    }
    values = [
        {
            **row._mapping,
            "id": copied_id(copy.copy_id, row.id),
            "database_id": copy.copy_id,
            "relations": copied_relations(
                row.relations, inward, copy.copy_id, with_records=with_records
            ),
            "content_surface_id": copied_id(copy.copy_id, row.content_surface_id),
            "created_at": work.now,
            "updated_at": work.now,
        }
        for row in rows
    ]
    await work.execute(insert(record_template), values)


async def _create_item(
    work: UnitOfWork, actor: Actor, copy: Copy, source: SourceDatabase, label: str
) -> Id:
    """The item of the copy, beside the source and with its access mode.

    In another place it is restricted: what is above the source may keep others out. On a restricted
    one only the actor gets a grant; they may add others.
    """
    parent_id = await parent_of_copy(work, actor, source)
    item_id = await create_item_for(
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
    await change_item(work, actor, item_id, {**look, "access_mode": mode.value})
    if mode is AccessMode.RESTRICTED:
        await grant_manage(work, actor, item_id)
    return item_id
