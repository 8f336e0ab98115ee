"""Inserting rows of a bundle: as JSON, or copied where they are very many."""

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

import psycopg
from pydantic import JsonValue
from pydantic_core import to_json
from sqlalchemy import Column, ColumnElement, Text, cast, column, func, literal, select, type_coerce
from sqlalchemy.dialects.postgresql import JSON, JSONB
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.exc import DataError, IntegrityError

from models.core.bundles.kinds import BundleKind, Row
from models.workspace.bundles.errors import BundleError, Fault
from runtime.copy_format import text_column
from runtime.database import UnitOfWork
from runtime.schema import Timestamp
from runtime.timestamps import wire_timestamp

_WRITTEN_AT = frozenset({"created_at", "updated_at"})
"""Columns of moments that never lie in the future."""
_REFUSALS = (IntegrityError, DataError, psycopg.IntegrityError, psycopg.DataError)
_TO_SECONDS = len("2026-01-01T00:00:00")
_IN_UTC = ("Z", "+00:00")
_LEAP_SECOND = re.compile(r":60(?=[.Z+-])")


async def insert_rows(work: UnitOfWork, kind: BundleKind, rows: Sequence[Row]) -> None:
    """Insert rows of a kind by one statement. Raises BundleError where PostgreSQL refuses one."""
    names = sorted(set[str]().union(*rows) & set(kind.table.c.keys()))
    insert = _copy if kind.copied else _insert
    try:
        await insert(work, kind, names, rows)
    except _REFUSALS as error:
        raise BundleError(
            Fault.ROWS, f"{kind.name}: there are rows that PostgreSQL refuses."
        ) from error


async def _insert(
    work: UnitOfWork, kind: BundleKind, names: Sequence[str], rows: Sequence[Row]
) -> None:
    """Rows that are there already stay as they are."""
    typed = [column(name, kind.table.c[name].type) for name in names]
    given = cast(literal(to_json(rows).decode(), Text), JSON)
    source = func.json_to_recordset(given).table_valued(*typed).render_derived(with_types=True)
    values = [_value(work, kind, name, source.c[name]) for name in names]
    statement = upsert(kind.table).from_select(names, select(*values), include_defaults=False)
    keys = [one.name for one in kind.table.primary_key]
    await work.execute(statement.on_conflict_do_nothing(index_elements=keys))


async def _copy(
    work: UnitOfWork, kind: BundleKind, names: Sequence[str], rows: Sequence[Row]
) -> None:
    """Take PostgreSQL three fifths of the time of `_insert`; a row that is there is refused."""
    not_after = partial(_not_after, work.now, wire_timestamp(work.now)[:_TO_SECONDS])
    forms = {name: not_after for name in names if name in _WRITTEN_AT} | {
        name: _as_json for name in names if isinstance(kind.table.c[name].type, JSONB)
    }
    lines = await asyncio.to_thread(_lines, rows, names, forms)
    statement = f"COPY {kind.table.name} ({', '.join(names)}) FROM STDIN"
    driver = await work.driver()
    async with driver.cursor() as cursor, cursor.copy(statement) as copy:
        await copy.write(lines)


def _lines(
    rows: Sequence[Row], names: Sequence[str], forms: Mapping[str, Callable[[Any], str]]
) -> bytes:
    """The rows as lines of COPY, put together a column at a time."""
    columns = []
    for name in names:
        values = [row.get(name) for row in rows]
        if form := forms.get(name):
            values = [None if one is None else form(one) for one in values]
        columns.append(text_column(values))
    return "".join(["\t".join(line) + "\n" for line in zip(*columns, strict=True)]).encode()


def _as_json(value: JsonValue) -> str:
    return to_json(value).decode()


def _not_after(now: datetime, current_second: str, value: str) -> str:
    """A moment of a bundle, or now if it lies ahead; `current_second` is now as text, in UTC."""
    # Texts of one form sort as their moments, and most are long ago.
    if value.endswith(_IN_UTC) and value[:_TO_SECONDS] < current_second:
        return value
    # RFC 3339 knows leap seconds, and Python does not.
    moment = _LEAP_SECOND.sub(":59", value.upper())
    try:
        return str(now) if datetime.fromisoformat(moment) > now else value
    except ValueError:  # the year 0, which PostgreSQL refuses
        return value


def _value(
    work: UnitOfWork, kind: BundleKind, name: str, given: ColumnElement[Any]
) -> ColumnElement[Any]:
    """A value of a row; none is written in the future."""
    of = kind.table.c[name]
    if isinstance(of.type, type(Timestamp)) and name in _WRITTEN_AT:
        return func.least(given, literal(work.now, Timestamp))
    return or_default(of, given)


def or_default(of: Column[Any], value: ColumnElement[Any]) -> ColumnElement[Any]:
    """A value for a column; where that may not be null, its default stands for what is missing."""
    if of.server_default is not None and not of.nullable:
        return func.coalesce(value, type_coerce(of.server_default.arg, of.type))  # type: ignore[attr-defined]
    return value
