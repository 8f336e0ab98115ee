"""Planning, checking and inserting rows of a bundle, a chunk in one transaction."""

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

import psycopg
import sqlalchemy as sa
from pydantic import JsonValue
from pydantic_core import to_json
from sqlalchemy.dialects.postgresql import JSON, JSONB
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.exc import DataError, IntegrityError

from models.core.base import Id
from models.core.bundles import BundleKind, Findings, ImportTarget, Row, imported_text
from models.core.keys import first_free
from models.workspace.bundles import references
from models.workspace.bundles.lines import read_rows
from models.workspace.bundles.registry import KINDS
from models.workspace.bundles.rules import BundleError, Fault
from runtime.clock import wire_timestamp
from runtime.database import UnitOfWork
from runtime.postgresql.copy_format import text_column
from runtime.postgresql.schema import Timestamp


async def plan_workspace(work: UnitOfWork, target: ImportTarget, source_id: Id) -> None:
    """Record which workspace of a bundle an entry is; rows may name it."""
    ids = {str(source_id): str(target.workspace_id)}
    await references.plan_ids(work, target, "workspace", ids)


async def plan_chunk(
    work: UnitOfWork, target: ImportTarget, kinds: Sequence[BundleKind], lines: Sequence[bytes]
) -> Findings:
    """Read rows and give them their ids: what later chunks refer to. Nothing else is written.

    An id that was planned before is an error, so a check that begins anew forgets the ids first.
    """
    findings = Findings()
    found = read_rows(lines, kinds, findings)
    for kind in kinds:
        rows = found[kind.name]
        findings.rows[kind.name] += len(rows)
        if kind.source_kind is not None and rows:
            ids = [row[kind.identity].lower() for row in rows]
            planned = await _identified(work, target, kind, rows)
            recorded = await references.plan_ids(work, target, kind.source_kind, planned)
            twice = len(ids) - len(set(ids)) + len(planned) - recorded
            if twice:
                findings.refuse("duplicate_id", f"{kind.name}: duplicate id.", twice)
            if unknown := len(set(ids) - planned.keys()):
                findings.warn(
                    "unknown_person",
                    f"{kind.name}: no member has that address.",
                    unknown,
                )
    return findings


async def check_chunk(
    work: UnitOfWork,
    target: ImportTarget,
    kinds: Sequence[BundleKind],
    lines: Sequence[bytes],
    context_rows: Mapping[str, Sequence[Row]],
    *,
    checked: bool,
) -> Findings:
    """The findings of applying the lines, once all ids are planned: rows left out or changed.

    The ids of rows that are left out are forgotten; nothing else is written.

    `context_rows` are the rows that others are checked against, by kind. Where planning found no
    error, all lines are `checked`; else the refused lines are passed over.
    """
    findings = Findings()
    # Planning has reported the faults of lines.
    found = read_rows(lines, kinds, Findings(), checked=checked)
    for kind in kinds:
        if kind.judge is not None:
            kind.judge(found[kind.name], context_rows.get(kind.beside or "", ()), findings)
        resolved = await references.resolve(work, target, kind, found[kind.name], findings)
        references.in_order(kind, resolved.rows, None, findings)
        # A row that names one left out is left out as well, or loses the reference.
        await references.forget_sources(work, target.entry_id, kind.name, resolved.left_out)
        findings.rows[kind.name] += len(resolved.rows)
    return findings


@dataclass(frozen=True, slots=True)
class ReadChunk:
    """Rows of a chunk as they go into their tables, by kind, with the findings of reading them."""

    rows: Mapping[str, Sequence[Row]]
    findings: Findings


async def read_chunk(
    work: UnitOfWork, target: ImportTarget, kinds: Sequence[BundleKind], lines: Sequence[bytes]
) -> ReadChunk:
    """Read rows whose ids are planned. Nothing is written.

    It may run ahead: what it asks for does not change while rows are applied.
    """
    findings = Findings()
    found = await asyncio.to_thread(read_rows, lines, kinds, findings)
    rows: dict[str, Sequence[Row]] = {}
    for kind in kinds:
        resolved = await references.resolve(work, target, kind, found[kind.name], findings)
        rows[kind.name] = await prepare_rows(work, target, kind, resolved.rows)
    return ReadChunk(rows, findings)


