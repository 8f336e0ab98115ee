"""The one way records are written: planned as a whole, locked in one order, stored at once.

A record alone and a batch of 500 take the same steps and the same number of statements. API calls,
nodes of automations, forms, templates and imports all come through here.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import sqlalchemy as sa

from models.content.files.queries import seen_files
from models.content.surfaces.commands import copy_to_records
from models.core.access.rules import Actor
from models.core.base import Id, JsonObject
from models.core.problems import MAX_PROBLEMS, refuse
from models.data.fields.commands import lock_fields, store_options
from models.data.fields.rules.fields import FieldKind, Schema
from models.data.record_changes.rules import ChangeKind
from models.data.records import rows as record_rows
from models.data.records.computed_values import recompute
from models.data.records.details import own_details, record_details
from models.data.records.events import emit_changes, notify_assigned
from models.data.records.link_writes import refuse_restricted, targets_to_hold, write_links
from models.data.records.links import LinksOf, links_of
from models.data.records.rules import writes as record_writes
from models.data.records.rules.links import read_relations
from models.data.records.rules.values import DataCheck, grow_options, ids_in
from models.data.records.shapes import MAX_OPERATIONS, RecordDetail
from models.data.records.side_index import index_records
from models.data.records.upserts import Matches, find_matches
from models.people.members import members_among
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, Detail, NotFoundError
from runtime.ids import new_id
from runtime.postgresql.statements import PreparedStatement

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
    writes: Sequence[record_writes.Write],
    problems: Sequence[Detail] = (),
) -> list[Written]:
    """Do all of these writes, or none; `schema` was read under its lock.

    Raises what `plan_writes` raises, and for relations what `write_links` raises.
    """
    schema, planned = await plan_writes(work, actor, schema, writes, problems)
    return await _store(work, actor, schema, planned)


async def _store(
    work: UnitOfWork, actor: Actor, schema: Schema, plans: Sequence[record_writes.Planned]
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
        rows = await record_rows.read_records(work, schema, rows)
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
    new: Sequence[record_writes.Planned],
    changes: Sequence[record_writes.Planned],
) -> Mapping[Id, int]:
    """Write the rows of records; gives the numbers of new ones, if they are numbered."""
    numbers: Mapping[Id, int] = {}
    if new:
        numbers = await record_rows.insert_records(
            work, actor, schema, new, numbered=_is_numbered(schema)
        )
        await copy_contents(work, actor, schema, new)
    if changes:
        await record_rows.update_records(work, actor, schema, changes)
    return numbers


def _is_numbered(schema: Schema) -> bool:
    return any(spec.kind is FieldKind.AUTO_NUMBER for spec in schema.fields.values())


def _stands_alone(schema: Schema) -> bool:
    """True when all that records show is known before they are written."""
    fields = schema.fields.values()
    return not _is_numbered(schema) and not any(spec.relation or spec.derived for spec in fields)


async def _shown_while(
    writing: Coroutine[Any, Any, Mapping[Id, int]],
    schema: Schema,
    rows: Sequence[record_writes.StoredRecord],
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


async def _update_derived(
    work: UnitOfWork, schema: Schema, plans: Sequence[record_writes.Planned]
) -> None:
    """Bring up to date what is derived from the records that changed."""
    if not plans:
        return
    ids = [plan.after.id for plan in plans]
    whole = any(plan.appears for plan in plans)
    keys = None if whole else _touched(schema, plans)
    await recompute(work, schema, ids, keys)
    await index_records(work, schema, ids, keys)


def _touched(schema: Schema, plans: Sequence[record_writes.Planned]) -> frozenset[str]:
    """Keys of the fields whose values changed: those written, and those every change moves."""
    moved = (
        key
        for key, spec in schema.fields.items()
        if spec.kind in {FieldKind.UPDATED_AT, FieldKind.UPDATED_BY}
    )
    return frozenset(chain(moved, *(plan.changed_keys for plan in plans)))


CHANGED_MEANWHILE = "The record was changed since it was read. Read it again."


async def plan_writes(
    work: UnitOfWork,
    actor: Actor,
    schema: Schema,
    writes: Sequence[record_writes.Write],
    problems: Sequence[Detail],
) -> tuple[Schema, list[record_writes.Planned]]:
    """Plan writes to records, which are locked, and give the schema with new options too.

    `problems` are the problems of the writes themselves, reported with the others. Raises
    `NotFoundError` for records, templates and files, `ValidationError` with every problem,
    `ConflictError` for records that are not as expected.
    """
    schema, writes = await _with_new_options(work, schema, writes)
    upserts = [write for write in writes if write.op is record_writes.WriteOp.UPSERT]
    matches = await find_matches(work, schema, upserts) if upserts else Matches()
    writes = _resolved(writes, matches)
    writes = await with_templates(work, schema, writes)
    checked_writes, found = _checked(schema, writes)
    checked_writes = await _held(work, schema, checked_writes)
    wrong = [*problems, *matches.problems, *_repeated(writes, matches), *found]
    wrong += await check_references(work, actor, schema, checked_writes)
    refuse(_reported(wrong, writes), MAX_OPERATIONS)
    _check_expected(checked_writes)
    await _refuse_restricted(work, schema, checked_writes)
    linked = await _links_before(work, actor, schema, checked_writes)
    return schema, _planned(work, actor, schema, checked_writes, linked)


def _resolved(
    writes: Sequence[record_writes.Write], matches: Matches
) -> Sequence[record_writes.Write]:
    """Upserts turned into what they are: a change of the record that was found, or a creation."""
    if not matches.spellings:
        return writes
    return [
        write
        if write.op is not record_writes.WriteOp.UPSERT or write.at not in matches.spellings
        else write._replace(op=record_writes.WriteOp.UPDATE, record_id=matches.record_ids[write.at])
        if write.at in matches.record_ids
        else write._replace(op=record_writes.WriteOp.CREATE)
        for write in writes
    ]


def _repeated(writes: Sequence[record_writes.Write], matches: Matches) -> list[Detail]:
    """Writes that mean a record which another means already."""
    if len(writes) == 1:
        return []
    by_id = ((write, write.record_id) for write in writes if write.record_id is not None)
    by_values = (
        (write, matches.spellings[write.at])
        for write in writes
        if write.record_id is None and write.at in matches.spellings
    )
    return record_writes.repeated_writes(
        chain[tuple[record_writes.Write, object]](by_id, by_values)
    )


async def _held(
    work: UnitOfWork, schema: Schema, checked_writes: Sequence[record_writes.Checked]
) -> list[record_writes.Checked]:
    """The same, with the records that exist already, locked.

    Raises `NotFoundError`, naming every write whose record does not.
    """
    ids = {entry.write.record_id for entry in checked_writes if entry.write.record_id is not None}
    if not ids:
        return list(checked_writes)
    linked = [entry.links for entry in checked_writes if entry.links]
    if linked:
        targets = await targets_to_hold(work, schema, linked)
        await record_rows.hold_records(work, schema.workspace_id, ids | targets)
    rows = await record_rows.lock_records(work, schema, ids)
    entries = [
        entry
        if entry.write.record_id is None
        else entry._replace(before=rows.get(entry.write.record_id))
        for entry in checked_writes
    ]
    missing = [
        entry.write
        for entry in entries
        if entry.write.record_id is not None and not _reachable(entry.before, entry.write, work)
    ]
    if any(write.upsert_by for write in missing):
        raise ConflictError("A record that an upsert found was deleted meanwhile. Try again.")
    if missing:
        raise RecordNotFoundError([write.at for write in missing])
    return entries


def _reachable(
    row: record_writes.StoredRecord | None, write: record_writes.Write, work: UnitOfWork
) -> bool:
    """True when a write may mean this row: only a restoration means one in the trash."""
    if row is None:
        return False
    if row.deleted_at is None:
        return True
    return (
        write.op is record_writes.WriteOp.RESTORE
        and row.deleted_at > work.now - record_writes.TRASH
    )


class RecordNotFoundError(NotFoundError):
    """Records that a batch names by these paths, or the one a path names."""

    def __init__(self, places: Sequence[str]) -> None:
        super().__init__("record")
        named = ", ".join(f"{at}recordId" for at in places if at)
        if named:
            self.message = f"{named}: {self.message}"


async def _with_new_options(
    work: UnitOfWork, schema: Schema, writes: Sequence[record_writes.Write]
) -> tuple[Schema, Sequence[record_writes.Write]]:
    """Add the options that the written values bring, where their fields allow it."""
    growth = grow_options(schema, [write.data for write in writes], new_id)
    if growth.keys:
        locked = await lock_fields(work, schema, growth.keys)
        growth = grow_options(locked, [write.data for write in writes], new_id)
        await store_options(work, growth.schema, growth.keys)
    if growth.schema is schema:
        return schema, writes
    pairs = zip(writes, growth.rows, strict=True)
    return growth.schema, [write._replace(data=values) for write, values in pairs]


def _checked(
    schema: Schema, writes: Sequence[record_writes.Write]
) -> tuple[list[record_writes.Checked], list[Detail]]:
    """The writes, as far as the fields take what they say, and everything that is wrong."""
    check = DataCheck(schema.fields)
    plain = check.plain_keys([write.data for write in writes]) if len(writes) > 1 else frozenset()
    checked_writes: list[record_writes.Checked] = []
    problems: list[Detail] = []
    for write in writes:
        read = check.new if write.op is record_writes.WriteOp.CREATE else check.patch
        change, wrong = read(write.data, write.at, plain)
        links: record_writes.Links = {}
        if write.relations:
            links, unlinkable = read_relations(
                schema.fields, write.relations, write.at, check.hints
            )
            wrong += unlinkable
        problems += wrong
        checked_writes.append(record_writes.Checked(write, None, change, links))
    return checked_writes, problems


def _reported(problems: Sequence[Detail], writes: Sequence[record_writes.Write]) -> list[Detail]:
    """The problems to report: of each write the first few, so that every bad one is named."""
    # There is no write where no operation could be read.
    limit = min(MAX_PROBLEMS, MAX_OPERATIONS // max(1, len(writes)))
    if len(problems) <= limit:
        return list(problems)
    reported: dict[str, list[Detail]] = {write.at: [] for write in writes}
    for problem in problems:
        at = problem.path.split(".", 2)
        own = f"{at[0]}.{at[1]}." if at[0] == "operations" else ""
        reported.setdefault(own, []).append(problem)
    return [problem for some in reported.values() for problem in some[:limit]]


def _check_expected(checked_writes: Sequence[record_writes.Checked]) -> None:
    """Raise `ConflictError` unless every record is the one its writer read."""
    stale = [
        entry.write
        for entry in checked_writes
        if entry.write.expected_updated_at is not None
        and entry.before is not None
        and entry.before.updated_at != entry.write.expected_updated_at
    ]
    if stale:
        named = ", ".join(f"{write.at}recordId" for write in stale if write.at)
        raise ConflictError(f"{named}: {CHANGED_MEANWHILE}" if named else CHANGED_MEANWHILE)


async def _refuse_restricted(
    work: UnitOfWork, schema: Schema, checked_writes: Sequence[record_writes.Checked]
) -> None:
    """Raise `ConflictError` for a deletion that a relation field forbids."""
    deleted = [
        entry.before.id
        for entry in checked_writes
        if entry.write.op is record_writes.WriteOp.DELETE and entry.before is not None
    ]
    if deleted:
        await refuse_restricted(work, schema, deleted)


async def _links_before(
    work: UnitOfWork, actor: Actor, schema: Schema, checked_writes: Sequence[record_writes.Checked]
) -> LinksOf:
    """The present links of the relation fields that writes of records name."""
    linking = {
        entry.before.id: entry.links
        for entry in checked_writes
        if entry.before is not None and entry.links
    }
    if not linking:
        return {}
    return await links_of(work, actor, schema, linking, set(chain(*linking.values())))


def _planned(
    work: UnitOfWork,
    actor: Actor,
    schema: Schema,
    checked_writes: Sequence[record_writes.Checked],
    linked: LinksOf,
) -> list[record_writes.Planned]:
    """The records after the writes. Raises `ValidationError` for records that grow too large."""
    plans: list[record_writes.Planned] = []
    problems: list[Detail] = []
    for entry in checked_writes:
        if entry.before is None:
            surface_id = None if entry.write.content_from is None else new_id()
            plan = record_writes.plan_new(
                schema, entry, new_id(), surface_id, actor.user_id, work.now
            )
        else:
            now = linked.get(entry.before.id, {})
            links = {key: now.get(key, ()) for key in entry.links}, entry.links
            plan = record_writes.plan_change(entry, entry.before, links, actor.user_id, work.now)
        if (
            plan.change.values
            and record_writes.data_bytes(plan.after.data) > record_writes.MAX_DATA_BYTES
        ):
            problems.append(Detail(f"{entry.write.at}data", "is larger than 1 MiB in total"))
        plans.append(plan)
    refuse(problems, MAX_OPERATIONS)
    return plans


async def with_templates(
    work: UnitOfWork, schema: Schema, writes: Sequence[record_writes.Write]
) -> Sequence[record_writes.Write]:
    """The writes with what their templates prefill below what they say themselves.

    A template serves what makes a new record. Raises `NotFoundError` for one that the database
    does not have.
    """
    wanted = {write.template_id for write in writes if write.template_id is not None}
    if not wanted:
        return writes
    prefills = await prefills_of(work, schema.workspace_id, schema.database_id, wanted)
    filled: list[record_writes.Write] = []
    for write in writes:
        if write.template_id is None or write.op is not record_writes.WriteOp.CREATE:
            filled.append(write)
            continue
        prefill = prefills[write.template_id]
        filled.append(
            write._replace(
                data={**prefill.data, **write.data},
                relations={**prefill.relations, **write.relations},
                content_from=prefill.content_surface_id,
            )
        )
    return filled


async def copy_contents(
    work: UnitOfWork, actor: Actor, schema: Schema, new: Sequence[record_writes.Planned]
) -> None:
    """Give new records the content of their templates."""
    copies = [
        (one.content_from, one.after.content_surface_id, one.after.id)
        for one in new
        if one.content_from is not None and one.after.content_surface_id is not None
    ]
    if copies:
        await copy_to_records(work, actor, schema.database_id, copies)


@dataclass(frozen=True, slots=True)
class Prefill:
    """The content a template gives a new record; an empty surface is left out."""

    data: JsonObject
    relations: JsonObject
    content_surface_id: Id | None


FindPrefills = Callable[[UnitOfWork, Id, Id, Collection[Id]], Awaitable[Mapping[Id, Prefill]]]
"""Takes a workspace, a database and ids of templates; raises `NotFoundError` for one it lacks."""

_FIND: list[FindPrefills] = []


def find_prefills_with(find: FindPrefills) -> None:
    """Ask `find` for prefills; registering it again changes nothing.

    Record templates, which know the prefills, register; `models.registrations` lists them.
    """
    if find not in _FIND:
        _FIND.append(find)


async def prefills_of(
    work: UnitOfWork, workspace_id: Id, database_id: Id, template_ids: Collection[Id]
) -> Mapping[Id, Prefill]:
    """The prefill of each of these templates. Raises `NotFoundError`."""
    (find,) = _FIND
    return await find(work, workspace_id, database_id, template_ids)


_MEMBERS = PreparedStatement(
    members_among(
        sa.bindparam("workspace_id", type_=sa.Uuid), sa.bindparam("ids", type_=sa.ARRAY(sa.Uuid))
    )
)


async def check_references(
    work: UnitOfWork, actor: Actor, schema: Schema, checked_writes: Sequence[record_writes.Checked]
) -> list[Detail]:
    """A problem for every person a value newly names who is no member.

    No one else's id tells whether it exists. Raises `NotFoundError` for a file the actor does not
    see. What a record names already may stay.
    """
    files = _named(schema, checked_writes, FieldKind.FILE)
    if files:
        await _check_files(work, actor, files)
    people = _named(schema, checked_writes, FieldKind.PERSON)
    if not people:
        return []
    parameters = {"workspace_id": schema.workspace_id, "ids": [Id(user) for user in people]}
    members = {str(row.user_id) for row in await _MEMBERS.rows(work, parameters)}
    return [
        Detail(path, f"{user} is not a member of this workspace")
        for user, paths in people.items()
        if user not in members
        for path in paths
    ]


async def _check_files(work: UnitOfWork, actor: Actor, file_ids: Collection[str]) -> None:
    rows = await work.rows(seen_files(actor, [Id(entry) for entry in file_ids]))
    if len(rows) < len(file_ids):
        raise NotFoundError("file")


def _named(
    schema: Schema, checked_writes: Iterable[record_writes.Checked], kind: FieldKind
) -> dict[str, list[str]]:
    """Each id that values of fields of a kind newly name, and the paths where it stands."""
    if all(spec.kind is not kind for spec in schema.fields.values()):
        return {}
    paths: dict[str, list[str]] = {}
    for one in checked_writes:
        held = {} if one.before is None else one.before.data
        for key, entry in ids_in(one.change, schema.fields, kind):
            known = held.get(key)
            if not isinstance(known, list) or entry not in known:
                paths.setdefault(entry, []).append(f"{one.write.at}data.{key}")
    return paths
