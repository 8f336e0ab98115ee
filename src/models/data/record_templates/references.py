"""Checking the people, files and records that a template names (decisions C2)."""

from collections.abc import Mapping, Sequence

from models.core.access.rules import Actor
from models.core.base import Id
from models.data.fields.rules.fields import Schema
from models.data.records.queries.records import RECORD
from models.data.records.queries.references import check_references
from models.data.records.queries.visibility import open_records
from models.data.records.rules.write.data import Change, refuse
from models.data.records.rules.write.writes import Checked, Write, WriteOp
from runtime.database import UnitOfWork
from runtime.errors import NotFoundError


async def check_named(
    work: UnitOfWork,
    actor: Actor,
    schema: Schema,
    change: Change,
    links: Mapping[str, Sequence[Id]],
) -> None:
    """Check that the people, files and records exist, as for a record with these values.

    Raises `NotFoundError` and `ValidationError`.
    """
    await _check_targets(work, actor, schema, links)
    as_record = Checked(Write(op=WriteOp.CREATE), None, change, links)
    refuse(await check_references(work, actor, schema, [as_record]))


async def _check_targets(
    work: UnitOfWork, actor: Actor, schema: Schema, links: Mapping[str, Sequence[Id]]
) -> None:
    pairs = {
        (schema.fields[key].target_id, target)
        for key, targets in links.items()
        for target in targets
    }
    if not pairs:
        return
    ids = [target for _, target in pairs]
    rows = await work.rows(
        open_records(actor, ids, RECORD.database_id, RECORD.id).where(RECORD.deleted_at.is_(None))
    )
    if pairs - {(row.database_id, row.id) for row in rows}:
        raise NotFoundError("record")
