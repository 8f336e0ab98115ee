"""Copies of databases: their label, ids and fields, and statements that copy and remove records.

The id of a copied row is computed from that of its source (`copied_id`), so no list of what was
copied is stored.
"""

import hashlib
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from models.content.surfaces.commands import copying_contents
from models.core.base import Id, JsonObject
from models.core.repository import copying_rows
from models.data.fields.rules.fields import FieldSpec, FieldSpecs
from models.data.formulas.rules import FieldRef, dependents
from models.data.records.rules.links import side_of
from models.data.records.tables import record, record_link
from runtime.database import UnitOfWork
from runtime.postgresql.schema import is_among

LONGEST_LABEL = 200

WAIT_SECONDS = 600
"""The time a request waits for a copy (interface.md#idempotency)."""

_BY_WAY_OF = "relationFieldKey"
_NUMBERED = re.compile(r"(?P<stem>.*) copy(?: [0-9]+)?", re.DOTALL)


def copied_id(copy_id: Id, source_id: Id) -> Id:
    """The id of the copy of what has `source_id`; `Copy.id_of` computes the same in SQL.

    It keeps the timestamp of the source's id, so that copies sort by id as their sources do: rows
    made together, and the two fields of a relation.
    """
    rest = hashlib.md5((copy_id.hex + source_id.hex).encode(), usedforsecurity=False).hexdigest()
    return UUID(f"{source_id.hex[:16]}8{rest[:15]}")


def copy_label(label: str, labels: Collection[str]) -> str:
    """`<label> copy`, or `<label> copy 2`, … if it is taken; a copy's copy has the same stem."""
    numbered = _NUMBERED.fullmatch(label)
    stem = label if numbered is None else numbered["stem"]
    number = 1
    while True:
        suffix = " copy" if number == 1 else f" copy {number}"
        name = stem[: LONGEST_LABEL - len(suffix)] + suffix
        if name not in labels:
            return name
        number += 1


def digest(fields: FieldSpecs) -> str:
    """A digest of what must not change while records are copied: keys, kinds and settings."""
    typing = sorted(
        (key, str(spec.id), spec.kind.value, spec.settings) for key, spec in fields.items()
    )
    return hashlib.sha256(json.dumps(typing, sort_keys=True).encode()).hexdigest()


def copied_field(spec: FieldSpec, source_id: Id, copy_id: Id) -> FieldSpec:
    """The copy of a field; a relation of the source to itself becomes one of the copy to itself.

    Queries request a new side index for it.
    """
    own = replace(spec, id=copied_id(copy_id, spec.id), index_id=None, index_ready=False)
    if not spec.relation:
        return own
    if spec.target_id == source_id:
        inverse_id = copied_id(copy_id, spec.inverse_id)
        settings = {**spec.settings, "databaseId": str(copy_id)}
    else:
        inverse_id = inverse_id_of(own.id)
        settings = spec.settings
    return replace(own, settings={**settings, "inverseFieldId": str(inverse_id)})


def inverse_id_of(relation_id: Id) -> Id:
    """The id of the inverse of a copied relation in another database.

    Links are stored under the older of the two fields, the one with the smaller id; the inverse is
    the newer one.
    """
    return UUID(int=relation_id.int + 1)


def outward(fields: FieldSpecs, source_id: Id) -> list[FieldSpec]:
    """The relations that point into other databases, which get the inverses of the copies."""
    return [spec for spec in fields.values() if spec.relation and spec.target_id != source_id]


def left_out(fields: FieldSpecs, source_id: Id, closed_ids: Collection[Id]) -> set[str]:
    """The fields that a copy does not get: relations into closed databases, and what they feed."""
    keys = {key for key, spec in fields.items() if spec.relation and spec.target_id in closed_ids}
    waiting = list(keys)
    while waiting:
        key = waiting.pop()
        fed = {ref.key for ref in dependents({source_id: fields}, FieldRef(source_id, key))}
        fed |= {name for name, spec in fields.items() if spec.settings.get(_BY_WAY_OF) == key}
        waiting += fed - keys
        keys |= fed
    return keys


def copied_inverse(
    inverse: FieldSpec, relation: FieldSpec, copy_id: Id, label: str, key: str
) -> FieldSpec:
    """The inverse of a copied relation in another database, labelled as the copy."""
    settings = {
        **inverse.settings,
        "databaseId": str(copy_id),
        "inverseFieldId": str(copied_id(copy_id, relation.id)),
    }
    side_id = inverse_id_of(copied_id(copy_id, relation.id))
    return FieldSpec(id=side_id, key=key, label=label, kind=inverse.kind, settings=settings)


def copied_relation_ids(fields: FieldSpecs, source_id: Id, copy_id: Id) -> dict[Id, Id]:
    """The relation fields of a database and their other sides, with the copy of each."""
    copies = {}
    for spec in fields.values():
        if spec.relation:
            copies[spec.id] = copied_id(copy_id, spec.id)
            if spec.target_id != source_id:
                copies[spec.inverse_id] = inverse_id_of(copies[spec.id])
    return copies


def copied_relations(
    relations: JsonObject, inward: Collection[str], copy_id: Id, *, with_records: bool
) -> JsonObject:
    """The links of a template; copied records, if any, replace the records of the source."""
    return {
        key: [str(copied_id(copy_id, Id(target))) for target in targets]
        if key in inward
        else targets
        for key, targets in relations.items()
        if with_records or key not in inward
    }


def copied_layout(
    layout: JsonObject, fields: FieldSpecs, source_id: Id, views: Mapping[Id, Id]
) -> JsonObject:
    """The layout with the copies of the views it names; `views` maps copied views to copies."""
    relation_views: dict[str, Any] = {}
    for key, entry in layout["relationViews"].items():
        view_id = entry.get("defaultViewId")
        inward = key in fields and fields[key].relation and fields[key].target_id == source_id
        if view_id is not None and inward:
            copy = views.get(Id(view_id))
            relation_views[key] = {**entry, "defaultViewId": None if copy is None else str(copy)}
        else:
            relation_views[key] = entry
    return {**layout, "relationViews": relation_views}


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
