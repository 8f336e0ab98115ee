"""A batch of operations: what each may say, and that no record is meant twice. Pure."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from models.core.base import Id
from models.core.preconditions import read_moment
from models.data.fields.rules.kinds import TITLE_KEY
from models.data.records.rules.write.data import with_title
from models.data.records.rules.write.writes import Write, WriteOp
from models.data.records.shapes import (
    BatchOperation,
    CreateRecord,
    UpdateOperation,
    UpdateRecord,
)
from runtime.errors import Detail, ValidationError

_ARCHIVED = {WriteOp.ARCHIVE: True, WriteOp.RESTORE: False}


def creation(
    body: CreateRecord, op: WriteOp = WriteOp.CREATE, by: Sequence[str] = (), at: str = ""
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


def change_of(record_id: Id, body: UpdateRecord, expected_updated_at: datetime | None) -> Write:
    """The write that a body of update record asks for."""
    return Write(
        op=WriteOp.UPDATE,
        record_id=record_id,
        data=_patched(body, ""),
        relations=body.relations or {},
        archived=body.archived,
        expected_updated_at=expected_updated_at,
    )


def read_operations(operations: Sequence[BatchOperation]) -> tuple[list[Write], list[Detail]]:
    """The writes of a batch, and everything wrong with how the others were asked for."""
    writes: list[Write] = []
    problems: list[Detail] = []
    for place, operation in enumerate(operations):
        try:
            writes.append(_write(operation, f"operations.{place}."))
        except ValidationError as problem:
            problems += problem.details
    return writes, problems


def _write(operation: BatchOperation, at: str) -> Write:
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


def _patched(body: UpdateRecord | UpdateOperation, at: str) -> dict[str, Any]:
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
