"""From writes to what they make of records: everything that may refuse them happens here."""

from collections.abc import Sequence
from itertools import chain

from models.core.access.rules import Actor
from models.data.fields.commands import lock_fields, store_options
from models.data.fields.rules.fields import Schema
from models.data.records.commands.links import refuse_restricted, targets_to_hold
from models.data.records.commands.rows import hold_records, lock_records
from models.data.records.commands.templates import with_templates
from models.data.records.commands.upsert import Matches, find_matches
from models.data.records.queries.links import LinksOf, links_of
from models.data.records.queries.references import check_references
from models.data.records.rules.link.written_relations import read_relations
from models.data.records.rules.write.data import MAX_PROBLEMS, DataCheck, refuse
from models.data.records.rules.write.operations import repeated
from models.data.records.rules.write.options import grow_options
from models.data.records.rules.write.writes import (
    MAX_DATA_BYTES,
    TRASH,
    Checked,
    Links,
    Planned,
    StoredRecord,
    Write,
    WriteOp,
    data_bytes,
    plan_change,
    plan_new,
)
from models.data.records.shapes import MAX_OPERATIONS
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, Detail, NotFoundError
from runtime.ids import new_id

CHANGED_MEANWHILE = "The record was changed since it was read. Read it again."


async def plan_writes(
    work: UnitOfWork,
    actor: Actor,
    schema: Schema,
    writes: Sequence[Write],
    problems: Sequence[Detail],
) -> tuple[Schema, list[Planned]]:
    """Plan writes to records, which are locked, and give the schema with new options too.

    `problems` are the problems of the writes themselves, reported with the others. Raises
    `NotFoundError` for records, templates and files, `ValidationError` with every problem,
    `ConflictError` for records that are not as expected.
    """
    schema, writes = await _with_new_options(work, schema, writes)
    upserts = [write for write in writes if write.op is WriteOp.UPSERT]
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


def _resolved(writes: Sequence[Write], matches: Matches) -> Sequence[Write]:
    """Upserts turned into what they are: a change of the record that was found, or a creation."""
    if not matches.spellings:
        return writes
    return [
        write
        if write.op is not WriteOp.UPSERT or write.at not in matches.spellings
        else write._replace(op=WriteOp.UPDATE, record_id=matches.record_ids[write.at])
        if write.at in matches.record_ids
        else write._replace(op=WriteOp.CREATE)
        for write in writes
    ]


def _repeated(writes: Sequence[Write], matches: Matches) -> list[Detail]:
    """Writes that mean a record which another means already."""
    if len(writes) == 1:
        return []
    by_id = ((write, write.record_id) for write in writes if write.record_id is not None)
    by_values = (
        (write, matches.spellings[write.at])
        for write in writes
        if write.record_id is None and write.at in matches.spellings
    )
    return repeated(chain[tuple[Write, object]](by_id, by_values))


async def _held(
    work: UnitOfWork, schema: Schema, checked_writes: Sequence[Checked]
) -> list[Checked]:
    """The same, with the records that exist already, locked.

    Raises `NotFoundError`, naming every write whose record does not.
    """
    ids = {entry.write.record_id for entry in checked_writes if entry.write.record_id is not None}
    if not ids:
        return list(checked_writes)
    linked = [entry.links for entry in checked_writes if entry.links]
    if linked:
        targets = await targets_to_hold(work, schema, linked)
        await hold_records(work, schema.workspace_id, ids | targets)
    rows = await lock_records(work, schema, ids)
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


def _reachable(row: StoredRecord | None, write: Write, work: UnitOfWork) -> bool:
    """True when a write may mean this row: only a restoration means one in the trash."""
    if row is None:
        return False
    if row.deleted_at is None:
        return True
    return write.op is WriteOp.RESTORE and row.deleted_at > work.now - TRASH


class RecordNotFoundError(NotFoundError):
    """Records that a batch names by these paths, or the one a path names."""

    def __init__(self, places: Sequence[str]) -> None:
        super().__init__("record")
        named = ", ".join(f"{at}recordId" for at in places if at)
        if named:
            self.message = f"{named}: {self.message}"


async def _with_new_options(
    work: UnitOfWork, schema: Schema, writes: Sequence[Write]
) -> tuple[Schema, Sequence[Write]]:
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


def _checked(schema: Schema, writes: Sequence[Write]) -> tuple[list[Checked], list[Detail]]:
    """The writes, as far as the fields take what they say, and everything that is wrong."""
    check = DataCheck(schema.fields)
    plain = check.plain_keys([write.data for write in writes]) if len(writes) > 1 else frozenset()
    checked_writes: list[Checked] = []
    problems: list[Detail] = []
    for write in writes:
        read = check.new if write.op is WriteOp.CREATE else check.patch
        change, wrong = read(write.data, write.at, plain)
        links: Links = {}
        if write.relations:
            links, unlinkable = read_relations(
                schema.fields, write.relations, write.at, check.hints
            )
            wrong += unlinkable
        problems += wrong
        checked_writes.append(Checked(write, None, change, links))
    return checked_writes, problems


def _reported(problems: Sequence[Detail], writes: Sequence[Write]) -> list[Detail]:
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


def _check_expected(checked_writes: Sequence[Checked]) -> None:
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
    work: UnitOfWork, schema: Schema, checked_writes: Sequence[Checked]
) -> None:
    """Raise `ConflictError` for a deletion that a relation field forbids."""
    deleted = [
        entry.before.id
        for entry in checked_writes
        if entry.write.op is WriteOp.DELETE and entry.before is not None
    ]
    if deleted:
        await refuse_restricted(work, schema, deleted)


async def _links_before(
    work: UnitOfWork, actor: Actor, schema: Schema, checked_writes: Sequence[Checked]
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
    checked_writes: Sequence[Checked],
    linked: LinksOf,
) -> list[Planned]:
    """The records after the writes. Raises `ValidationError` for records that grow too large."""
    plans: list[Planned] = []
    problems: list[Detail] = []
    for entry in checked_writes:
        if entry.before is None:
            surface_id = None if entry.write.content_from is None else new_id()
            plan = plan_new(schema, entry, new_id(), surface_id, actor.user_id, work.now)
        else:
            now = linked.get(entry.before.id, {})
            links = {key: now.get(key, ()) for key in entry.links}, entry.links
            plan = plan_change(entry, entry.before, links, actor.user_id, work.now)
        if plan.change.values and data_bytes(plan.after.data) > MAX_DATA_BYTES:
            problems.append(Detail(f"{entry.write.at}data", "holds more than 1 MiB in all"))
        plans.append(plan)
    refuse(problems, MAX_OPERATIONS)
    return plans
