"""Computing fields of given records: held, read, computed, and written where something changed."""

import time
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from pydantic_core import to_json
from sqlalchemy import (
    ARRAY,
    Select,
    Text,
    Uuid,
    bindparam,
    cast,
    column,
    func,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.exc import DBAPIError

from models.core.base import Id, JsonObject
from models.core.expressions.rules.errors import ExpressionLimitError
from models.data.fields.field_rows import find_fields
from models.data.fields.rules.fields import FieldSpec, Schema
from models.data.fields.rules.kinds import FieldKind
from models.data.formulas.rules.formulas import CompiledFormula
from models.data.records.queries.details import record_values
from models.data.records.queries.linked_values import linked_values
from models.data.records.queries.links import id_array
from models.data.records.rules.write.computed_order import FOLLOWING, formula_of
from models.data.records.tables import Record, record
from runtime.bounded_processes import evaluate_bounded
from runtime.database import UnitOfWork
from runtime.errors import UnavailableError, ValidationError
from runtime.prepared_statement import PreparedStatement

LOCK_TIMEOUT = "500ms"
"""The time a record is waited for; shorter than PostgreSQL takes to look for a deadlock."""
REQUEST_SECONDS = 0.25
"""Processor time that formulas take of a request, whose process answers nobody else meanwhile."""
JOB_SECONDS = 20.0
"""The same of one chunk of a job."""
_WAITING = 8
"""So many times as long they may take in all, what they wait for other processes included."""

_ROWS = (
    func.jsonb_to_recordset(cast(bindparam("rows", type_=Text), JSONB))
    .table_valued(column("id", Uuid), column("given", JSONB), column("gone", ARRAY(Text)))
    .render_derived(name="entry", with_types=True)
)
_WRITE = PreparedStatement(
    update(record)
    .where(
        record.c.workspace_id == bindparam("of_workspace", type_=Uuid), record.c.id == _ROWS.c.id
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


async def compute(
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
    record the later one sees both. What is computed `in_request` leaves records that somebody else
    holds for long, and formulas that take long. A formula that goes over the limit of one
    evaluation gives null; with `refuses`, a ValidationError is raised that names it.
    """
    rows = await _held(work, schema, record_ids, in_request=in_request)
    if rows is None:
        return Computed({}, record_ids)
    values = {row.id: record_values(row, schema.fields) for row in rows}
    for spec in specs:
        if spec.kind in FOLLOWING:
            await _take_from_links(work, schema, spec, values)
    formulas = [(spec.key, formula_of(spec, schema.fields)) for spec in specs if _evaluated(spec)]
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
    for record_id, value in (await linked_values(work, schema, spec, targets, values)).items():
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

    None when somebody else holds one of them for long.
    """
    free = await work.rows(_locking(schema, record_ids, skip_locked=True), of=Record)
    if len(free) == len(set(record_ids)):
        return free
    statement = _locking(schema, record_ids, skip_locked=False)
    if not in_request:
        return await work.rows(statement, of=Record)
    try:
        async with work.savepoint():
            await work.execute(select(func.set_config("lock_timeout", LOCK_TIMEOUT, True)))
            rows = await work.rows(statement, of=Record)
            await work.execute(select(func.set_config("lock_timeout", "0", True)))
    except DBAPIError as error:
        if isinstance(error.orig, psycopg.errors.LockNotAvailable):
            return None
        raise
    return rows


def _locking(schema: Schema, record_ids: Collection[Id], *, skip_locked: bool) -> Select[Any]:
    return (
        select(record)
        .where(
            record.c.workspace_id == schema.workspace_id,
            record.c.database_id == schema.database_id,
            record.c.id == func.any(id_array(record_ids)),
        )
        .order_by(record.c.id)
        .with_for_update(key_share=True, skip_locked=skip_locked)
    )
