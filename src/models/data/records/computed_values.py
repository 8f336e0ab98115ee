"""Rollups, lookups and formulas kept up to date: at once, level by level, or by a job.

The levels are the records written, the records that follow from them through relations, the records
that follow from these. They are computed in the writer's transaction. Beyond `MAX_AT_ONCE` records
a job does it.
"""

import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
import sqlalchemy as sa
from pydantic_core import to_json
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.exc import DBAPIError

from models.core.access.rules import Actor, Principal, Role
from models.core.base import Id, JsonObject
from models.core.expressions.rules.errors import ExpressionLimitError
from models.data.fields.commands import await_schema, own_schema
from models.data.fields.rows import find_fields
from models.data.fields.rules.fields import FieldKind, FieldSpec, Schema
from models.data.formulas.rules import MAX_DEPTH, CompiledFormula
from models.data.records import links
from models.data.records.details import record_values
from models.data.records.rules import computed_order
from models.data.records.side_index import index_records
from models.data.records.tables import Record, record
from models.messages.jobs.rules import JobStatus
from models.messages.jobs.store import JOB, JobRow, accept_job, jobs_of
from runtime.database import UnitOfWork
from runtime.errors import UnavailableError, ValidationError
from runtime.ids import new_id
from runtime.postgresql.statements import PreparedStatement
from runtime.processes.bounded_processes import evaluate_bounded
from runtime.temporal.workflow_kinds import WorkflowKind

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
    specs = computed_order.stale_after(schema.fields, changed_keys)
    computed = await _compute(work, schema, record_ids, specs, in_request=True, refuses=True)
    effects = await _effects(work, schema, {**written, **computed})
    await propagate(work, schema.workspace_id, effects)


async def recompute_field(work: UnitOfWork, actor: Actor, schema: Schema, field_key: str) -> None:
    """Compute a field that is new, or was changed, for all records of its database.

    At once where there are few, else by a job. The caller owns the fields of the workspace and
    of the database.
    """
    spec = schema.fields[field_key]
    if spec.kind in computed_order.FOLLOWING:
        # Writers who do not know this field must have committed before it is read.
        await own_schema(work, schema.fields[spec.settings["relationFieldKey"]].target_id)
    rows = await work.rows(
        sa.select(record.c.id)
        .where(
            record.c.workspace_id == schema.workspace_id,
            record.c.database_id == schema.database_id,
        )
        .limit(MAX_AT_ONCE + 1)
    )
    ids = [row.id for row in rows]
    if len(ids) > MAX_AT_ONCE:
        part = computed_order.Stale(schema.database_id, (), [field_key])
        await request_recomputation(work, actor.workspace_id, part, user_id=actor.user_id)
        return
    await propagate(
        work, schema.workspace_id, [computed_order.Stale(schema.database_id, ids, [field_key])]
    )


async def recompute_next(work: UnitOfWork, job: JobRow) -> JsonObject | None:
    """One chunk of a held job; gives where the next one begins, None when all is done."""
    await await_schema(work, job.subject_id)
    stale = await next_stale(work, job)
    if stale is None:
        return None
    await propagate(work, job.workspace_id, [stale], in_request=False)
    return {"after": str(max(stale.record_ids))}


async def propagate(
    work: UnitOfWork,
    workspace_id: Id,
    stale: Iterable[computed_order.Stale],
    *,
    in_request: bool = True,
) -> None:
    """Compute what is stale, then what follows from it.

    A writer (`in_request`) leaves a record that another transaction holds for long to a job: two
    writers whose records follow from each other would deadlock.
    """
    budget = MAX_AT_ONCE
    parts = computed_order.merged(stale)
    for _ in range(MAX_DEPTH):
        effects: list[computed_order.Stale] = []
        for part in parts:
            budget -= len(part.record_ids)
            if budget < 0:
                await request_recomputation(work, workspace_id, part)
                continue
            fields = await find_fields(work, workspace_id, part.database_id)
            schema = Schema(workspace_id, part.database_id, fields)
            specs = computed_order.stale_after(fields, (), part.keys)
            changes = await _compute(work, schema, part.record_ids, specs, in_request=in_request)
            effects += await _effects(work, schema, changes)
        parts = computed_order.merged(effects)


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
    computed = await compute_level(
        work, schema, record_ids, specs, in_request=in_request, refuses=refuses
    )
    if computed.remaining:
        part = computed_order.Stale(
            schema.database_id, computed.remaining, [spec.key for spec in specs]
        )
        await request_recomputation(work, schema.workspace_id, part)
    ids = set().union(*computed.changes.values())
    if ids:
        await index_records(work, schema, ids, list(computed.changes))
    return computed.changes


