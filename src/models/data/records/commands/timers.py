"""Writing the values of timer fields, which follow from time entries."""

from sqlalchemy import ColumnElement, literal, select, update
from sqlalchemy.dialects.postgresql import JSONB

from models.core.base import Id
from models.data.fields.rules.fields import Schema
from models.data.records.commands.computed_values import recompute
from models.data.records.commands.index import index_records
from models.data.records.tables import record
from runtime.database import UnitOfWork


async def hold_record(work: UnitOfWork, schema: Schema, record_id: Id) -> bool:
    """Hold a record, in the trash or not, until the transaction ends; False when it is gone."""
    held = select(record.c.id).where(*_this(schema, record_id)).with_for_update(key_share=True)
    return await work.first(held) is not None


async def write_timer(
    work: UnitOfWork, schema: Schema, record_id: Id, key: str, total_ms: int, running: Id | None
) -> None:
    """Write a timer of a held record, and what follows from it."""
    value = {"totalMs": total_ms, "runningEntryId": None if running is None else str(running)}
    merged = record.c.computed.op("||", return_type=JSONB())(literal({key: value}, JSONB))
    await work.execute(update(record).where(*_this(schema, record_id)).values(computed=merged))
    await index_records(work, schema, [record_id], [key])
    await recompute(work, schema, [record_id], [key])


def _this(schema: Schema, record_id: Id) -> tuple[ColumnElement[bool], ...]:
    return (
        record.c.workspace_id == schema.workspace_id,
        record.c.database_id == schema.database_id,
        record.c.id == record_id,
    )
