"""The rows of links: read around the written ones, then brought to what was worked out."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Select,
    TableValuedAlias,
    Uuid,
    column,
    delete,
    func,
    literal,
    or_,
    select,
    tuple_,
)
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.types import TypeEngine

from models.core.access.rules import Actor
from models.core.base import Id
from models.data.fields.joins import closed_databases
from models.data.records.queries.links import Incoming
from models.data.records.rules.link.changes import Link, Links
from models.data.records.rules.link.sides import Side
from models.data.records.tables import record, record_link
from runtime.database import UnitOfWork
from runtime.errors import ConflictError

MAX_PRESENT = 100_000
"""Links that one call looks through."""

Lists = Sequence[tuple[Id, str, list[Id]]]
"""Record, key of a relation field, the records it shall point at."""
Pair = tuple[Id, Id]
"""A field under which links are stored, and one end."""

_LINK = (
    record_link.c.field_id,
    record_link.c.record_id,
    record_link.c.target_id,
    record_link.c.position,
    record_link.c.target_position,
)


async def present_links(
    work: UnitOfWork,
    actor: Actor,
    lists: Lists,
    sides: Mapping[str, Side],
    facing: Mapping[str, Incoming | None],
) -> list[Link]:
    """The links of the written lists, and the links that other lists may lose to them."""
    as_record: set[tuple[Id, Id]] = set()
    as_target: set[tuple[Id, Id]] = set()
    for own, key, others in lists:
        side, other_side = sides[key], facing[key]
        alone = others if other_side is not None and other_side.side.one else []
        if side.forward:
            as_record.add((side.field_id, own))
            as_target.update((side.field_id, other) for other in alone)
        if side.backward:
            as_target.add((side.field_id, own))
            as_record.update((side.field_id, other) for other in alone)
    rows = await work.rows(_stored_links(actor, as_record, as_target).limit(MAX_PRESENT + 1))
    if len(rows) > MAX_PRESENT:
        raise ConflictError("So many links cannot be changed at once. Write fewer records.")
    return [Link(*tuple(row)) for row in rows]


def _stored_links(actor: Actor, as_record: set[Pair], as_target: set[Pair]) -> Select[Any]:
    """The links with these records or these targets, each with its field."""
    one_end, other_end = record.alias("one_end"), record.alias("other_end")
    closed = closed_databases(actor)
    out_of_sight = or_(
        one_end.c.deleted_at.is_not(None),
        other_end.c.deleted_at.is_not(None),
        one_end.c.database_id.in_(closed),
        other_end.c.database_id.in_(closed),
    )
    return (
        select(*_LINK, out_of_sight)
        .join(one_end, one_end.c.id == record_link.c.record_id)
        .join(other_end, other_end.c.id == record_link.c.target_id)
        .where(
            record_link.c.workspace_id == actor.workspace_id,
            or_(
                tuple_(record_link.c.record_id, record_link.c.field_id).in_(_pairs(as_record)),
                tuple_(record_link.c.target_id, record_link.c.field_id).in_(_pairs(as_target)),
            ),
        )
    )


def _pairs(pairs: set[Pair]) -> Select[Any]:
    """Ends and fields as rows."""
    ordered = sorted(pairs)
    rows = (
        func.unnest(
            literal([end for _, end in ordered], ARRAY(Uuid)),
            literal([field_id for field_id, _ in ordered], ARRAY(Uuid)),
        )
        .table_valued(column("end_id", Uuid), column("field_id", Uuid))
        .render_derived()
    )
    return select(rows.c.end_id, rows.c.field_id)


async def store_links(work: UnitOfWork, workspace_id: Id, links: Links) -> None:
    if links.removed:
        keys = _columns([link.key for link in links.removed], Uuid, Uuid, Uuid)
        # Links may be lost to several writers at once: all of them take the rows in one order.
        locked = (
            select(*_LINK[:3])
            .where(
                record_link.c.workspace_id == workspace_id,
                tuple_(*_LINK[:3]).in_(select(*keys.c)),
            )
            .order_by(*_LINK[:3])
            .with_for_update()
            .cte("locked")
        )
        await work.execute(
            delete(record_link).where(
                record_link.c.workspace_id == workspace_id,
                tuple_(*_LINK[:3]).in_(select(*locked.c)),
            )
        )
    if links.written:
        rows = [(*link.key, link.position, link.target_position) for link in links.written]
        made = _columns(rows, Uuid, Uuid, Uuid, BigInteger, BigInteger)
        statement = insert(record_link).from_select(
            ["workspace_id", *(each.name for each in _LINK)],
            select(literal(workspace_id, Uuid), *made.c),
        )
        await work.execute(
            statement.on_conflict_do_update(
                index_elements=list(record_link.primary_key.columns),
                set_={
                    "position": statement.excluded.position,
                    "target_position": statement.excluded.target_position,
                },
            )
        )


def _columns(rows: Sequence[tuple[Any, ...]], *types: type[TypeEngine[Any]]) -> TableValuedAlias:
    """Rows as a table of the database, one parameter per column."""
    names = [column(f"value_{place}", type_) for place, type_ in enumerate(types)]
    values = [
        literal(list(each), ARRAY(type_))
        for each, type_ in zip(zip(*rows, strict=True), types, strict=True)
    ]
    return func.unnest(*values).table_valued(*names).render_derived()
