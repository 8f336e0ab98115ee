"""Computed values: rollups, lookups and formulas, kept up to date in the writer's transaction.

What follows from a write is computed level by level: the records written, the records that follow
from them through relations, the records that follow from these. Beyond `MAX_AT_ONCE` records a job
does it.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import literal, select, union_all

from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from models.data.fields.field_rows import find_fields
from models.data.fields.locks import await_schema, own_schema
from models.data.fields.rules.fields import FieldSpec, Schema
from models.data.formulas.rules.derived_fields import MAX_DEPTH
from models.data.records.commands.computed_level import compute
from models.data.records.commands.index import index_records
from models.data.records.commands.recomputation_jobs import next_stale, request_recomputation
from models.data.records.queries.links import Incoming, id_array, incoming_relations, seen_links
from models.data.records.rules.write.computed_order import FOLLOWING, Stale, merged, stale_after
from models.data.records.tables import record
from models.messages.jobs.rows import JobRow
from runtime.database import UnitOfWork

MAX_AT_ONCE = 1_000
"""Records that are computed anew in the transaction of the one who caused it."""

Changed = Mapping[str, Collection[Id]]
"""Key of a field → the records in which its value changed."""


async def recompute(
    work: UnitOfWork,
    schema: Schema,
    record_ids: Collection[Id],
    changed_keys: Collection[str] | None,
) -> None:
    """Bring what follows from these records up to date, here and in records linked to them.

    `changed_keys` name the fields that were written, relations and what every change moves
    included; None means all of them, as for a record that is new, in the trash or back from
    it. Raises ValidationError for a formula that goes over the limit of an evaluation.
    """
    if not record_ids or not any(spec.relation or spec.derived for spec in schema.fields.values()):
        return
    written = dict.fromkeys(schema.fields if changed_keys is None else changed_keys, record_ids)
    specs = stale_after(schema.fields, changed_keys)
    computed = await _compute(work, schema, record_ids, specs, in_request=True, refuses=True)
    effects = await _effects(work, schema, {**written, **computed})
    await propagate(work, schema.workspace_id, effects)


async def recompute_field(work: UnitOfWork, actor: Actor, schema: Schema, field_key: str) -> None:
    """Compute a field that is new, or was changed, for all records of its database.

    At once where there are few, else by a job. The caller owns the fields of the workspace and
    of the database.
    """
    spec = schema.fields[field_key]
    if spec.kind in FOLLOWING:
        # Who writes there without knowing of this field must have committed before it is read.
        await own_schema(work, schema.fields[spec.settings["relationFieldKey"]].target_id)
    rows = await work.rows(
        select(record.c.id)
        .where(
            record.c.workspace_id == schema.workspace_id,
            record.c.database_id == schema.database_id,
        )
        .limit(MAX_AT_ONCE + 1)
    )
    ids = [row.id for row in rows]
    if len(ids) > MAX_AT_ONCE:
        part = Stale(schema.database_id, (), [field_key])
        await request_recomputation(work, actor.workspace_id, part, user_id=actor.user_id)
        return
    await propagate(work, schema.workspace_id, [Stale(schema.database_id, ids, [field_key])])


async def recompute_next(work: UnitOfWork, job: JobRow) -> JsonObject | None:
    """One chunk of a held job; gives where the next one begins, None when all is done."""
    await await_schema(work, job.subject_id)
    stale = await next_stale(work, job)
    if stale is None:
        return None
    await propagate(work, job.workspace_id, [stale], in_request=False)
    return {"after": str(max(stale.record_ids))}


async def propagate(
    work: UnitOfWork, workspace_id: Id, stale: Iterable[Stale], *, in_request: bool = True
) -> None:
    """Compute what is stale, then what follows from it.

    A writer (`in_request`) leaves a record that another transaction holds for long to a job: two
    writers whose records follow from each other would deadlock.
    """
    budget = MAX_AT_ONCE
    parts = merged(stale)
    for _ in range(MAX_DEPTH):
        effects: list[Stale] = []
        for part in parts:
            budget -= len(part.record_ids)
            if budget < 0:
                await request_recomputation(work, workspace_id, part)
                continue
            fields = await find_fields(work, workspace_id, part.database_id)
            schema = Schema(workspace_id, part.database_id, fields)
            specs = stale_after(fields, (), part.keys)
            changes = await _compute(work, schema, part.record_ids, specs, in_request=in_request)
            effects += await _effects(work, schema, changes)
        parts = merged(effects)


async def _compute(
    work: UnitOfWork,
    schema: Schema,
    record_ids: Collection[Id],
    specs: Sequence[FieldSpec],
    *,
    in_request: bool,
    refuses: bool = False,
) -> Changed:
    """Compute these fields; a job does it for the records that cannot be waited for."""
    if not specs:
        return {}
    computed = await compute(
        work, schema, record_ids, specs, in_request=in_request, refuses=refuses
    )
    if computed.remaining:
        part = Stale(schema.database_id, computed.remaining, [spec.key for spec in specs])
        await request_recomputation(work, schema.workspace_id, part)
    ids = set().union(*computed.changes.values())
    if ids:
        await index_records(work, schema, ids, list(computed.changes))
    return computed.changes


async def _effects(work: UnitOfWork, schema: Schema, changes: Changed) -> list[Stale]:
    """The effects of these changes in related records."""
    if not changes or not any(spec.relation for spec in schema.fields.values()):
        return []
    incoming = await incoming_relations(work, schema)
    touched = [
        (relation, ids, keys)
        for relation in incoming
        for ids, keys in [_reached(schema, relation, changes)]
        if ids and keys
    ]
    if not touched:
        return []
    found = await _at_the_other_end(work, schema.workspace_id, touched)
    if found is not None:
        return [
            Stale(relation.database_id, found[place], keys)
            for place, (relation, _, keys) in enumerate(touched)
        ]
    for relation, ids, keys in touched:
        part = Stale(relation.database_id, ids, keys)
        await request_recomputation(work, schema.workspace_id, part, through=relation.id)
    return []


def _reached(schema: Schema, incoming: Incoming, changes: Changed) -> tuple[set[Id], set[str]]:
    """The changed records that a relation's followers read, and the keys of these followers."""
    relinked = {
        each
        for key, ids in changes.items()
        if key in schema.fields and incoming.faces(schema.fields[key])
        for each in ids
    }
    ids, keys = set(relinked), set()
    for follower in incoming.followers:
        if relinked or follower.target in changes:
            keys.add(follower.key)
            ids.update(changes.get(follower.target, ()))
    return ids, keys


async def _at_the_other_end(
    work: UnitOfWork, workspace_id: Id, touched: list[tuple[Incoming, set[Id], set[str]]]
) -> Mapping[int, set[Id]] | None:
    """The records linked to these by each relation, in one statement; None where they are many."""
    parts = []
    for place, (each, ids, _) in enumerate(touched):
        seen = seen_links(workspace_id, [each.side], None, id_array(ids)).subquery(f"seen_{place}")
        parts.append(select(literal(place).label("place"), seen.c.own))
    rows: Any = await work.rows(union_all(*parts).limit(MAX_AT_ONCE + 1))
    if len(rows) > MAX_AT_ONCE:
        return None
    found: dict[int, set[Id]] = defaultdict(set)
    for row in rows:
        found[row.place].add(row.own)
    return found
