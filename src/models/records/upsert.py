"""Creating a record, or changing the one that already has the same values in certain fields."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from sqlalchemy import func, select

from models.access.rules import Actor
from models.base import Id
from models.databases.queries import load_schema
from models.databases.rules.fields import FieldSpec, Schema
from models.databases.rules.registry import KIND_RULES
from models.databases.rules.values import FieldValueError
from models.records.commands import change_record, insert_record
from models.records.rules.data import with_title
from models.records.rules.filters import read_filter
from models.records.rules.operators import OPERATORS, Op
from models.records.rules.options import grow_options
from models.records.rules.predicates import condition
from models.records.shapes import CreateRecord, RecordDetail
from models.records.tables import record
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, UnsupportedError, ValidationError
from runtime.ids import new_id

MAX_BY = 5


@dataclass(frozen=True, slots=True)
class Upserted:
    """The record, and whether it is new."""

    record: RecordDetail
    created: bool


async def upsert_record(
    work: UnitOfWork, actor: Actor, database_id: Id, by: Sequence[str], body: CreateRecord
) -> Upserted:
    """Change the one record that has the body's values in the fields `by`, or create it.

    Two upserts of the same values wait for each other, so they never create it twice.
    Raises `ValidationError` for `by` and for values, `ConflictError` when several records match.
    """
    schema = await load_schema(work, actor.workspace_id, database_id)
    if body.relations or body.template_id:
        raise UnsupportedError("An upsert takes a title and data alone.")
    written = with_title(body.data, body.title)
    # Names of options become keys here; what they add is stored by the write itself.
    grown = grow_options(schema, written, new_id)
    wanted = _wanted(grown.schema, by, grown.written)
    await _lock(work, schema, wanted)
    matching = await _matching(work, grown.schema, wanted)
    if len(matching) > 1:
        raise ConflictError(f"Several records have this {', '.join(by)}; an upsert needs one.")
    if not matching:
        return Upserted(await insert_record(work, actor, schema, written), created=True)
    changed = await change_record(work, actor, schema, matching[0], written)
    return Upserted(changed, created=False)


def _wanted(schema: Schema, by: Sequence[str], written: Mapping[str, Any]) -> dict[str, Any]:
    """The values to find the record by, in their stored form."""
    if not 1 <= len(by) <= MAX_BY:
        raise ValidationError.at("upsertBy", f"must name 1 to {MAX_BY} fields")
    wanted: dict[str, Any] = {}
    for place, key in enumerate(by):
        spec = schema.fields.get(key)
        if spec is None:
            raise ValidationError.at(
                f"upsertBy.{place}", "is not the key of a field of this database"
            )
        wanted[key] = _checked(spec, written.get(key), f"upsertBy.{place}")
    return wanted


def _checked(spec: FieldSpec, value: Any, path: str) -> Any:
    rule = KIND_RULES[spec.kind]
    if rule.check is None or Op.EQ not in OPERATORS[rule.comparison]:
        raise ValidationError.at(path, f"cannot be matched by: it is a {spec.kind} field")
    if value is None:
        raise ValidationError.at(f"data.{spec.key}", "is needed to find the record")
    try:
        return rule.check(spec, value)
    except FieldValueError as problem:
        raise ValidationError.at(f"data.{spec.key}", str(problem)) from problem


async def _lock(work: UnitOfWork, schema: Schema, wanted: Mapping[str, Any]) -> None:
    values = sorted((key, _spelled(value)) for key, value in wanted.items())
    name = f"upsert/{schema.database_id}/{values!r}"
    await work.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(name, 0))))


def _spelled(value: Any) -> str:
    """One spelling for equal values: 5 and 5.0 are one number."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(Decimal(repr(value)).normalize())
    return repr(value)


async def _matching(work: UnitOfWork, schema: Schema, wanted: Mapping[str, Any]) -> Sequence[Id]:
    rows = await work.rows(
        select(record.c.id)
        .where(
            record.c.workspace_id == schema.workspace_id,
            record.c.database_id == schema.database_id,
            record.c.deleted_at.is_(None),
            *(
                condition(
                    read_filter(
                        {"field": key, "op": Op.EQ, "value": value}, schema.fields, work.now
                    )
                )
                for key, value in wanted.items()
            ),
        )
        .limit(2)
    )
    return [row.id for row in rows]
