"""A batch of operations: what each may say, and that no record is meant twice. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from pydantic.alias_generators import to_camel

from models.core.base import Id
from models.core.preconditions import read_moment
from models.data.databases.rules.kinds import TITLE_KEY
from models.data.records.rules.write.data import with_title
from models.data.records.rules.write.writes import Write, WriteOp
from models.data.records.shapes import BatchOperation, CreateRecord, UpdateRecord
from runtime.errors import Detail, ValidationError

_VALUES = frozenset({"op", "title", "data", "relations"})
_HELD = frozenset({"op", "record_id", "expected_updated_at"})
_TAKES: Mapping[WriteOp, frozenset[str]] = {
    WriteOp.CREATE: _VALUES | {"template_id"},
    WriteOp.UPDATE: _VALUES | _HELD,
    WriteOp.UPSERT: _VALUES | {"template_id", "upsert_by"},
    WriteOp.DELETE: _HELD,
    WriteOp.ARCHIVE: _HELD,
    WriteOp.RESTORE: _HELD,
}
_NEEDS: Mapping[WriteOp, str | None] = {
    WriteOp.CREATE: None,
    WriteOp.UPSERT: "upsert_by",
}
"""What an operation cannot do without; all but these need the record's id."""


def creation(body: CreateRecord, op: WriteOp = WriteOp.CREATE, by: Sequence[str] = ()) -> Write:
    """The write that a body of create record asks for."""
    return Write(
        op=op,
        written=with_title(body.data, body.title),
        relations=body.relations or {},
        template_id=body.template_id,
        upsert_by=by,
    )


def change_of(record_id: Id, body: UpdateRecord, expected: datetime | None) -> Write:
    """The write that a body of update record asks for."""
    return Write(
        op=WriteOp.UPDATE,
        record_id=record_id,
        written=_patched(body, ""),
        relations=body.relations or {},
        archived=body.archived,
        expected=expected,
    )


def read_operations(operations: Sequence[BatchOperation]) -> tuple[list[Write], list[Detail]]:
    """The writes of a batch, and everything wrong with how they were asked for."""
    writes: list[Write] = []
    problems: list[Detail] = []
    for place, operation in enumerate(operations):
        at = f"operations.{place}."
        wrong = _wrong_keys(operation, at)
        written: Mapping[str, Any] = {}
        expected = None
        try:
            written = _patched(operation, at)
            expected = read_moment(operation.expected_updated_at, f"{at}expectedUpdatedAt")
        except ValidationError as problem:
            wrong += problem.details
        problems += wrong
        writes.append(
            Write(
                op=operation.op,
                at=at,
                record_id=operation.record_id,
                written=written,
                relations=operation.relations or {},
                template_id=operation.template_id,
                upsert_by=operation.upsert_by or (),
                archived=_ARCHIVED.get(operation.op),
                expected=expected,
            )
        )
    return writes, problems


_ARCHIVED = {WriteOp.ARCHIVE: True, WriteOp.RESTORE: False}


def _wrong_keys(operation: BatchOperation, at: str) -> list[Detail]:
    problems = [
        Detail(f"{at}{to_camel(key)}", f"is not taken by the operation {operation.op}")
        for key in sorted(operation.model_fields_set - _TAKES[operation.op])
        if getattr(operation, key) is not None
    ]
    needed = _NEEDS.get(operation.op, "record_id")
    if needed is not None and getattr(operation, needed) is None:
        problems.append(Detail(f"{at}{to_camel(needed)}", "is required"))
    return problems


def _patched(body: UpdateRecord | BatchOperation, at: str) -> dict[str, Any]:
    """The values written; a title of null clears it, as it does inside `data`."""
    written = with_title(body.data, body.title, at)
    cleared = body.title is None and "title" in body.model_fields_set
    return written | {TITLE_KEY: None} if cleared else written


def repeated(writes: Iterable[tuple[Write, object]]) -> list[Detail]:
    """A problem for every write that means what another before it means already."""
    first: dict[object, Write] = {}
    problems: list[Detail] = []
    for write, meant in writes:
        other = first.setdefault(meant, write)
        if other is not write:
            where = "upsertBy" if write.upsert_by else "recordId"
            message = f"means the record that {other.at.rstrip('.')} writes already"
            problems.append(Detail(f"{write.at}{where}", message))
    return problems
