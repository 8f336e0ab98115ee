"""Records that upserts mean, found and locked by the values of certain fields."""

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import chain
from typing import Any
from unicodedata import normalize

import sqlalchemy as sa
from pydantic_core import to_json
from sqlalchemy.dialects.postgresql import JSONB, aggregate_order_by

from models.core.base import Id
from models.core.filters.grammar import ValueForm
from models.core.filters.operands import In, Scalar
from models.core.values import all_digits, spellings
from models.data.fields.commands import DatabaseBusyError, share_soon
from models.data.fields.rules.fields import FieldSpec, Schema
from models.data.fields.rules.values import value_form
from models.data.records.queries import records_of
from models.data.records.rules.query.ordering import entries_of, entry_condition, is_indexable
from models.data.records.rules.values import meant_values
from models.data.records.rules.writes import Write
from models.data.records.tables import record, record_index
from runtime.crypto import fingerprint
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, Detail
from runtime.postgresql.schema import is_among
from runtime.postgresql.statements import PreparedStatement

_LOCKS = 32
"""Locks per database that upserts share: a batch must not fill PostgreSQL's table of locks."""


@dataclass(slots=True)
class Matches:
    """The records that upserts mean, by the paths of the writes.

    `spellings` are the values the record is found by, `record_ids` the record where there is one.
    """

    spellings: dict[str, str] = field(default_factory=dict)
    record_ids: dict[str, Id] = field(default_factory=dict)
    problems: list[Detail] = field(default_factory=list)


async def find_matches(work: UnitOfWork, schema: Schema, upserts: Sequence[Write]) -> Matches:
    """The record each upsert changes, if there is one: all in one statement.

    Two upserts of the same values wait for each other, so they never create it twice. All name the
    same fields. Raises `ConflictError` when several records match, RowsComingInError.
    """
    matches = Matches()
    searches: dict[str, dict[str, Any]] = {}
    first = next((write for write in upserts if write.upsert_by), upserts[0])
    for write in upserts:
        values, problems = _upsert_values(schema, write, first)
        matches.problems += problems
        if not problems:
            searches[write.at] = values
            matches.spellings[write.at] = _spelled(values)
    if searches:
        await _lock(work, schema, matches.spellings.values())
        matches.record_ids = await _find(work, schema, searches)
    return matches


def _upsert_values(
    schema: Schema, write: Write, first: Write
) -> tuple[dict[str, Any], list[Detail]]:
    """The values to find the record by, in their stored form."""
    if write.upsert_by and set(write.upsert_by) != set(first.upsert_by):
        message = f"must name the fields that {first.at}upsertBy names"
        return {}, [Detail(f"{write.at}upsertBy", message)]
    return meant_values(schema.fields, write.upsert_by, write.data, write.at)


def _spelled(values: Mapping[str, Any]) -> str:
    """One spelling for equal values: 5 and 5.0 are one number, normal forms of a text one text."""
    return repr(sorted((key, _spelling(value)) for key, value in values.items()))


def _spelling(value: Scalar | float) -> str:
    scalar = _scalar(value)
    if isinstance(scalar, Decimal):
        return all_digits(scalar)
    return repr(normalize("NFC", value) if isinstance(value, str) else value)


class RowsComingInError(DatabaseBusyError):
    """A refresh or an import writes into the database; what it writes is not to be seen yet."""

    def __init__(self) -> None:
        super().__init__("Rows are being imported into this database. Try again in a moment.")


_COMING_IN = sa.bindparam("coming_in", type_=sa.BigInteger)
_LOCK = PreparedStatement(
    sa.select(
        sa.func.pg_try_advisory_xact_lock_shared(_COMING_IN).label("shared"),
        sa.func.pg_advisory_xact_lock(
            sa.func.unnest(sa.bindparam("keys", type_=sa.ARRAY(sa.BigInteger)))
        ),
    )
)
_LOCK_ALL = PreparedStatement(sa.select(sa.func.pg_advisory_xact_lock(_COMING_IN)))


async def _lock(work: UnitOfWork, schema: Schema, spellings: Iterable[str]) -> None:
    """Hold the locks of these values, in the order all take them. Raises RowsComingInError."""
    shares = {zlib.crc32(spelled.encode()) % _LOCKS for spelled in spellings}
    keys = sorted(_key(schema.database_id, b"%d" % share) for share in shares)
    coming_in = _key(schema.database_id, b"coming in")
    locked = await _LOCK.rows(work, {"coming_in": coming_in, "keys": keys})
    if not all(row.shared for row in locked):
        await share_soon(work, coming_in, RowsComingInError)


