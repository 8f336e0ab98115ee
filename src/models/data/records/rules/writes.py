"""Operations read into writes, the states they leave of records, and the events of changes."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple

from pydantic_core import to_json

from models.core.base import Id, JsonObject
from models.core.values import read_moment, same_json
from models.data.fields.rules.fields import TITLE_KEY, Schema
from models.data.record_changes import rules as record_change_rules
from models.data.records import shapes
from models.data.records.rules.values import NO_CHANGE, Change, with_title
from runtime.errors import Detail, ValidationError

MAX_DATA_BYTES = 1 << 20
TRASH = timedelta(days=30)
"""The time in which a deleted record can be restored (interface.md#trash)."""

Links = Mapping[str, Sequence[Id]]
"""Key of a relation field → the records it points at, in order."""

NOTHING: Mapping[str, Any] = MappingProxyType({})


class WriteOp(StrEnum):
    CREATE = "create"
    UPDATE = "update"
    UPSERT = "upsert"
    DELETE = "delete"
    ARCHIVE = "archive"
    RESTORE = "restore"


class Write(NamedTuple):
    """One record to write, as it was asked for; `at` is the path of that in the body.

    `content_from` is the surface of its template, if anything stands on it.
    `expected_updated_at` is what the record must still have.
    """

    op: WriteOp
    at: str = ""
    record_id: Id | None = None
    data: Mapping[str, Any] = NOTHING
    relations: Mapping[str, Any] = NOTHING
    template_id: Id | None = None
    content_from: Id | None = None
    upsert_by: Sequence[str] = ()
    archived: bool | None = None
    expected_updated_at: datetime | None = None


class StoredRecord(NamedTuple):
    """A row of the record table."""

    id: Id
    workspace_id: Id
    database_id: Id
    content_surface_id: Id | None
    title: str
    data: JsonObject
    computed: JsonObject
    number: int | None
    archived: bool
    created_by_user_id: Id | None
    updated_by_user_id: Id | None
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None


class Checked(NamedTuple):
    """A write whose values its fields take; `before` is the record it finds, once that is held."""

    write: Write
    before: StoredRecord | None
    change: Change
    links: Links


class Planned(NamedTuple):
    """A record before and after a write; `before` is None for a new one.

    `change` is what the row's `data` gets, `links` what the relation fields shall hold that the
    write names, and `content_from` the surface whose blocks a new record gets.
    """

    before: StoredRecord | None
    after: StoredRecord
    kind: record_change_rules.ChangeKind | None
    change: Change = NO_CHANGE
    links: Links = NOTHING
    history: record_change_rules.RecordedChange | None = None
    content_from: Id | None = None

    @property
    def appears(self) -> bool:
        """True when the record comes into sight or goes out of it, with everything it holds."""
        if self.kind is record_change_rules.ChangeKind.RESTORED:
            return self.before is not None and self.before.deleted_at is not None
        return self.kind in {
            record_change_rules.ChangeKind.CREATED,
            record_change_rules.ChangeKind.DELETED,
        }

    @property
    def changed_keys(self) -> frozenset[str]:
        """Keys of the fields whose values the write changed."""
        if self.history is None:
            return frozenset()
        history = self.history
        return frozenset(
            record_change_rules.changed_keys(history.before, history.after, history.omitted)
        )


def plan_new(
    schema: Schema,
    checked_write: Checked,
    record_id: Id,
    content_surface_id: Id | None,
    user_id: Id,
    now: datetime,
) -> Planned:
    """A new record with the values and links of the write."""
    write, _, change, all_links = checked_write
    links = {key: targets for key, targets in all_links.items() if targets}
    data = dict(change.values)
    title = data.pop(TITLE_KEY, "")
    after = StoredRecord(
        id=record_id,
        workspace_id=schema.workspace_id,
        database_id=schema.database_id,
        content_surface_id=content_surface_id,
        title=title,
        data=data,
        computed={},
        number=None,
        archived=False,
        created_by_user_id=user_id,
        updated_by_user_id=user_id,
        created_at=now,
        updated_at=now,
        deleted_at=None,
    )
    history = record_change_rules.recorded(
        record_id,
        record_change_rules.ChangeKind.CREATED,
        None,
        {TITLE_KEY: title, **data, **_ids(links)},
    )
    return Planned(
        None,
        after,
        record_change_rules.ChangeKind.CREATED,
        change,
        links,
        history,
        write.content_from,
    )


def plan_change(
    checked_write: Checked,
    before: StoredRecord,
    links: tuple[Links, Links],
    user_id: Id,
    now: datetime,
) -> Planned:
    """Plan what a write makes of a record; nothing at all where it asks for what is already so.

    `links` are the links before and after, of the relation fields the write names.
    """
    write, change = checked_write.write, checked_write.change
    if write.op is WriteOp.DELETE:
        gone = before._replace(deleted_at=now)
        history = record_change_rules.recorded(
            before.id, record_change_rules.ChangeKind.DELETED, None, None
        )
        return Planned(before, gone, record_change_rules.ChangeKind.DELETED, history=history)
    old, new = _changed(before, change, links)
    archived = before.archived if write.archived is None else write.archived
    kind = _kind(before, archived, changed=bool(old or new))
    if kind is None:
        return Planned(before, before, None, links=links[1])
    stays = {key: value for key, value in before.data.items() if key not in change.cleared}
    after = before._replace(
        title=before.title if change.title is None else change.title,
        data={**stays, **change.data},
        archived=archived,
        deleted_at=None,
        updated_by_user_id=user_id,
        # Never the same twice, so that If-Match sees every change.
        updated_at=max(now, before.updated_at + timedelta(milliseconds=1)),
    )
    really = Change(
        {key: value for key, value in change.values.items() if key in old or key in new},
        frozenset(key for key in change.cleared if key in old),
    )
    return Planned(
        before,
        after,
        kind,
        really,
        links[1],
        record_change_rules.recorded(before.id, kind, old, new),
    )


def _kind(
    before: StoredRecord, archived: bool, *, changed: bool
) -> record_change_rules.ChangeKind | None:
    if before.deleted_at is not None or (before.archived and not archived):
        return record_change_rules.ChangeKind.RESTORED
    if archived and not before.archived:
        return record_change_rules.ChangeKind.ARCHIVED
    return record_change_rules.ChangeKind.UPDATED if changed else None


def _changed(
    before: StoredRecord, change: Change, links: tuple[Links, Links]
) -> tuple[JsonObject, JsonObject]:
    """The values of what really changes, before and after; a key is absent where it has none."""
    held = {TITLE_KEY: before.title, **before.data, **_ids(links[0])}
    wanted: dict[str, Any] = {**change.values, **dict.fromkeys(change.cleared), **_ids(links[1])}
    if TITLE_KEY in change.cleared:
        wanted[TITLE_KEY] = ""
    keys = [key for key, value in wanted.items() if not same_json(held.get(key), value)]
    old = {key: held[key] for key in keys if key in held}
    new = {key: wanted[key] for key in keys if wanted[key] is not None}
    return old, new


def _ids(links: Links) -> JsonObject:
    return {key: [str(target) for target in targets] for key, targets in links.items()}


def data_bytes(data: Mapping[str, Any]) -> int:
    """The size of a record's data as JSON."""
    return len(to_json(data))


_ARCHIVED = {WriteOp.ARCHIVE: True, WriteOp.RESTORE: False}


def creation(
    body: shapes.CreateRecord, op: WriteOp = WriteOp.CREATE, by: Sequence[str] = (), at: str = ""
) -> Write:
    """The write that a body of create record asks for."""
    return Write(
        op=op,
        at=at,
        data=with_title(body.data, body.title, at),
        relations=body.relations or {},
        template_id=body.template_id,
        upsert_by=by,
    )


def change_of(
    record_id: Id, body: shapes.UpdateRecord, expected_updated_at: datetime | None
) -> Write:
    """The write that a body of update record asks for."""
    return Write(
        op=WriteOp.UPDATE,
        record_id=record_id,
        data=_patched(body, ""),
        relations=body.relations or {},
        archived=body.archived,
        expected_updated_at=expected_updated_at,
    )


def read_operations(
    operations: Sequence[shapes.BatchOperation],
) -> tuple[list[Write], list[Detail]]:
    """The writes of a batch, and everything wrong with how the others were asked for."""
    writes: list[Write] = []
    problems: list[Detail] = []
    for place, operation in enumerate(operations):
        try:
            writes.append(_write(operation, f"operations.{place}."))
        except ValidationError as problem:
            problems += problem.details
    return writes, problems


def _write(operation: shapes.BatchOperation, at: str) -> Write:
    if operation.op == "create":
        return creation(operation, at=at)
    if operation.op == "upsert":
        return creation(operation, WriteOp.UPSERT, operation.upsert_by, at)
    op = WriteOp(operation.op)
    record_id = operation.record_id
    expected_updated_at = read_moment(operation.expected_updated_at, f"{at}expectedUpdatedAt")
    if operation.op == "update":
        data = _patched(operation, at)
        relations = operation.relations or {}
        return Write(
            op=op,
            at=at,
            record_id=record_id,
            data=data,
            relations=relations,
            expected_updated_at=expected_updated_at,
        )
    archived = _ARCHIVED.get(op)
    return Write(
        op=op,
        at=at,
        record_id=record_id,
        archived=archived,
        expected_updated_at=expected_updated_at,
    )


def _patched(body: shapes.UpdateRecord | shapes.UpdateOperation, at: str) -> dict[str, Any]:
    """The values written; a title of null clears it, as it does inside `data`."""
    written = with_title(body.data, body.title, at)
    cleared = body.title is None and "title" in body.model_fields_set
    return written | {TITLE_KEY: None} if cleared else written


def repeated_writes(writes: Iterable[tuple[Write, object]]) -> list[Detail]:
    """A problem for every write that means what another before it means already."""
    first: dict[object, Write] = {}
    problems: list[Detail] = []
    for write, meant in writes:
        other = first.setdefault(meant, write)
        if other is not write:
            where = "upsertBy" if write.upsert_by else "recordId"
            message = f"is the record that {other.at.rstrip('.')} already writes"
            problems.append(Detail(f"{write.at}{where}", message))
    return problems


MAX_EVENT_BYTES = 1 << 20
"""The size of a payload (interface.md#limits)."""

_VALUES = ("data", "relations", "computed", "system")


def _same(before: JsonObject, record: JsonObject, key: str) -> bool:
    return all(same_json(before[part].get(key), record[part].get(key)) for part in _VALUES)


def differing_fields(before: JsonObject, record: JsonObject, keys: Iterable[str]) -> list[str]:
    """The given keys of fields whose values differ, or may: they were left out as too long."""
    unknown = {*_omitted(before), *_omitted(record)}
    return [key for key in keys if key in unknown or not _same(before, record, key)]


def _omitted(record: JsonObject) -> Iterable[str]:
    keys: list[str] = record.get("omittedKeys", [])
    return keys


def bounded_change(change: JsonObject) -> JsonObject:
    """The change as it may wait: of one that is too large, long values are left out.

    `omittedKeys` in a record then names them. Where many values are too much together, shorter
    ones are left out, too.

    See interface.md#limits.
    """
    kept, longest = change, record_change_rules.MAX_KEPT
    while _size(kept) > MAX_EVENT_BYTES and longest:
        sides = {side: _without_long(change[side], longest) for side in ("record", "before")}
        kept, longest = {**change, **sides}, longest // 4
    return kept


def _without_long(record: JsonObject | None, longest: int) -> JsonObject | None:
    if record is None:
        return None
    long = {
        key
        for part in (*_VALUES, "related")
        for key, value in record.get(part, {}).items()
        if _size(value) > longest
    }
    kept: dict[str, Any] = {
        part: {key: value for key, value in record[part].items() if key not in long}
        for part in (*_VALUES, "related")
        if part in record
    }
    return {**record, **kept, "omittedKeys": sorted({*long, *_omitted(record)})}


def _size(value: object) -> int:
    return len(to_json(value))
