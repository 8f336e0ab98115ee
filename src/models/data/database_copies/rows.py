"""Statements that copy and remove records, a range of ids at a time.

The id of a copied row is computed from that of its source (`rules.copied_id`), so no list of what
was copied is stored.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from models.content.surfaces.commands import copying_contents
from models.core.base import Id
from models.core.statements import copying_rows
from models.data.database_copies.rules import copied_id
from models.data.fields.rules.fields import FieldSpecs
from models.data.records.rules.links import side_of
from models.data.records.tables import record, record_link
from runtime.database import UnitOfWork
from runtime.postgresql.schema import is_among


@dataclass(frozen=True, slots=True)
class Copy:
    """The ids of a copy that is being made: its workspace, its source and its own."""

    workspace_id: Id
    source_id: Id
    copy_id: Id

    def id_of(self, source: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        """`rules.copied_id` in SQL."""
        text = sa.func.encode(sa.func.uuid_send(source), "hex")
        rest = sa.func.left(sa.func.md5(sa.literal(self.copy_id.hex).concat(text)), 15)
        return sa.cast(sa.func.left(text, 16).concat("8").concat(rest), sa.Uuid)


@dataclass(frozen=True, slots=True)
class Span:
    """Records of the source in a range of ids, created no later than `newest`."""

    copy: Copy
    newest: datetime
    after: Id | None
    upto: Id | None = None

    @property
    def condition(self) -> tuple[sa.ColumnElement[bool], ...]:
        return (
            record.c.workspace_id == self.copy.workspace_id,
            record.c.database_id == self.copy.source_id,
            record.c.deleted_at.is_(None),
            record.c.created_at <= self.newest,
            *self.within(record.c.id),
        )

    def within(self, record_id: sa.ColumnElement[Any]) -> list[sa.ColumnElement[bool]]:
        """The conditions that an id is in the range."""
        bounds = []
        if self.after is not None:
            bounds.append(record_id > self.after)
        if self.upto is not None:
            bounds.append(record_id <= self.upto)
        return bounds


async def last_of(work: UnitOfWork, span: Span, size: int) -> Id | None:
    """The id that ends the next `size` records; None when no more follow."""
    last_id: Id | None = await work.scalar(
        sa.select(record.c.id)
        .where(*span.condition)
        .order_by(record.c.id)
        .offset(size - 1)
        .limit(1)
    )
    return last_id


async def copy_records(
    work: UnitOfWork, span: Span, removed_keys: Collection[str], timers: Collection[str]
) -> int:
    """Copy records without their links, and their surfaces with their blocks.

    Values under `removed_keys`, of removed fields, are left out. So are the values of timers, whose
    time entries stay with the source. It is one statement, so all rows are of one snapshot.
    Gives the number of copied records.
    """
    copy = span.copy
    values = {
        "id": copy.id_of(record.c.id),
        "database_id": sa.literal(copy.copy_id),
        "content_surface_id": copy.id_of(record.c.content_surface_id),
        "data": _without(record.c.data, removed_keys),
        "computed": _without(record.c.computed, [*removed_keys, *timers]),
        # A copy has no history.
        "creation_principal_type": sa.cast(sa.null(), sa.Text),
        "creation_run_id": sa.cast(sa.null(), sa.Uuid),
        "creation_node_id": sa.cast(sa.null(), sa.Text),
    }
    made = copying_rows(record, values, span.condition).returning(record.c.id).cte("made")
    filled = sa.select(record.c.content_surface_id).where(
        *span.condition, record.c.content_surface_id.is_not(None)
    )
    surfaces, blocks = _contents(copy, filled)
    counted = sa.select(sa.func.count()).select_from(made)
    count: int = await work.scalar(counted.add_cte(surfaces.cte("surfaces"), blocks.cte("blocks")))
    return count


async def copy_surfaces(work: UnitOfWork, copy: Copy, ids: sa.Select[Any]) -> None:
    """Copy these surfaces with their blocks."""
    for statement in _contents(copy, ids):
        await work.execute(statement)


def _contents(copy: Copy, surface_ids: sa.Select[Any]) -> tuple[sa.Insert, sa.Insert]:
    return copying_contents(copy.workspace_id, surface_ids, copy.copy_id, copy.id_of)


async def copy_links(work: UnitOfWork, span: Span, fields: FieldSpecs) -> None:
    """Copy the links of copied records; a link within the database connects two copies."""
    copy, link = span.copy, record_link.c
    own_id, other_id = copy.id_of(link.record_id), copy.id_of(link.target_id)
    inward, outward, backward = _link_fields(copy, fields)
    # Stored under the inverse field, which is the newer one in the copy: the ends are swapped.
    turned = {
        "record_id": other_id,
        "target_id": link.record_id,
        "position": link.target_position,
        "target_position": link.position,
    }
    for ids, end, copied_ids, values in (
        (inward, link.record_id, (own_id, other_id), {"record_id": own_id, "target_id": other_id}),
        (outward, link.record_id, (own_id,), {"record_id": own_id}),
        (backward, link.target_id, (other_id,), turned),
    ):
        if ids:
            condition = (
                link.workspace_id == copy.workspace_id,
                link.field_id == sa.func.any(sa.literal(list(ids), sa.ARRAY(sa.Uuid))),
                *span.within(end),
                *(_is_made(copy, id_) for id_ in copied_ids),
            )
            of_field = {"field_id": sa.case(ids, value=link.field_id)}
            await work.execute(copying_rows(record_link, {**values, **of_field}, condition))


def _is_made(copy: Copy, record_id: sa.ColumnElement[Any]) -> sa.ColumnElement[bool]:
    """True when the copy has this record; a scalar subquery, which is fast with any plan."""
    made = record.alias("made")
    found = sa.select(made.c.id).where(
        made.c.workspace_id == copy.workspace_id, made.c.id == record_id
    )
    return found.correlate(record_link).limit(1).scalar_subquery().is_not(None)


def _link_fields(copy: Copy, fields: FieldSpecs) -> tuple[dict[Id, Id], dict[Id, Id], dict[Id, Id]]:
    """The fields under which links are stored, with the fields under which copies are stored.

    First links within the database, then links stored under its own fields, then links stored
    under fields of the other database.
    """
    inward, outward, backward = {}, {}, {}
    for spec in fields.values():
        if not spec.relation:
            continue
        side = side_of(spec)
        if spec.target_id == copy.source_id:
            inward[side.field_id] = copied_id(copy.copy_id, side.field_id)
        elif side.forward:
            outward[side.field_id] = copied_id(copy.copy_id, spec.id)
        else:
            backward[side.field_id] = copied_id(copy.copy_id, spec.id)
    return inward, outward, backward


async def remove_records(work: UnitOfWork, copy: Copy, size: int) -> int:
    """Delete up to `size` records of a copy, and what refers to them."""
    some = (
        sa.select(record.c.id)
        .where(record.c.workspace_id == copy.workspace_id, record.c.database_id == copy.copy_id)
        .order_by(record.c.id)
        .limit(size)
    )
    these = (record.c.workspace_id == copy.workspace_id, is_among(record.c.id, some))
    removed = await work.execute(sa.delete(record).where(*these))
    return removed.rowcount


def _without(column: sa.ColumnElement[Any], keys: Collection[str]) -> sa.ColumnElement[Any]:
    if not keys:
        return column
    return column.op("-", return_type=JSONB())(sa.literal(sorted(keys), sa.ARRAY(sa.Text)))