async def hold_upserts(work: UnitOfWork, database_id: Id) -> None:
    """Keep all other upserts of a database waiting until the end; they wait for a second."""
    await _LOCK_ALL.rows(work, {"coming_in": _key(database_id, b"coming in")})


def _key(database_id: Id, name: bytes) -> int:
    digest = fingerprint(b"upsert", database_id.bytes, name)
    return int.from_bytes(digest[:8], "big", signed=True)


async def _find(
    work: UnitOfWork, schema: Schema, searches: Mapping[str, Mapping[str, Any]]
) -> dict[str, Id]:
    """The one record that has each searched set of values, by the path of its write."""
    places = list(searches)
    rows = [{"place": place, "values": searches[at]} for place, at in enumerate(places)]
    keys = list(searches[places[0]])
    entry = (
        sa.func.jsonb_to_recordset(sa.cast(sa.literal(to_json(rows).decode(), sa.Text), JSONB))
        .table_valued(sa.column("place", sa.Integer), sa.column("values", JSONB))
        .render_derived(name="entry", with_types=True)
    )
    statement = (
        sa.select(
            entry.c.place,
            sa.func.count().label("times"),
            sa.func.array_agg(aggregate_order_by(record.c.id, record.c.id)).label("ids"),
        )
        .where(
            *records_of(schema.workspace_id, schema.database_id),
            *(equal_values(schema.fields[key], entry.c["values"][key]) for key in keys),
            *_among_few(schema, searches),
        )
        .group_by(entry.c.place)
    )
    record_ids: dict[str, Id] = {}
    for row in await work.rows(statement):
        if row.times > 1:
            raise ConflictError(
                f"{places[row.place]}upsertBy: several records have this {', '.join(keys)};"
                " an upsert needs one."
            )
        record_ids[places[row.place]] = row.ids[0]
    return record_ids


def _among_few(
    schema: Schema, searches: Mapping[str, Mapping[str, Any]]
) -> list[sa.ColumnElement[bool]]:
    """The entries of an index the records are among, where one of the fields has an index."""
    for key in next(iter(searches.values())):
        spec = schema.fields[key]
        if not spec.index_ready or not is_indexable(spec):
            continue
        members = (spellings(_scalar(one[key])) for one in searches.values())
        entries = entry_condition(spec, In(tuple(chain.from_iterable(members))))
        if entries is not None:
            mine = record_index.c.workspace_id == schema.workspace_id
            ids = sa.select(record_index.c.record_id).where(mine, entries_of(spec), entries)
            return [is_among(record.c.id, ids)]
    return []


def _scalar(value: Scalar | float) -> Scalar:
    """A stored value as tests know it."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Decimal(repr(value))
    return value


def equal_values(
    spec: FieldSpec, value: sa.ColumnElement[Any], *, or_none: bool = False
) -> sa.ColumnElement[bool]:
    """Equality of stored forms, which a hash join serves however many values are wanted.

    With `or_none` two that have no value are equal, too.
    """
    if spec.title:
        return same_text(record.c.title, sa.cast(value.astext, sa.Text))
    # A checkbox without a value is not checked.
    is_checkbox = value_form(spec) is ValueForm.BOOLEAN
    none = sa.literal(False, JSONB) if is_checkbox else _NONE
    of_record: sa.ColumnElement[Any] = record.c.data[spec.key]
    if is_checkbox or or_none:
        of_record = sa.func.coalesce(of_record, none)
    wanted = sa.func.coalesce(value, none) if or_none else value
    if value_form(spec) is ValueForm.TEXT:
        return same_text(sa.cast(of_record, sa.Text), sa.cast(wanted, sa.Text))
    return of_record == wanted


def same_text(
    first: sa.ColumnElement[Any], second: sa.ColumnElement[Any]
) -> sa.ColumnElement[bool]:
    """Equality of texts in any normal form: `é` is the same as one sign and as two."""
    form = sa.text("NFC")
    return sa.func.normalize(first, form) == sa.func.normalize(second, form)


_NONE = sa.cast(sa.literal("null", sa.Text), JSONB)