async def _effects(
    work: UnitOfWork, schema: Schema, changes: Changed
) -> list[computed_order.Stale]:
    """The effects of these changes in related records."""
    if not changes or not any(spec.relation for spec in schema.fields.values()):
        return []
    incoming = await links.incoming_relations(work, schema)
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
            computed_order.Stale(relation.database_id, found[place], keys)
            for place, (relation, _, keys) in enumerate(touched)
        ]
    for relation, ids, keys in touched:
        part = computed_order.Stale(relation.database_id, ids, keys)
        await request_recomputation(work, schema.workspace_id, part, through=relation.id)
    return []


def _reached(
    schema: Schema, incoming: links.Incoming, changes: Changed
) -> tuple[set[Id], set[str]]:
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
    work: UnitOfWork, workspace_id: Id, touched: list[tuple[links.Incoming, set[Id], set[str]]]
) -> Mapping[int, set[Id]] | None:
    """The records linked to these by each relation, in one statement; None where they are many."""
    parts = []
    for place, (each, ids, _) in enumerate(touched):
        seen = links.seen_links(workspace_id, [each.side], None, links.id_array(ids)).subquery(
            f"seen_{place}"
        )
        parts.append(sa.select(sa.literal(place).label("place"), seen.c.own))
    rows: Any = await work.rows(sa.union_all(*parts).limit(MAX_AT_ONCE + 1))
    if len(rows) > MAX_AT_ONCE:
        return None
    found: dict[int, set[Id]] = defaultdict(set)
    for row in rows:
        found[row.place].add(row.own)
    return found


LOCK_TIMEOUT = "500ms"
"""The time a record is waited for; shorter than PostgreSQL takes to look for a deadlock."""
REQUEST_SECONDS = 0.25
"""Processor time that formulas take of a request, whose process answers no one else meanwhile."""
JOB_SECONDS = 20.0
"""The same of one chunk of a job."""
_WAITING = 8
"""Factor of the time they may take in all, including the wait for other processes."""

_ROWS = (
    sa.func.jsonb_to_recordset(sa.cast(sa.bindparam("rows", type_=sa.Text), JSONB))
    .table_valued(
        sa.column("id", sa.Uuid), sa.column("given", JSONB), sa.column("gone", sa.ARRAY(sa.Text))
    )
    .render_derived(name="entry", with_types=True)
)
_WRITE = PreparedStatement(
    sa.update(record)
    .where(
        record.c.workspace_id == sa.bindparam("of_workspace", type_=sa.Uuid),
        record.c.id == _ROWS.c.id,
    )
    .values(
        computed=record.c.computed.op("-", return_type=JSONB())(_ROWS.c.gone).op(
            "||", return_type=JSONB()
        )(_ROWS.c.given)
    )
)


@dataclass(frozen=True, slots=True)
class Computed:
    """The result of a computation: the records whose values changed, by the key of the field.

    `remaining` are the records that were not computed, for lack of time.
    """

    changes: Mapping[str, Collection[Id]]
    remaining: Collection[Id] = ()