async def prepare_rows(
    work: UnitOfWork, target: ImportTarget, kind: BundleKind, rows: Sequence[Row]
) -> Sequence[Row]:
    """Rows whose ids are ids of the target, with the last word of their resource."""
    return rows if kind.prepare is None else await kind.prepare(work, target, rows)


async def apply_chunk(
    work: UnitOfWork, target: ImportTarget, kinds: Sequence[BundleKind], chunk: ReadChunk
) -> Findings:
    """Insert rows under their planned ids.

    Rows that are there already stay as they are; of a kind that is copied there are none.
    `findings.rows` counts the rows that are there afterwards.
    """
    findings = chunk.findings
    for kind in kinds:
        rows: Sequence[Row] = await references.place_below_parents(
            work, target, kind, chunk.rows[kind.name], findings
        )
        if kind.unique_key:
            rows = await _with_free_keys(work, target, kind, rows)
        if kind.store is not None:
            rows = await kind.store(work, target, rows)
        if kind.hides and target.hidden:
            rows = [{**row, "deleted_at": work.now} for row in rows]
        if rows:
            await insert_rows(work, kind, rows)
        findings.rows[kind.name] += len(rows)
    return findings


async def show(work: UnitOfWork, target: ImportTarget) -> None:
    """Let people see the rows that were applied out of their sight."""
    for kind in KINDS:
        if kind.hides:
            table = kind.table
            own = table.c.id.in_(references.targets_of(target.entry_id, kind.name))
            hidden = table.c.workspace_id == target.workspace_id, table.c.deleted_at.is_not(None)
            await work.execute(sa.update(table).where(own, *hidden).values(deleted_at=None))


async def conclude(work: UnitOfWork, target: ImportTarget) -> None:
    """Ask for what follows from all rows together, once everything is applied."""
    for kind in KINDS:
        if kind.conclude is not None:
            await kind.conclude(work, target)


async def _identified(
    work: UnitOfWork, target: ImportTarget, kind: BundleKind, rows: Sequence[Row]
) -> Mapping[str, str]:
    if kind.identify is not None:
        return await kind.identify(work, target, rows)
    entry = target.entry_id.hex
    ids = (row[kind.identity].lower() for row in rows)
    return {one: imported_text(entry, one) for one in ids}


async def _with_free_keys(
    work: UnitOfWork, target: ImportTarget, kind: BundleKind, rows: Sequence[Row]
) -> list[Row]:
    """The rows with keys that nothing else in the workspace has."""
    own = sa.literal([Id(row["id"]) for row in rows], sa.ARRAY(sa.Uuid))
    others = await work.rows(
        sa.select(kind.table.c.key).where(
            kind.table.c.workspace_id == target.workspace_id, kind.table.c.id != sa.func.all(own)
        )
    )
    taken = {row.key for row in others}
    keyed = []
    for row in rows:
        key = first_free(row["key"], taken)
        taken.add(key)
        keyed.append({**row, "key": key})
    return keyed


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
    typed = [sa.column(name, kind.table.c[name].type) for name in names]
    given = sa.cast(sa.literal(to_json(rows).decode(), sa.Text), JSON)
    source = sa.func.json_to_recordset(given).table_valued(*typed).render_derived(with_types=True)
    values = [_value(work, kind, name, source.c[name]) for name in names]
    statement = upsert(kind.table).from_select(names, sa.select(*values), include_defaults=False)
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
    work: UnitOfWork, kind: BundleKind, name: str, given: sa.ColumnElement[Any]
) -> sa.ColumnElement[Any]:
    """A value of a row; none is written in the future."""
    of = kind.table.c[name]
    if isinstance(of.type, type(Timestamp)) and name in _WRITTEN_AT:
        return sa.func.least(given, sa.literal(work.now, Timestamp))
    return or_default(of, given)


def or_default(of: sa.Column[Any], value: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    """A value for a column; where that may not be null, its default stands for what is missing."""
    if of.server_default is not None and not of.nullable:
        return sa.func.coalesce(value, sa.type_coerce(of.server_default.arg, of.type))  # type: ignore[attr-defined]
    return value
