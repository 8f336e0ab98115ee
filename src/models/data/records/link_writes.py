"""Writing links: checked, locked, worked out with both sides, stored.

A relation field of cardinality one takes a new record in place of the old one, on whichever side it
is written: giving a task to another project takes it from the first.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.types import TypeEngine

from models.core.access.rules import Actor
from models.core.base import Id
from models.data.fields.rows import closed_databases
from models.data.fields.rules.fields import Schema, no_relation
from models.data.records import links as record_links
from models.data.records.computed_values import propagate
from models.data.records.details import open_records
from models.data.records.rules.computed_order import Stale, followers_of
from models.data.records.rules.links import Link, Links, Side, side_of
from models.data.records.tables import record, record_link
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, NotFoundError, ValidationError

MAX_LINKS = 1_000
"""Records that one relation field of one record points at."""


async def write_links(
    work: UnitOfWork, actor: Actor, schema: Schema, relations: record_links.LinksOf
) -> None:
    """Make the relation fields of these records show exactly what is wanted, on both sides.

    What the actor does not see there is neither shown nor changed: links to records in the trash
    come back with them. Records that lose a link are recomputed here, records that gain one by
    `recompute`. Raises `ValidationError` at `relations.<key>`, `NotFoundError` for a record that is
    not in the field's database, in the trash, or out of the actor's sight.
    """
    lists = [
        (own, key, list(dict.fromkeys(targets)))
        for own, by_key in relations.items()
        for key, targets in by_key.items()
    ]
    if not lists:
        return
    for _, key, targets in lists:
        _check(schema, key, targets, f"relations.{key}")
    await _check_targets(work, actor, schema, lists)
    incoming = await record_links.incoming_relations(work, schema)
    sides = {
        side.key: side
        for side in record_links.sides_of(schema.fields, {key for _, key, _ in lists})
    }
    facing = {key: _facing(schema, key, incoming) for key in sides}
    await _hold_targets(work, schema, lists, facing)
    links = Links(await present_links(work, actor, lists, sides, facing))
    for own, key, targets in lists:
        if links.count(sides[key], own) > MAX_LINKS:
            raise ConflictError(
                f"{key} holds more than {MAX_LINKS} records, so it cannot be replaced as a whole. "
                "Change it from the other side, record by record."
            )
        other_side = facing[key]
        alone = other_side is not None and other_side.side.one
        links.replace(sides[key], own, targets, _milliseconds(work), alone)
    await store_links(work, schema.workspace_id, links)
    await propagate(work, schema.workspace_id, _losers(schema, sides, facing, links, relations))


def _check(schema: Schema, key: str, targets: Sequence[Id], path: str) -> None:
    spec = schema.fields.get(key)
    if spec is None or not spec.relation:
        raise ValidationError.at(path, no_relation(key, schema.fields))
    if len(targets) > MAX_LINKS:
        raise ValidationError.at(path, f"must be a list of at most {MAX_LINKS} record ids")
    if side_of(spec).one and len(targets) > 1:
        raise ValidationError.at(path, "must be one record at most")


Lists = Sequence[tuple[Id, str, list[Id]]]
"""Record, key of a relation field, the records it shall point at."""


async def _check_targets(work: UnitOfWork, actor: Actor, schema: Schema, lists: Lists) -> None:
    places: dict[Id, set[Id]] = defaultdict(set)
    for _, key, targets in lists:
        for target in targets:
            places[target].add(schema.fields[key].target_id)
    if not places:
        return
    rows = await work.rows(
        open_records(actor, places, record.c.id, record.c.database_id).where(
            record.c.deleted_at.is_(None)
        )
    )
    found = {row.id: {row.database_id} for row in rows}
    if any(found.get(target) != wanted for target, wanted in places.items()):
        raise NotFoundError("record")


def _facing(
    schema: Schema, key: str, incoming: Iterable[record_links.Incoming]
) -> record_links.Incoming | None:
    """The field that shows the same links from the other side."""
    return next((each for each in incoming if each.faces(schema.fields[key])), None)


async def _hold_targets(
    work: UnitOfWork,
    schema: Schema,
    lists: Lists,
    facing: Mapping[str, record_links.Incoming | None],
) -> None:
    """Hold the records at the other end where something follows from the link.

    Records that get another link or another rollup are held alone. Records whose values are only
    read are kept from changing. Each group is taken in the order of ids.
    """
    alone, unchanged = _followed(schema, [(key, others) for _, key, others in lists], facing)
    for ids, read in ((alone, False), (unchanged, True)):
        if ids:
            await work.execute(
                sa.select(record.c.id)
                .where(
                    record.c.workspace_id == schema.workspace_id,
                    record.c.id == sa.any_(record_links.id_array(ids)),
                )
                .order_by(record.c.id)
                .with_for_update(read=read, key_share=not read)
            )


def _followed(
    schema: Schema,
    lists: Iterable[tuple[str, Sequence[Id]]],
    facing: Mapping[str, record_links.Incoming | None],
) -> tuple[set[Id], set[Id]]:
    """The records at the other end to hold alone, and those to keep from changing."""
    alone: set[Id] = set()
    unchanged: set[Id] = set()
    followed = {spec.settings.get("relationFieldKey") for spec in schema.fields.values()}
    for key, others in lists:
        other_side = facing[key]
        if other_side is not None and (other_side.side.one or other_side.followers):
            alone.update(others)
        elif key in followed:
            unchanged.update(others)
    return alone, unchanged - alone


async def targets_to_hold(
    work: UnitOfWork, schema: Schema, relations: Iterable[Mapping[str, Sequence[Id]]]
) -> set[Id]:
    """The records that `write_links` will hold at the other ends of these lists.

    Who holds records of the database first holds these along with them, in one order: two who
    link their records to each other's never wait in a circle.
    """
    lists = [(key, targets) for by_key in relations for key, targets in by_key.items()]
    incoming = await record_links.incoming_relations(work, schema)
    facing = {key: _facing(schema, key, incoming) for key, _ in lists}
    return set().union(*_followed(schema, lists, facing))


def _losers(
    schema: Schema,
    sides: Mapping[str, Side],
    facing: Mapping[str, record_links.Incoming | None],
    links: Links,
    relations: record_links.LinksOf,
) -> list[Stale]:
    """The fields to compute anew where a link ended that the caller does not know of."""
    own_followers = followers_of(schema.fields)
    stale: list[Stale] = []
    for link in links.removed:
        for side in sides.values():
            if side.field_id != link.field_id:
                continue
            other_side = facing[side.key]
            for own, other in side.ends(link.record_id, link.target_id):
                if side.key not in relations.get(own, ()):
                    stale.append(Stale(schema.database_id, {own}, own_followers.get(side.key, ())))
                if other_side is not None:
                    keys = [each.key for each in other_side.followers]
                    stale.append(Stale(other_side.database_id, {other}, keys))
    return stale


async def refuse_restricted(work: UnitOfWork, schema: Schema, record_ids: Collection[Id]) -> None:
    """Refuse to delete records that a relation field with `onDelete: restrict` points at.

    What is deleted along with them does not count. Raises `ConflictError` that names the field.
    """
    incoming = await record_links.incoming_relations(work, schema)
    restricting = [relation for relation in incoming if relation.restricts]
    if not restricting or not record_ids:
        return
    deleted = record_links.id_array(record_ids)
    links = record_links.seen_links(
        schema.workspace_id, [relation.side for relation in restricting], None, deleted
    ).subquery("link")
    end = record_links.at_the_end(links.c.own, links, record.c.id)
    pointing = await work.first(
        sa.select(links.c.field_id, links.c.forward)
        .join(end, sa.true())
        .where(links.c.own != sa.all_(deleted))
        .limit(1)
    )
    if pointing is None:
        return
    label = next(
        relation.label
        for relation in restricting
        if relation.side.field_id == pointing.field_id and relation.side.reads(pointing.forward)
    )
    raise ConflictError(
        f'Another record points here in its field "{label}", which prevents the deletion. '
        "Remove it from that field first."
    )


def _milliseconds(work: UnitOfWork) -> int:
    return int(work.now.timestamp() * 1000)


MAX_PRESENT = 100_000
"""Links that one call looks through."""

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
    facing: Mapping[str, record_links.Incoming | None],
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
        raise ConflictError("Too many links for one change. Write fewer records.")
    return [Link(*tuple(row)) for row in rows]


def _stored_links(actor: Actor, as_record: set[Pair], as_target: set[Pair]) -> sa.Select[Any]:
    """The links with these records or these targets, each with its field."""
    one_end, other_end = record.alias("one_end"), record.alias("other_end")
    closed = closed_databases(actor)
    out_of_sight = sa.or_(
        one_end.c.deleted_at.is_not(None),
        other_end.c.deleted_at.is_not(None),
        one_end.c.database_id.in_(closed),
        other_end.c.database_id.in_(closed),
    )
    return (
        sa.select(*_LINK, out_of_sight)
        .join(one_end, one_end.c.id == record_link.c.record_id)
        .join(other_end, other_end.c.id == record_link.c.target_id)
        .where(
            record_link.c.workspace_id == actor.workspace_id,
            sa.or_(
                sa.tuple_(record_link.c.record_id, record_link.c.field_id).in_(_pairs(as_record)),
                sa.tuple_(record_link.c.target_id, record_link.c.field_id).in_(_pairs(as_target)),
            ),
        )
    )


def _pairs(pairs: set[Pair]) -> sa.Select[Any]:
    """Ends and fields as rows."""
    ordered = sorted(pairs)
    rows = (
        sa.func.unnest(
            sa.literal([end for _, end in ordered], sa.ARRAY(sa.Uuid)),
            sa.literal([field_id for field_id, _ in ordered], sa.ARRAY(sa.Uuid)),
        )
        .table_valued(sa.column("end_id", sa.Uuid), sa.column("field_id", sa.Uuid))
        .render_derived()
    )
    return sa.select(rows.c.end_id, rows.c.field_id)


async def store_links(work: UnitOfWork, workspace_id: Id, links: Links) -> None:
    if links.removed:
        keys = _columns([link.key for link in links.removed], sa.Uuid, sa.Uuid, sa.Uuid)
        # Links may be lost to several writers at once: all of them take the rows in one order.
        locked = (
            sa.select(*_LINK[:3])
            .where(
                record_link.c.workspace_id == workspace_id,
                sa.tuple_(*_LINK[:3]).in_(sa.select(*keys.c)),
            )
            .order_by(*_LINK[:3])
            .with_for_update()
            .cte("locked")
        )
        await work.execute(
            sa.delete(record_link).where(
                record_link.c.workspace_id == workspace_id,
                sa.tuple_(*_LINK[:3]).in_(sa.select(*locked.c)),
            )
        )
    if links.written:
        rows = [(*link.key, link.position, link.target_position) for link in links.written]
        made = _columns(rows, sa.Uuid, sa.Uuid, sa.Uuid, sa.BigInteger, sa.BigInteger)
        statement = insert(record_link).from_select(
            ["workspace_id", *(each.name for each in _LINK)],
            sa.select(sa.literal(workspace_id, sa.Uuid), *made.c),
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


def _columns(rows: Sequence[tuple[Any, ...]], *types: type[TypeEngine[Any]]) -> sa.TableValuedAlias:
    """Rows as a table of the database, one parameter per column."""
    names = [sa.column(f"value_{place}", type_) for place, type_ in enumerate(types)]
    values = [
        sa.literal(list(each), sa.ARRAY(type_))
        for each, type_ in zip(zip(*rows, strict=True), types, strict=True)
    ]
    return sa.func.unnest(*values).table_valued(*names).render_derived()