async def compute_level(
    work: UnitOfWork,
    schema: Schema,
    record_ids: Collection[Id],
    specs: Sequence[FieldSpec],
    *,
    in_request: bool,
    refuses: bool = False,
) -> Computed:
    """Compute these fields, in this order, and write what changed.

    The rows are held before anything is read, so that of two writers whose changes meet in one
    record the later one sees both. What is computed `in_request` leaves records that someone else
    holds for long, and formulas that take long. A formula that goes over the limit of one
    evaluation gives null; with `refuses`, a ValidationError is raised that names it.
    """
    rows = await _held(work, schema, record_ids, in_request=in_request)
    if rows is None:
        return Computed({}, record_ids)
    values = {row.id: record_values(row, schema.fields) for row in rows}
    for spec in specs:
        if spec.kind in computed_order.FOLLOWING:
            await _take_from_links(work, schema, spec, values)
    formulas = [
        (spec.key, computed_order.formula_of(spec, schema.fields))
        for spec in specs
        if _evaluated(spec)
    ]
    limit = REQUEST_SECONDS if in_request else JOB_SECONDS
    ids = list(values)
    if formulas:
        try:
            ids = await evaluate_bounded(
                lambda: _evaluate(formulas, values, limit, refuses=refuses)
            )
        except UnavailableError:
            return Computed({}, values.keys())
    now = {
        record_id: {spec.key: values[record_id].get(spec.key) for spec in specs}
        for record_id in ids
    }
    changed = await _store(work, schema, {row.id: row.computed for row in rows}, now)
    return Computed(changed, values.keys() - now.keys())


def _evaluated(spec: FieldSpec) -> bool:
    return spec.kind is FieldKind.FORMULA


async def _take_from_links(
    work: UnitOfWork, schema: Schema, spec: FieldSpec, values: Mapping[Id, JsonObject]
) -> None:
    """Put the value of a rollup or lookup beside the others of every record."""
    relation = schema.fields[spec.settings["relationFieldKey"]]
    targets = await find_fields(work, schema.workspace_id, relation.target_id)
    for record_id, value in (
        await links.linked_values(work, schema, spec, targets, values)
    ).items():
        values[record_id][spec.key] = value


def _evaluate(
    formulas: Sequence[tuple[str, CompiledFormula | None]],
    values: Mapping[Id, JsonObject],
    limit: float,
    *,
    refuses: bool,
) -> list[Id]:
    """Put the results of formulas beside the other values; gives the records that had their turn.

    One record at least has its turn. The limit is on the work, not on the time in which others had
    the machine, unless that is many times as long.
    """
    end, latest = time.thread_time() + limit, time.monotonic() + _WAITING * limit
    record_ids: list[Id] = []
    for record_id, row_values in values.items():
        for key, formula in formulas:
            try:
                row_values[key] = None if formula is None else formula.evaluate(row_values)
            except ExpressionLimitError as error:
                if refuses:
                    raise ValidationError.at(f"data.{key}", f"The formula: {error}") from None
                row_values[key] = None
        record_ids.append(record_id)
        if time.thread_time() > end or time.monotonic() > latest:
            break
    return record_ids


async def _store(
    work: UnitOfWork,
    schema: Schema,
    before: Mapping[Id, JsonObject],
    now: Mapping[Id, JsonObject],
) -> dict[str, set[Id]]:
    """Write the values that are others than before, in one statement."""
    changes: dict[str, set[Id]] = defaultdict(set)
    rows = []
    for record_id, values in now.items():
        held = before[record_id]
        new = {key: value for key, value in values.items() if value != held.get(key)}
        for key in new:
            changes[key].add(record_id)
        if new:
            given = {key: value for key, value in new.items() if value is not None}
            rows.append({"id": record_id, "given": given, "gone": sorted(new.keys() - given)})
    if rows:
        parameters = {"of_workspace": schema.workspace_id, "rows": to_json(rows).decode()}
        await _WRITE.execute(work, parameters)
    return changes


async def _held(
    work: UnitOfWork, schema: Schema, record_ids: Collection[Id], *, in_request: bool
) -> Sequence[Record] | None:
    """The records, in the order of their ids, held until the transaction ends.

    None when someone else holds one of them for long.
    """
    free = await work.rows(_locking(schema, record_ids, skip_locked=True), of=Record)
    if len(free) == len(set(record_ids)):
        return free
    statement = _locking(schema, record_ids, skip_locked=False)
    if not in_request:
        return await work.rows(statement, of=Record)
    try:
        async with work.savepoint():
            await work.execute(sa.select(sa.func.set_config("lock_timeout", LOCK_TIMEOUT, True)))
            rows = await work.rows(statement, of=Record)
            await work.execute(sa.select(sa.func.set_config("lock_timeout", "0", True)))
    except DBAPIError as error:
        if isinstance(error.orig, psycopg.errors.LockNotAvailable):
            return None
        raise
    return rows


