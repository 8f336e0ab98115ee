"""The one way records are written: planned as a whole, locked in one order, stored at once.

A record alone and a batch of 500 take the same steps and the same number of statements. API calls,
nodes of automations, forms, templates and imports all come through here.
"""

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from models.core.access.rules import Actor
from models.core.base import Id
from models.data.fields.rules.fields import Schema
from models.data.fields.rules.kinds import FieldKind
from models.data.record_changes.rules import ChangeKind
from models.data.records.commands.assignments import notify_assigned
from models.data.records.commands.computed_values import recompute
from models.data.records.commands.index import index_records
from models.data.records.commands.links import write_links
from models.data.records.commands.plan import plan_writes
from models.data.records.commands.rows import insert_records, read_records, update_records
from models.data.records.commands.templates import copy_contents
from models.data.records.events import emit_changes
from models.data.records.queries.details import own_details, record_details
from models.data.records.rules.write.writes import Planned, StoredRecord, Write
from models.data.records.shapes import RecordDetail
from runtime.database import UnitOfWork
from runtime.errors import Detail

_SHOWN_AT_ONCE = 50
"""Records that are made ready for the answer before others have their turn."""


@dataclass(frozen=True, slots=True)
class Written:
    """A record as it is now, and what became of it; None for a write that changed nothing."""

    record: RecordDetail
    kind: ChangeKind | None


async def write_records(
    work: UnitOfWork,
    actor: Actor,
    schema: Schema,
    writes: Sequence[Write],
    problems: Sequence[Detail] = (),
) -> list[Written]:
    """Do all of these writes, or none; `schema` was read under its lock.

    Raises what `plan_writes` raises, and for relations what `write_links` raises.
    """
    schema, planned = await plan_writes(work, actor, schema, writes, problems)
    return await _store(work, actor, schema, planned)


async def _store(
    work: UnitOfWork, actor: Actor, schema: Schema, plans: Sequence[Planned]
) -> list[Written]:
    """Write what changes, and what follows from it."""
    new = [plan for plan in plans if plan.before is None]
    changes = [plan for plan in plans if plan.before is not None and plan.kind is not None]
    rows = {plan.after.id: plan.after for plan in plans}
    writing = _write_rows(work, actor, schema, new, changes)
    details: list[RecordDetail] = []
    if len(plans) > 1 and _stands_alone(schema):
        details = await _shown_while(writing, schema, [plan.after for plan in plans])
    else:
        numbers = await writing
        rows.update({id_: rows[id_]._replace(number=number) for id_, number in numbers.items()})
    # A list that is so already is written with others: one of them may take from it.
    moved = len(plans) > 1
    linked = {plan.after.id: plan.links for plan in plans if plan.links and (plan.kind or moved)}
    if linked:
        await write_links(work, actor, schema, linked)
    await _update_derived(work, schema, [*new, *changes])
    if any(spec.derived for spec in schema.fields.values()):
        rows = await read_records(work, schema, rows)
    await emit_changes(work, actor, schema, plans, rows)
    await notify_assigned(work, actor, schema, plans)
    if not details:
        shown = [rows[plan.after.id] for plan in plans]
        details = await record_details(work, actor, schema, shown)
    return [Written(detail, plan.kind) for detail, plan in zip(details, plans, strict=True)]


async def _write_rows(
    work: UnitOfWork,
    actor: Actor,
    schema: Schema,
    new: Sequence[Planned],
    changes: Sequence[Planned],
) -> Mapping[Id, int]:
    """Write the rows of records; gives the numbers of new ones, if they are numbered."""
    numbers: Mapping[Id, int] = {}
    if new:
        numbers = await insert_records(work, actor, schema, new, numbered=_is_numbered(schema))
        await copy_contents(work, actor, schema, new)
    if changes:
        await update_records(work, actor, schema, changes)
    return numbers


def _is_numbered(schema: Schema) -> bool:
    return any(spec.kind is FieldKind.AUTO_NUMBER for spec in schema.fields.values())


def _stands_alone(schema: Schema) -> bool:
    """True when all that records show is known before they are written."""
    fields = schema.fields.values()
    return not _is_numbered(schema) and not any(spec.relation or spec.derived for spec in fields)


async def _shown_while(
    writing: Coroutine[Any, Any, Mapping[Id, int]], schema: Schema, rows: Sequence[StoredRecord]
) -> list[RecordDetail]:
    """The records as they are shown, while PostgreSQL writes them."""
    task = asyncio.create_task(writing)
    details: list[RecordDetail] = []
    try:
        for start in range(0, len(rows), _SHOWN_AT_ONCE):
            # Meanwhile the rest of the statement is sent, and other requests have their turn.
            await asyncio.sleep(0)
            some = rows[start : start + _SHOWN_AT_ONCE]
            details += own_details(schema, some, schema.fields)
    finally:
        await task
    return details


async def _update_derived(work: UnitOfWork, schema: Schema, plans: Sequence[Planned]) -> None:
    """Bring up to date what is derived from the records that changed."""
    if not plans:
        return
    ids = [plan.after.id for plan in plans]
    whole = any(plan.appears for plan in plans)
    keys = None if whole else _touched(schema, plans)
    await recompute(work, schema, ids, keys)
    await index_records(work, schema, ids, keys)


def _touched(schema: Schema, plans: Sequence[Planned]) -> frozenset[str]:
    """Keys of the fields whose values changed: those written, and those every change moves."""
    moved = (
        key
        for key, spec in schema.fields.items()
        if spec.kind in {FieldKind.UPDATED_AT, FieldKind.UPDATED_BY}
    )
    return frozenset(chain(moved, *(plan.changed_keys for plan in plans)))
