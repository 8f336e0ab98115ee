"""What goes back when writes of records are undone, field by field, and what does not. Pure.

A record has dimensions that are judged one by one: that it exists, that it is archived, and each of
its fields. One goes back when nobody else has written it since, and it still is as it was written.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple, Protocol

from models.core.base import Id, JsonObject
from models.core.values import same_json
from models.data.fields.rules.fields import STORED_KINDS, TITLE_KEY, FieldSpecs, FieldValue
from models.data.record_changes.rules import ChangeKind, changed_keys


class RecordedWrite(Protocol):
    """A change of a record as its history keeps it."""

    id: Id
    record_id: Id
    kind: str
    actor_user_id: Id | None
    run_id: Id | None
    undo_id: Id | None
    before: JsonObject | None
    after: JsonObject | None
    omitted_keys: list[str] | None
    at: datetime


class ConflictReason(StrEnum):
    """The reason for which something a run wrote does not go back."""

    CHANGED_SINCE = "changed_since"
    """Someone else has written it since, or it is not what the run wrote."""
    IN_TRASH = "in_trash"
    """The record was deleted since."""
    DELETED = "deleted"
    """The record or its database was deleted for good."""
    FIELD_DELETED = "field_deleted"
    FIELD_CONVERTED = "field_converted"
    NOT_KEPT = "not_kept"
    """The value before was too long for the history."""
    REFUSED = "refused"
    """The rules of the database refuse what was there before."""
    NO_ACCESS = "no_access"
    """The caller sees the database, and may not write its records."""
    NOT_VISIBLE = "not_visible"
    """The caller does not see the database."""


class Stage(StrEnum):
    """The order in which records go back, so that links find both of their ends."""

    RESTORE = "restore"
    """Deleted records leave the trash."""
    UPDATE = "update"
    """Fields get their earlier values."""
    TRASH = "trash"
    """Created records move to the trash."""


STAGES = tuple(Stage)


class Cause(NamedTuple):
    """The writes that are undone: those of runs, or those of undoes.

    Writes of the `related` undoes belong to the same story: they are no changes by someone else.
    """

    run_ids: Collection[Id] = ()
    undo_ids: Collection[Id] = ()
    related: Collection[Id] = ()

    def wrote(self, change: RecordedWrite) -> bool:
        """True for a change that is undone."""
        return change.run_id in self.run_ids or change.undo_id in self.undo_ids

    def is_foreign(self, change: RecordedWrite) -> bool:
        """True for a change by someone else."""
        return not self.wrote(change) and change.undo_id not in self.related


class RecordState(NamedTuple):
    """A record as it is: its values with the title and the ids of linked records, by key."""

    values: Mapping[str, FieldValue]
    archived: bool
    in_trash: bool


class Conflict(NamedTuple):
    """Something that does not go back; without `field_key` it is the record as a whole."""

    reason: ConflictReason
    field_key: str | None = None
    change: RecordedWrite | None = None
    """The change by someone else, if that is the reason."""
    message: str | None = None


class RecordRevert(NamedTuple):
    """How a record goes back in the stage it has come to."""

    stage: Stage | None
    """None when nothing of the record goes back."""
    values: Mapping[str, FieldValue]
    """The values to write, by key; None clears a field."""
    archived: bool | None
    conflicts: Sequence[Conflict]


class _Step(NamedTuple):
    """A change of one dimension."""

    change: RecordedWrite
    before: FieldValue
    after: FieldValue


class _Verdict(NamedTuple):
    reverts: bool = False
    target: FieldValue = None
    conflict: bool = False
    change: RecordedWrite | None = None
    steps: Sequence[_Step] = ()
    """The steps that go back."""


_SETTLED = _Verdict()


def plan_revert(
    cause: Cause,
    changes: Sequence[RecordedWrite],
    prior: ChangeKind | None,
    state: RecordState,
    fields: FieldSpecs,
    sees: Callable[[str], bool],
    linked: Collection[str],
) -> RecordRevert:
    """How a record goes back, given its changes from the first one that is undone.

    `prior` is the last change of its existence before those. `sees` says which relation fields the
    caller sees the other side of, and `linked` are the ids of records that links can show.
    """
    existence, archival = _existence(changes, prior), _archival(changes, prior)
    exists = _judge(cause, existence, not state.in_trash, _same)
    created = bool(changes) and changes[0].kind == ChangeKind.CREATED and cause.wrote(changes[0])
    if exists.conflict:
        return _conflicts(Conflict(ConflictReason.CHANGED_SINCE, change=exists.change))
    if exists.reverts and not exists.target:
        foreign = _foreign_after(cause, changes, exists.steps[0].change)
        if foreign is not None:
            return _conflicts(Conflict(ConflictReason.CHANGED_SINCE, change=foreign))
        return RecordRevert(Stage.TRASH, {}, None, ())
    if exists.reverts:
        return RecordRevert(Stage.RESTORE, {}, None, ())
    if created:
        return RecordRevert(None, {}, None, ())
    verdicts = dict(_verdicts(cause, changes, state, fields, sees, linked))
    archive = _judge(cause, archival, state.archived, _same)
    open_verdicts = [one for one in (*verdicts.values(), archive) if not _is_settled(one)]
    if state.in_trash and open_verdicts:
        deletion = next((one.change for one in reversed(existence)), None)
        return _conflicts(Conflict(ConflictReason.IN_TRASH, change=deletion))
    conflicts = [one for one in verdicts.values() if isinstance(one, Conflict)]
    if archive.conflict:
        conflicts.append(Conflict(ConflictReason.CHANGED_SINCE, change=archive.change))
    values = {
        key: one.target
        for key, one in verdicts.items()
        if isinstance(one, _Verdict) and one.reverts
    }
    archived = bool(archive.target) if archive.reverts else None
    stage = Stage.UPDATE if values or archived is not None else None
    return RecordRevert(stage, values, archived, conflicts)


def _conflicts(conflict: Conflict) -> RecordRevert:
    return RecordRevert(None, {}, None, (conflict,))


def _is_settled(one: _Verdict | Conflict) -> bool:
    return isinstance(one, _Verdict) and not one.reverts and not one.conflict


def _same(one: FieldValue, other: FieldValue) -> bool:
    return same_json(one, other)


def _judge(
    cause: Cause,
    steps: Sequence[_Step],
    now: FieldValue,
    same: Callable[[FieldValue, FieldValue], bool],
) -> _Verdict:
    """What becomes of one dimension: the last of its steps that were written together go back."""
    last = next((at for at in reversed(range(len(steps))) if cause.wrote(steps[at].change)), None)
    if last is None:
        return _SETTLED
    first = last
    while first and cause.wrote(steps[first - 1].change):
        first -= 1
    target = steps[first].before
    if same(now, target):
        return _SETTLED
    later = [one.change for one in steps[last + 1 :] if cause.is_foreign(one.change)]
    if later or not same(now, steps[last].after):
        return _Verdict(conflict=True, change=later[-1] if later else None)
    return _Verdict(reverts=True, target=target, steps=steps[first : last + 1])


def _existence(changes: Sequence[RecordedWrite], prior: ChangeKind | None) -> list[_Step]:
    """The steps by which the record came and went."""
    steps = []
    exists = prior is not ChangeKind.DELETED
    for change in changes:
        if change.kind == ChangeKind.CREATED:
            steps.append(_Step(change, before=False, after=True))
        elif change.kind == ChangeKind.DELETED or not exists:
            steps.append(_Step(change, before=exists, after=not exists))
            exists = not exists
    return steps


def _archival(changes: Sequence[RecordedWrite], prior: ChangeKind | None) -> list[_Step]:
    """The steps by which the record was archived, and came back from there."""
    steps = []
    exists = prior is not ChangeKind.DELETED
    for change in changes:
        if change.kind == ChangeKind.ARCHIVED:
            steps.append(_Step(change, before=False, after=True))
        elif change.kind == ChangeKind.RESTORED and exists:
            steps.append(_Step(change, before=True, after=False))
        exists = change.kind != ChangeKind.DELETED
    return steps


def _foreign_after(
    cause: Cause, changes: Sequence[RecordedWrite], first: RecordedWrite
) -> RecordedWrite | None:
    """The last change by someone else from a change on."""
    later = [one for one in changes if one.id >= first.id and cause.is_foreign(one)]
    return later[-1] if later else None


def _verdicts(
    cause: Cause,
    changes: Sequence[RecordedWrite],
    state: RecordState,
    fields: FieldSpecs,
    sees: Callable[[str], bool],
    linked: Collection[str],
) -> Iterator[tuple[str, _Verdict | Conflict]]:
    """What becomes of each field that was written."""
    written = [one for one in changes if cause.wrote(one)]
    keys = dict.fromkeys(
        key for one in written for key in changed_keys(one.before, one.after, one.omitted_keys)
    )
    for key in keys:
        spec = fields.get(key)
        if spec is None:
            yield key, Conflict(ConflictReason.FIELD_DELETED, key)
        elif not (spec.relation or spec.kind in STORED_KINDS):
            yield key, Conflict(ConflictReason.FIELD_CONVERTED, key)
        elif spec.relation and not sees(key):
            yield key, Conflict(ConflictReason.NOT_VISIBLE, key)
        else:
            yield key, _of_field(cause, changes, key, state, linked if spec.relation else None)


def _of_field(
    cause: Cause,
    changes: Sequence[RecordedWrite],
    key: str,
    state: RecordState,
    linked: Collection[str] | None,
) -> _Verdict | Conflict:
    touching = [
        one for one in changes if key in changed_keys(one.before, one.after, one.omitted_keys)
    ]
    omitted = [one for one in touching if key in (one.omitted_keys or ())]
    steps = [
        _Step(one, (one.before or {}).get(key), (one.after or {}).get(key)) for one in touching
    ]
    verdict = _judge(
        cause, steps, _shown(state.values.get(key), linked, key), _same_in(linked, key)
    )
    if omitted and not _is_settled(verdict):
        return Conflict(ConflictReason.NOT_KEPT, key)
    if verdict.conflict:
        return Conflict(ConflictReason.CHANGED_SINCE, key, verdict.change)
    if verdict.reverts and linked is not None:
        return verdict._replace(target=verdict.target or [])
    return verdict


def _same_in(linked: Collection[str] | None, key: str) -> Callable[[FieldValue, FieldValue], bool]:
    """Whether two values of a field are the same; a link to what is in the trash shows nothing."""

    def same(now: FieldValue, written: FieldValue) -> bool:
        return same_json(now, _shown(written, linked, key))

    return same


def _shown(value: FieldValue, linked: Collection[str] | None, key: str) -> FieldValue:
    if linked is not None:
        ids = value if isinstance(value, Sequence) else ()
        return [one for one in ids if one in linked]
    return value or "" if key == TITLE_KEY else value