def _locking(schema: Schema, record_ids: Collection[Id], *, skip_locked: bool) -> sa.Select[Any]:
    return (
        sa.select(record)
        .where(
            record.c.workspace_id == schema.workspace_id,
            record.c.database_id == schema.database_id,
            record.c.id == sa.func.any(links.id_array(record_ids)),
        )
        .order_by(record.c.id)
        .with_for_update(key_share=True, skip_locked=skip_locked)
    )


CHUNK = 500
"""Records of one chunk."""

NO_USER = Id(int=0)
"""Stands for the user where the platform asks by itself."""


async def request_recomputation(
    work: UnitOfWork,
    workspace_id: Id,
    stale: computed_order.Stale,
    *,
    through: Id | None = None,
    user_id: Id = NO_USER,
) -> None:
    """Accept a job that computes these fields of these records.

    Without record ids it computes all records of the database; with `through`, the records that
    this relation field links to them. A job of the same that has not begun does both.
    """
    request = {
        "keys": sorted(stale.keys),
        "recordIds": sorted(map(str, stale.record_ids)),
        "through": None if through is None else str(through),
    }
    queued_job = await work.first(
        jobs_of(workspace_id, WorkflowKind.RECOMPUTATION, JOB.id)
        .where(
            JOB.subject_id == stale.database_id,
            JOB.status == JobStatus.QUEUED.value,
            JOB.input == request,
        )
        .limit(1)
        # Held, so that it does not begin before this transaction ends.
        .with_for_update(skip_locked=True)
    )
    if queued_job is None:
        await accept_job(
            work,
            _system(workspace_id, user_id),
            WorkflowKind.RECOMPUTATION,
            new_id(),
            stale.database_id,
            summary="Recompute values",
            input=request,
        )


def _system(workspace_id: Id, user_id: Id) -> Actor:
    """The platform itself: it computes for whoever may read."""
    principal = Principal.of_platform(user_id)
    return Actor(principal=principal, workspace_id=workspace_id, role=Role.OWNER)


async def next_stale(work: UnitOfWork, job: JobRow) -> computed_order.Stale | None:
    """The next records of a held job, in the order of their ids; None when none are left."""
    request: JsonObject = job.input
    after = Id(job.progress["after"]) if job.progress else None
    ids = [Id(each) for each in request["recordIds"]]
    through = request["through"]
    if through is None:
        record_ids = await _own(work, job, ids, after)
    else:
        record_ids = await _linked(work, job, Id(through), ids, after)
    return computed_order.Stale(job.subject_id, record_ids, request["keys"]) if record_ids else None


async def _own(work: UnitOfWork, job: JobRow, ids: Collection[Id], after: Id | None) -> list[Id]:
    statement = (
        sa.select(record.c.id)
        .where(
            record.c.workspace_id == job.workspace_id,
            record.c.database_id == job.subject_id,
        )
        .order_by(record.c.id)
        .limit(CHUNK)
    )
    if ids:
        statement = statement.where(record.c.id == sa.any_(links.id_array(ids)))
    if after is not None:
        statement = statement.where(record.c.id > after)
    return [row.id for row in await work.rows(statement)]


async def _linked(
    work: UnitOfWork, job: JobRow, relation_id: Id, ids: Collection[Id], after: Id | None
) -> list[Id]:
    side = await links.relation_side(work, job.workspace_id, relation_id)
    if side is None:
        return []
    seen = links.seen_links(job.workspace_id, [side], None, links.id_array(ids)).subquery("seen")
    statement = sa.select(seen.c.own).distinct().order_by(seen.c.own).limit(CHUNK)
    if after is not None:
        statement = statement.where(seen.c.own > after)
    return [row.own for row in await work.rows(statement)]
