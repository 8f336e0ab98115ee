"""Reverting writes of records: the records they concern, and writing what was there before.

A stage of some records is one call. Refused writes are tried record by record and field by field,
so that one value that cannot be reverted keeps no other from it.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import dropwhile, groupby
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import distinct_on

from models.core.access.rules import Actor, Level, Scope
from models.core.base import Id, JsonObject
from models.core.pagination import PageRequest
from models.data.fields.commands import await_schema, share_schema
from models.data.fields.queries import database_level, load_schema, seen_databases
from models.data.fields.rows import DATABASE, fields_of_each, former_keys, open_databases
from models.data.fields.rules.fields import TITLE_KEY, FieldSpecs, Schema
from models.data.record_changes import history as record_change_history
from models.data.record_changes.history import CHANGE, ChangeRow
from models.data.record_changes.rules import ChangeKind
from models.data.records.details import open_records
from models.data.records.links import links_of
from models.data.records.queries import load_schema_of
from models.data.records.rows import CHANGES_WITH_CREATIONS, lock_records
from models.data.records.rules import reverts
from models.data.records.rules.writes import StoredRecord, Write, WriteOp
from models.data.records.tables import record
from models.data.records.write import write_records
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError, PlatformError, UnavailableError, ValidationError


async def list_history(
    work: UnitOfWork, actor: Actor, record_id: Id, page: PageRequest
) -> record_change_history.RecordHistory:
    """The changes of a record, newest first, in the fields its database has now.

    Records out of the actor's sight are left out of what relation fields held. Raises
    `NotFoundError`.
    """
    schema = await load_schema_of(work, actor.workspace_id, record_id)
    former = await former_keys(work, actor.workspace_id, [schema.database_id])
    history = await record_change_history.list_changes(
        work,
        CHANGES_WITH_CREATIONS,
        actor.workspace_id,
        record_id,
        page,
        former[schema.database_id].at,
    )
    target_ids = {one for each in history.changes for one in _targets(each, schema.fields)}
    seen = await _seen(work, actor, target_ids)
    changes = [_shown(change, schema.fields, seen) for change in history.changes]
    return record_change_history.RecordHistory(changes=changes, cursor=history.cursor)


class UndoneChange(NamedTuple):
    """A change that an undo made, and the record it is of."""

    record_id: Id
    database_id: Id
    title: str
    change: record_change_history.RecordChangeShape


async def undone_changes(
    work: UnitOfWork, actor: Actor, undo_id: Id, most: int
) -> list[UndoneChange]:
    """The first changes that an undo made, as far as the actor sees their databases."""
    rows = await work.rows(
        open_databases(actor, *record_change_history.CHANGE, record.c.title)
        .join(record, record.c.database_id == DATABASE.id)
        .join(
            record_change_history.CHANGE.id.table,
            record_change_history.CHANGE.record_id == record.c.id,
        )
        .where(
            record_change_history.CHANGE.workspace_id == actor.workspace_id,
            record_change_history.CHANGE.undo_id == undo_id,
        )
        .order_by(record_change_history.CHANGE.id)
        .limit(most)
    )
    database_ids = {row.database_id for row in rows}
    fields = await fields_of_each(work, actor.workspace_id, database_ids)
    former = await former_keys(work, actor.workspace_id, database_ids)
    present = [
        record_change_history.with_present_keys(row, former[row.database_id].at) for row in rows
    ]
    changes = [
        (row, record_change_history.change_shape(own))
        for row, own in zip(rows, present, strict=True)
    ]
    targets = (_targets(change, fields[row.database_id]) for row, change in changes)
    visible_ids = await _seen(work, actor, set().union(*targets))
    return [
        UndoneChange(
            row.record_id,
            row.database_id,
            row.title,
            _shown(change, fields[row.database_id], visible_ids),
        )
        for row, change in changes
    ]


async def number_of_undone_records(work: UnitOfWork, workspace_id: Id, undo_id: Id) -> int:
    """The number of records that an undo changed."""
    count: int = await work.scalar(
        sa.select(sa.func.count(record_change_history.CHANGE.record_id.distinct())).where(
            record_change_history.CHANGE.workspace_id == workspace_id,
            record_change_history.CHANGE.undo_id == undo_id,
        )
    )
    return count


def _targets(change: record_change_history.RecordChangeShape, fields: FieldSpecs) -> set[Id]:
    """The ids of the records that relation fields held before and after a change."""
    return {
        Id(target)
        for values in (change.before, change.after)
        for key, targets in (values or {}).items()
        if key in fields and fields[key].relation
        for target in targets
    }


async def _seen(work: UnitOfWork, actor: Actor, ids: Collection[Id]) -> set[str]:
    """The ids of the given records, in the trash or not, whose database the actor sees."""
    if not ids:
        return set()
    rows = await work.rows(open_records(actor, ids, record.c.id))
    return {str(row.id) for row in rows}


def _shown(
    change: record_change_history.RecordChangeShape, fields: FieldSpecs, seen: set[str]
) -> record_change_history.RecordChangeShape:
    return change.model_copy(
        update={
            "before": _values(change.before, fields, seen),
            "after": _values(change.after, fields, seen),
            "changed_keys": [key for key in change.changed_keys if key in fields],
            "omitted_keys": [key for key in change.omitted_keys if key in fields],
        }
    )


def _values(values: JsonObject | None, fields: FieldSpecs, seen: set[str]) -> JsonObject | None:
    if values is None:
        return None
    return {
        key: [each for each in value if each in seen] if fields[key].relation else value
        for key, value in values.items()
        if key in fields
    }


MAX_CHANGES = 20_000
"""Changes of the records of one call that are read."""

_all = CHANGES_WITH_CREATIONS.c
_STATES = (ChangeKind.ARCHIVED, ChangeKind.RESTORED, ChangeKind.DELETED)


def written_records(workspace_id: Id, cause: reverts.Cause) -> sa.Select[Any]:
    """The ids of the records that were written, each once."""
    parts = [
        sa.select(CHANGE.record_id).where(
            CHANGE.workspace_id == workspace_id, column == sa.any_(_ids(ids))
        )
        for column, ids in ((CHANGE.run_id, cause.run_ids), (CHANGE.undo_id, cause.undo_ids))
        if ids
    ]
    if cause.run_ids:
        parts.append(
            sa.select(record.c.id).where(
                record.c.workspace_id == workspace_id,
                record.c.creation_run_id == sa.any_(_ids(cause.run_ids)),
            )
        )
    written = sa.union(*parts).subquery("written")
    return sa.select(written.c.record_id)


async def number_of_written_records(
    work: UnitOfWork, workspace_id: Id, cause: reverts.Cause
) -> int:
    if not (cause.run_ids or cause.undo_ids):
        return 0
    written = written_records(workspace_id, cause).subquery()
    count: int = await work.scalar(sa.select(sa.func.count()).select_from(written))
    return count


async def missing_records(
    work: UnitOfWork, workspace_id: Id, record_ids: Collection[Id]
) -> list[Id]:
    """The ids among these that no record has, in the trash or not."""
    these = record.c.workspace_id == workspace_id, record.c.id == sa.any_(_ids(record_ids))
    rows = await work.rows(sa.select(record.c.id).where(*these))
    return sorted(set(record_ids) - {row.id for row in rows})


class RecordConflict(NamedTuple):
    """A conflict, and the record it is about."""

    record_id: Id
    database_id: Id | None
    title: str | None
    conflict: reverts.Conflict


FindUndone = Callable[[UnitOfWork, Collection[Id]], Awaitable[Mapping[Id, Id]]]
"""Takes ids of undos, and gives the earlier undo by the one that undid it."""


@dataclass(frozen=True, slots=True)
class Reverting:
    """The revert of writes for an actor; a patient one waits for fields that are being changed."""

    actor: Actor
    cause: reverts.Cause
    find_undone: FindUndone
    patient: bool = False

    async def revert(
        self, work: UnitOfWork, record_ids: Collection[Id], stage: reverts.Stage
    ) -> list[RecordConflict]:
        """Revert what belongs to a stage in these records.

        Returns the conflicts. Raises InProgressError while fields are being changed.
        """
        conflicts: list[RecordConflict] = []
        places = await work.rows(
            sa.select(record.c.database_id, record.c.id)
            .where(
                record.c.workspace_id == self.actor.workspace_id,
                record.c.id == sa.any_(_ids(record_ids)),
            )
            .order_by(record.c.database_id, record.c.id)
        )
        if stage is reverts.Stage.RESTORE:
            missing = sorted(set(record_ids) - {row.id for row in places})
            conflicts += [
                _about(record_id, reverts.Conflict(reverts.ConflictReason.DELETED))
                for record_id in missing
            ]
        for database_id, rows in groupby(places, key=lambda row: row.database_id):
            ids = [row.id for row in rows]
            schema = await self._opened(work, database_id)
            if isinstance(schema, reverts.ConflictReason):
                if stage is reverts.Stage.RESTORE:
                    seen = database_id if schema is not reverts.ConflictReason.NOT_VISIBLE else None
                    conflict = reverts.Conflict(schema)
                    conflicts += [
                        RecordConflict(record_id, seen, None, conflict) for record_id in ids
                    ]
                continue
            conflicts += await self._in_database(work, schema, ids, stage)
        return conflicts

    async def _opened(self, work: UnitOfWork, database_id: Id) -> Schema | reverts.ConflictReason:
        """The fields of a database, kept as they are, or the reason for which it stays as it is."""
        level = await database_level(work, self.actor, database_id)
        if level < Level.VIEW:
            return reverts.ConflictReason.NOT_VISIBLE
        if level < Level.EDIT or Scope.RECORDS_WRITE not in self.actor.scopes:
            return reverts.ConflictReason.NO_ACCESS
        await (await_schema if self.patient else share_schema)(work, database_id)
        try:
            return await load_schema(work, self.actor.workspace_id, database_id)
        except NotFoundError:
            return reverts.ConflictReason.DELETED

    async def _in_database(
        self, work: UnitOfWork, schema: Schema, ids: Sequence[Id], stage: reverts.Stage
    ) -> list[RecordConflict]:
        rows = await lock_records(work, schema, ids)
        plans = await self._plans(work, schema, rows)
        conflicts: list[RecordConflict] = []
        writes: list[Write] = []
        for record_id, plan in plans.items():
            if plan.conflict_stage is stage:
                row = rows[record_id]
                conflicts += [_of(row, conflict) for conflict in plan.conflicts]
            if plan.stage is stage:
                writes.append(_write(schema, record_id, plan))
        attempt = _Attempt(self.actor, schema)
        await attempt.write(work, writes)
        conflicts += [_of(rows[record_id], conflict) for record_id, conflict in attempt.conflicts]
        return conflicts

    async def _plans(
        self, work: UnitOfWork, schema: Schema, rows: Mapping[Id, StoredRecord]
    ) -> Mapping[Id, reverts.RecordRevert]:
        former = await former_keys(work, self.actor.workspace_id, [schema.database_id])
        changes, too_many = await self._changes(work, rows, former[schema.database_id].at)
        prior = await self._prior(work, changes)
        visible = await self._seen_relations(work, schema)
        keys = [key for key in _written_keys(changes.values()) if key in visible]
        links = await links_of(work, self.actor, schema, rows, keys) if keys else {}
        live_ids = await self._live(work, changes.values(), keys)
        undone = await self.find_undone(work, _undo_ids(changes.values()))
        deleted_ids = await self._deleted(work, live_ids)
        reader = reverts.Reader(self.cause, schema.fields, undone, visible, live_ids, deleted_ids)
        plans = {
            record_id: reader.plan(
                own, prior.get(record_id), _state(rows[record_id], links.get(record_id, {}))
            )
            for record_id, own in changes.items()
        }
        conflict = reverts.Conflict(reverts.ConflictReason.CHANGED_SINCE)
        return plans | dict.fromkeys(too_many, reverts.RecordRevert(None, {}, None, (conflict,)))

    async def _changes(
        self, work: UnitOfWork, rows: Collection[Id], keys_at: record_change_history.KeysAt
    ) -> tuple[Mapping[Id, Sequence[ChangeRow]], Collection[Id]]:
        """The changes of records from the first to revert, and the records with too many."""
        of_rows = (
            _all.workspace_id == self.actor.workspace_id,
            _all.record_id == sa.any_(_ids(rows)),
        )
        earliest = sa.select(_all.id).where(*of_rows, self._wrote()).order_by(_all.id).limit(1)
        first = await work.scalar(earliest)
        if first is None:
            return {}, ()
        history = await work.rows(
            sa.select(CHANGES_WITH_CREATIONS)
            .where(*of_rows, _all.id >= first)
            .order_by(_all.record_id, _all.id)
            .limit(MAX_CHANGES),
            of=ChangeRow,
        )
        changes: dict[Id, Sequence[ChangeRow]] = {}
        for record_id, own in groupby(history, key=lambda change: change.record_id):
            later = list(dropwhile(lambda change: not self.cause.wrote(change), own))
            if later:
                present = [record_change_history.with_present_keys(one, keys_at) for one in later]
                changes[record_id] = present
        if len(history) < MAX_CHANGES:
            return changes, ()
        last = history[-1].record_id
        return changes, {record_id for record_id in rows if record_id >= last}

    def _wrote(self) -> sa.ColumnElement[bool]:
        return sa.or_(
            _all.run_id == sa.any_(_ids(self.cause.run_ids)),
            _all.undo_id == sa.any_(_ids(self.cause.undo_ids)),
        )

    async def _prior(
        self, work: UnitOfWork, changes: Mapping[Id, Sequence[ChangeRow]]
    ) -> Mapping[Id, ChangeKind]:
        """The last change of the existence of records before the first to revert."""
        firsts = [
            own[0]
            for own in changes.values()
            if any(change.kind == ChangeKind.RESTORED for change in own)
        ]
        if not firsts:
            return {}
        before = sa.or_(
            *((_all.record_id == first.record_id) & (_all.id < first.id) for first in firsts)
        )
        rows = await work.rows(
            sa.select(_all.record_id, _all.kind)
            .where(
                _all.workspace_id == self.actor.workspace_id,
                _all.record_id == sa.any_(_ids([first.record_id for first in firsts])),
                _all.kind.in_(_STATES),
                before,
            )
            .ext(distinct_on(_all.record_id))
            .order_by(_all.record_id, _all.id.desc())
        )
        return {row.record_id: ChangeKind(row.kind) for row in rows}

    async def _seen_relations(self, work: UnitOfWork, schema: Schema) -> Collection[str]:
        """Keys of the relation fields whose other side the actor sees."""
        targets = {key: spec.target_id for key, spec in schema.fields.items() if spec.relation}
        if not targets:
            return ()
        rows = await work.rows(seen_databases(self.actor, sorted(set(targets.values()))))
        seen = {row.id for row in rows}
        return {key for key, target in targets.items() if target in seen}

    async def _live(
        self, work: UnitOfWork, changes: Iterable[Sequence[ChangeRow]], keys: Collection[str]
    ) -> Collection[str]:
        """The ids of the records outside the trash that changes of these fields name."""
        targets = {
            Id(target)
            for own in changes
            for change in own
            for values in (change.before or {}, change.after or {})
            for key in keys
            for target in values.get(key) or ()
        }
        if not targets:
            return ()
        rows = await work.rows(
            sa.select(record.c.id).where(
                record.c.workspace_id == self.actor.workspace_id,
                record.c.id == sa.any_(_ids(targets)),
                record.c.deleted_at.is_(None),
            )
        )
        return {str(row.id) for row in rows}

    async def _deleted(self, work: UnitOfWork, live_ids: Collection[str]) -> Collection[str]:
        """The ids among these of records whose deletion is to be reverted."""
        if not live_ids:
            return ()
        rows = await work.rows(
            sa.select(_all.record_id).where(
                _all.workspace_id == self.actor.workspace_id,
                _all.record_id == sa.any_(_ids([Id(record_id) for record_id in live_ids])),
                _all.kind == ChangeKind.DELETED,
                self._wrote(),
            )
        )
        return {str(row.record_id) for row in rows}


@dataclass(slots=True)
class _Attempt:
    """Writes tried together, then in halves, then one by one; what is refused is a conflict."""

    actor: Actor
    schema: Schema
    conflicts: list[tuple[Id, reverts.Conflict]] = field(default_factory=list)

    async def write(self, work: UnitOfWork, writes: Sequence[Write]) -> None:
        """Do these writes, as far as the rules of the database take them."""
        if not writes:
            return
        try:
            async with work.savepoint():
                await write_records(work, self.actor, self.schema, writes)
        except UnavailableError:
            raise
        except PlatformError as error:
            if len(writes) > 1:
                half = len(writes) // 2
                await self.write(work, _numbered(writes[:half]))
                await self.write(work, _numbered(writes[half:]))
            else:
                await self._apart(work, writes[0], error)

    async def _apart(self, work: UnitOfWork, write: Write, error: PlatformError) -> None:
        assert write.record_id is not None, "it is a write of a record that exists"
        parts = _parts(write)
        if len(parts) > 1:
            for part in parts:
                await self.write(work, [part])
            return
        key = next(iter((*write.data, *write.relations)), None)
        message = error.message
        if isinstance(error, ValidationError) and error.details:
            message = error.details[0].message
        conflict = reverts.Conflict(reverts.ConflictReason.REFUSED, key, message=message[:500])
        self.conflicts.append((write.record_id, conflict))


def _ids(ids: Collection[Id]) -> sa.ColumnElement[Any]:
    return sa.literal(sorted(ids), sa.ARRAY(sa.Uuid))


def _about(record_id: Id, conflict: reverts.Conflict) -> RecordConflict:
    return RecordConflict(record_id, None, None, conflict)


def _of(row: StoredRecord, conflict: reverts.Conflict) -> RecordConflict:
    return RecordConflict(row.id, row.database_id, row.title, conflict)


def _state(row: StoredRecord, links: Mapping[str, Sequence[Id]]) -> reverts.RecordState:
    own = {key: [str(target) for target in targets] for key, targets in links.items()}
    values = {TITLE_KEY: row.title, **row.data, **own}
    return reverts.RecordState(values, row.archived, row.deleted_at is not None)


def _undo_ids(changes: Iterable[Sequence[ChangeRow]]) -> set[Id]:
    return {change.undo_id for own in changes for change in own if change.undo_id is not None}


def _written_keys(changes: Iterable[Sequence[ChangeRow]]) -> set[str]:
    return {
        key
        for own in changes
        for change in own
        for key in (*(change.before or ()), *(change.after or ()))
    }


def _write(schema: Schema, record_id: Id, plan: reverts.RecordRevert) -> Write:
    match plan.stage:
        case reverts.Stage.TRASH:
            return Write(WriteOp.DELETE, at="", record_id=record_id)
        case reverts.Stage.RESTORE:
            return Write(WriteOp.RESTORE, at="", record_id=record_id)
        case _:
            relations = {
                key: value for key, value in plan.values.items() if schema.fields[key].relation
            }
            data = {key: value for key, value in plan.values.items() if key not in relations}
            return Write(
                WriteOp.UPDATE,
                record_id=record_id,
                data=data,
                relations=relations,
                archived=plan.archived,
            )


def _numbered(writes: Sequence[Write]) -> Sequence[Write]:
    return [write._replace(at=f"operations.{place}.") for place, write in enumerate(writes)]


def _parts(write: Write) -> list[Write]:
    """The write of each field alone, and that of the archive."""
    blank = write._replace(data={}, relations={}, archived=None)
    if write.op is not WriteOp.UPDATE:
        return [write]
    parts = [blank._replace(data={key: value}) for key, value in write.data.items()]
    parts += [blank._replace(relations={key: value}) for key, value in write.relations.items()]
    return (
        [*parts, blank._replace(archived=write.archived)] if write.archived is not None else parts
    )
