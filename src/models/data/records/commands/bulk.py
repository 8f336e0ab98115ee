"""Writing very many records from rows that the database has already, in a statement or two.

Imports and refreshes write this way. The records are typed values of writable fields, checked when
they were read; they have no links, no contents and no template. History, the side index and
computed values are kept as for any other write; `bulk_events` tells automations.
"""

from collections.abc import Sequence

from sqlalchemy import CTE, BigInteger, ColumnElement, func, literal, select

from models.core.access.rules import Actor
from models.data.fields.rules.fields import Schema
from models.data.fields.rules.kinds import FieldKind
from models.data.records.commands.computed_values import MAX_AT_ONCE, recompute
from models.data.records.commands.index import index_where
from models.data.records.commands.recomputation_jobs import request_recomputation
from models.data.records.commands.rows import (
    COUNTED,
    inserting,
    updating,
    write_parameters,
)
from models.data.records.queries.links import incoming_relations
from models.data.records.rules.write.computed_order import Stale
from models.data.records.tables import record
from runtime.database import UnitOfWork


async def insert_from(
    work: UnitOfWork,
    actor: Actor,
    schema: Schema,
    source: CTE,
    count: int,
    also: Sequence[CTE] = (),
) -> None:
    """Insert `count` records.

    `source` has the columns `id`, made in this transaction by the database's clock, in whose order
    they are numbered, `title`, `data`, `links`,
    `omitted` and `content_surface_id`; `also` is written by the same statement.
    """
    parameters = write_parameters(work, actor, schema)
    number: ColumnElement[int | None] = literal(None, BigInteger)
    if any(spec.kind is FieldKind.AUTO_NUMBER for spec in schema.fields.values()):
        place = func.row_number().over(order_by=source.c.id) - 1
        number = select(COUNTED.c.first).scalar_subquery() + place
        parameters["count"] = count
    # The change that tells of a creation has the id of the record, which is as new.
    statement = inserting(number, source, source.c.id).add_cte(*also)
    await work.execute(statement, parameters)


async def update_from(
    work: UnitOfWork, actor: Actor, schema: Schema, source: CTE, also: Sequence[CTE] = ()
) -> int:
    """Change records that the caller holds; gives how many.

    `source` has the columns `id`, `kind`, `before`, `after`, `omitted`, `title`, `data`, `cleared`,
    `archived`, `updated_by_user_id`, `updated_at` and `deleted_at`.
    """
    statement = updating(source).add_cte(*also)
    return (await work.execute(statement, write_parameters(work, actor, schema))).rowcount


async def derive_where(work: UnitOfWork, schema: Schema, condition: ColumnElement[bool]) -> None:
    """Bring up to date what is derived from the records that meet a condition.

    Computed values of many records, and the values that follow from them elsewhere, are left to
    jobs.
    """
    await index_where(work, schema, condition, None)
    if not any(spec.relation or spec.derived for spec in schema.fields.values()):
        return
    rows = await work.rows(
        select(record.c.id)
        .where(
            record.c.workspace_id == schema.workspace_id,
            record.c.database_id == schema.database_id,
            condition,
        )
        .limit(MAX_AT_ONCE + 1)
    )
    if len(rows) <= MAX_AT_ONCE:
        await recompute(work, schema, [row.id for row in rows], None)
        return
    derived = [key for key, spec in schema.fields.items() if spec.derived]
    stale = [Stale(schema.database_id, (), derived)] if derived else []
    for incoming in await incoming_relations(work, schema):
        keys = [spec.key for spec in incoming.followers]
        stale += [Stale(incoming.database_id, (), keys)] if keys else []
    for part in stale:
        await request_recomputation(work, schema.workspace_id, part)
