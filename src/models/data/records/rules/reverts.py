"""Plans to revert writes of records, field by field, with the conflicts. Pure.

A record has dimensions that are judged one by one: that it exists, that it is archived, and each of
its fields. One is reverted when no one else has written it since, and it still is as it was
written.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import chain
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
    """The reason for which something that was written is not reverted."""

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
    """The order in which records are reverted, so that links find both of their ends."""

    RESTORE = "restore"
    """Deleted records leave the trash."""
    UPDATE = "update"
    """Fields get their earlier values."""
    TRASH = "trash"
    """Created records move to the trash."""


STAGES = tuple(Stage)


class Cause(NamedTuple):
    """The writes to revert, by the runs or the undos that made them."""

    run_ids: Collection[Id] = ()
    undo_ids: Collection[Id] = ()

    def wrote(self, change: RecordedWrite) -> bool:
        """True for a change that is to be reverted."""
        return change.run_id in self.run_ids or change.undo_id in self.undo_ids


class RecordState(NamedTuple):
    """The present state of a record: its values by key, with the title and the ids of links."""

    values: Mapping[str, FieldValue]
    archived: bool
    in_trash: bool


class Conflict(NamedTuple):
    """Something that is not reverted; without `field_key` it is the record as a whole."""

    reason: ConflictReason
    field_key: str | None = None
    change: RecordedWrite | None = None
    """The change by someone else, if that is the reason."""
    message: str | None = None


class RecordRevert(NamedTuple):
    """The revert of a record in its present stage."""

    stage: Stage | None
    """None when nothing of the record is reverted."""
    values: Mapping[str, FieldValue]
    """The values to write, by key; None clears a field."""
    archived: bool | None
    conflicts: Sequence[Conflict]
    conflict_stage: Stage = Stage.UPDATE
    """The stage in which the conflicts are final, and are reported."""


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
    """The steps to revert."""


_SETTLED = _Verdict()

Same = Callable[[FieldValue, FieldValue], bool]
_Removed = list[tuple[Id, list[_Step]]]
"""Steps that undos took away, by the undo, in their order."""


@dataclass(frozen=True, slots=True)
class Reader:
    """The circumstances under which the histories of the records of a database are read.

    `undone` maps undos to the earlier ones that they undid, as far as they undid one. `visible` are
    the relation fields whose other side the caller sees, `live_ids` the records that links can
    show, `deleted_ids` the records that are restored because their deletion is to be reverted.
    """

    cause: Cause
    fields: FieldSpecs
    undone: Mapping[Id, Id]
    visible: Collection[str]
    live_ids: Collection[str]
    deleted_ids: Collection[str]

    def plan(
        self, changes: Sequence[RecordedWrite], prior: ChangeKind | None, state: RecordState
    ) -> RecordRevert:
        """The revert of a record, given its changes from the first one to revert.

        `prior` is the last change of its existence before them.
        """
        existence = self._effective(_existence(changes, prior), same_json)
        exists = self._judge(existence, not state.in_trash, same_json)
        if exists.conflict:
            stage = Stage.UPDATE if exists.target else Stage.TRASH
            return _conflict(Conflict(ConflictReason.CHANGED_SINCE, change=exists.change), stage)
        archival = self._effective(_archival(changes, prior), same_json)
        if exists.reverts and not exists.target:
            foreign = self._foreign(changes, [*existence, *archival], exists.steps[0].change)
            if foreign is not None:
                conflict = Conflict(ConflictReason.CHANGED_SINCE, change=foreign)
                return _conflict(conflict, Stage.TRASH)
            return RecordRevert(Stage.TRASH, {}, None, ())
        if exists.reverts:
            return RecordRevert(Stage.RESTORE, {}, None, ())
        if changes[0].kind == ChangeKind.CREATED:
            return RecordRevert(None, {}, None, ())
        archive = self._judge(archival, state.archived, same_json)
        verdicts = {key: self._of_field(changes, key, state) for key in self._keys(changes)}
        if state.in_trash and not all(map(_is_settled, (*verdicts.values(), archive))):
            deletion = next((step.change for step in reversed(existence)), None)
            return _conflict(Conflict(ConflictReason.IN_TRASH, change=deletion))
        return _plan_of(verdicts, archive)

    def _keys(self, changes: Sequence[RecordedWrite]) -> Iterable[str]:
        """The keys of the fields that were written."""
        return dict.fromkeys(
            key for change in changes if self.cause.wrote(change) for key in _keys_of(change)
        )

    def _effective(self, steps: Iterable[_Step], same: Same) -> list[_Step]:
        """The steps that still count: an undo takes steps away, and its own undo returns them.

        An undo is known by its values: it leads to what was there before the steps it takes away.
        """
        stack: list[_Step] = []
        undone_steps: _Removed = []
        for step in steps:
            undo_id = step.change.undo_id
            if undo_id is None or undo_id in self.cause.undo_ids:
                stack.append(step)
                if not self.cause.wrote(step.change):
                    _drop_circle(stack)
                continue
            ways = [_take, _return] if self._takes_steps(undo_id) else [_return, _take]
            earlier = self.undone.get(undo_id)
            if not any(way(stack, undone_steps, step, earlier, same) for way in ways):
                stack.append(step)
        return stack

    def _takes_steps(self, undo_id: Id) -> bool:
        """True for an undo of a run, and for one that undoes the undo of such an undo."""
        depth = 0
        while (earlier := self.undone.get(undo_id)) is not None:
            undo_id, depth = earlier, depth + 1
        return depth % 2 == 0

    def _judge(
        self, steps: Sequence[_Step], now: FieldValue, same: Same, is_as_left: Same | None = None
    ) -> _Verdict:
        """The verdict on one dimension: the last of its steps that follow each other go.

        `is_as_left` compares the present value with the one that was written last.
        """
        last = len(steps) - 1
        while last >= 0 and not self.cause.wrote(steps[last].change):
            last -= 1
        if last < 0:
            return _SETTLED
        first = last
        while first and self.cause.wrote(steps[first - 1].change):
            first -= 1
        target = steps[first].before
        if same(now, target):
            return _SETTLED
        later = steps[last + 1 :]
        if later or not (is_as_left or same)(now, steps[last].after):
            change = later[-1].change if later else None
            return _Verdict(conflict=True, target=target, change=change)
        return _Verdict(reverts=True, target=target, steps=steps[first : last + 1])

    def _foreign(
        self,
        changes: Sequence[RecordedWrite],
        steps: Sequence[_Step],
        first: RecordedWrite,
    ) -> RecordedWrite | None:
        """The last change by someone else from a change on that still counts."""
        keys = dict.fromkeys(key for change in changes for key in _keys_of(change))
        of_fields = [self._effective(_steps(changes, key), self._same_in(key)) for key in keys]
        later = [
            step.change
            for step in chain(steps, *of_fields)
            if step.change.id >= first.id and not self.cause.wrote(step.change)
        ]
        return max(later, key=lambda change: change.id, default=None)

    def _of_field(
        self, changes: Sequence[RecordedWrite], key: str, state: RecordState
    ) -> _Verdict | Conflict:
        spec = self.fields.get(key)
        if spec is None:
            return Conflict(ConflictReason.FIELD_DELETED, key)
        if not (spec.relation or spec.kind in STORED_KINDS):
            return Conflict(ConflictReason.FIELD_CONVERTED, key)
        if spec.relation and key not in self.visible:
            return Conflict(ConflictReason.NOT_VISIBLE, key)
        same = self._same_in(key)
        steps = self._effective(_steps(changes, key), same)
        verdict = self._judge(steps, state.values.get(key), same, self._is_as_left(key))
        if _is_settled(verdict):
            return verdict
        if any(key in (step.change.omitted_keys or ()) for step in steps):
            return Conflict(ConflictReason.NOT_KEPT, key)
        if verdict.conflict:
            return Conflict(ConflictReason.CHANGED_SINCE, key, verdict.change)
        return verdict._replace(target=verdict.target or []) if spec.relation else verdict

    def _same_in(self, key: str) -> Same:
        """The comparison of two values of a field; links to records in the trash are left out."""
        spec = self.fields.get(key)
        if spec is None or not spec.relation:
            return _same_title if key == TITLE_KEY else same_json

        def same_links(now: FieldValue, before: FieldValue) -> bool:
            return self._live(now) == self._live(before)

        return same_links

    def _is_as_left(self, key: str) -> Same | None:
        """The comparison of links without the records that were deleted, which are back by now."""
        if not self.fields[key].relation:
            return None

        def same_links(now: FieldValue, after: FieldValue) -> bool:
            kept, left = self._live(now), self._live(after)
            return [one for one in kept if one not in self.deleted_ids] == [
                one for one in left if one not in self.deleted_ids
            ]

        return same_links

    def _live(self, value: FieldValue) -> list[FieldValue]:
        ids = value if isinstance(value, Sequence) else ()
        return [target for target in ids if target in self.live_ids]


def _drop_circle(stack: list[_Step]) -> None:
    """Drop the last steps of one run that lead to where they began: its undo leaves no trace."""
    run_id, after = stack[-1].change.run_id, stack[-1].after
    place = len(stack) - 1
    while run_id is not None and place >= 0 and stack[place].change.run_id == run_id:
        if same_json(stack[place].before, after):
            del stack[place:]
            return
        place -= 1


def _take(
    stack: list[_Step], undone_steps: _Removed, step: _Step, _earlier: Id | None, same: Same
) -> bool:
    """Take the steps away that an undo reverted; False when there are none.

    They begin with what the undo wrote, to the letter if any do: links may have been hidden then.
    """
    undo_id = step.change.undo_id
    assert undo_id is not None, "it is a step of an undo"
    for is_same in (same_json, same):
        for place in reversed(range(len(stack))):
            if is_same(stack[place].before, step.after):
                undone_steps.append((undo_id, stack[place:]))
                del stack[place:]
                return True
    return False


def _return(
    stack: list[_Step], undone_steps: _Removed, step: _Step, earlier: Id | None, same: Same
) -> bool:
    """Return the steps that an undone undo took away; False when there are none.

    The earlier undo took them away, or else they are the last ones with the same values.
    """
    fitting = [
        (undo_id, steps)
        for undo_id, steps in undone_steps
        if same(steps[0].before, step.before) and same(steps[-1].after, step.after)
    ]
    if not fitting:
        return False
    entry = next((entry for entry in fitting if entry[0] == earlier), fitting[-1])
    undone_steps.remove(entry)
    stack += entry[1]
    return True


def _plan_of(verdicts: Mapping[str, _Verdict | Conflict], archive: _Verdict) -> RecordRevert:
    conflicts = [verdict for verdict in verdicts.values() if isinstance(verdict, Conflict)]
    if archive.conflict:
        conflicts.append(Conflict(ConflictReason.CHANGED_SINCE, change=archive.change))
    values = {
        key: verdict.target
        for key, verdict in verdicts.items()
        if isinstance(verdict, _Verdict) and verdict.reverts
    }
    archived = bool(archive.target) if archive.reverts else None
    stage = Stage.UPDATE if values or archived is not None else None
    return RecordRevert(stage, values, archived, conflicts)


def _conflict(conflict: Conflict, stage: Stage = Stage.UPDATE) -> RecordRevert:
    return RecordRevert(None, {}, None, (conflict,), stage)


def _is_settled(verdict: _Verdict | Conflict) -> bool:
    return isinstance(verdict, _Verdict) and not verdict.reverts and not verdict.conflict


def _same_title(now: FieldValue, before: FieldValue) -> bool:
    return (now or "") == (before or "")


def _keys_of(change: RecordedWrite) -> Sequence[str]:
    return changed_keys(change.before, change.after, change.omitted_keys)


def _steps(changes: Sequence[RecordedWrite], key: str) -> Iterator[_Step]:
    """The steps of one field."""
    for change in changes:
        if key in _keys_of(change):
            yield _Step(change, (change.before or {}).get(key), (change.after or {}).get(key))


def _existence(changes: Sequence[RecordedWrite], prior: ChangeKind | None) -> Iterator[_Step]:
    """The steps by which the record came and went."""
    exists = prior is not ChangeKind.DELETED
    for change in changes:
        if change.kind == ChangeKind.CREATED:
            yield _Step(change, before=False, after=True)
        elif change.kind == ChangeKind.DELETED or not exists:
            yield _Step(change, before=exists, after=not exists)
            exists = not exists


def _archival(changes: Sequence[RecordedWrite], prior: ChangeKind | None) -> Iterator[_Step]:
    """The steps by which the record was archived, and came back from there."""
    exists = prior is not ChangeKind.DELETED
    for change in changes:
        if change.kind == ChangeKind.ARCHIVED:
            yield _Step(change, before=False, after=True)
        elif change.kind == ChangeKind.RESTORED and exists:
            yield _Step(change, before=True, after=False)
        exists = change.kind != ChangeKind.DELETED
