"""Links between records: what relation fields hold, seen from both sides.

A relation field of cardinality one takes a new record in place of the old one, on whichever side
it is written: giving a task to another project takes it from the first.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from sqlalchemy import (
    all_,
    any_,
    select,
    true,
)

from models.core.access.rules import Actor
from models.core.base import Id
from models.data.fields.rules.field_keys import no_relation
from models.data.fields.rules.fields import Schema
from models.data.records.commands.computed_values import propagate
from models.data.records.commands.link_rows import Lists, present_links, store_links
from models.data.records.queries.links import (
    Incoming,
    LinksOf,
    at_the_end,
    id_array,
    incoming_relations,
    seen_links,
    sides_of,
)
from models.data.records.queries.visibility import open_records
from models.data.records.rules.link.changes import Links
from models.data.records.rules.link.sides import Side, side_of
from models.data.records.rules.write.computed_order import Stale, followers_of
from models.data.records.tables import record
from runtime.database import UnitOfWork
from runtime.errors import ConflictError, NotFoundError, ValidationError

MAX_LINKS = 1_000
"""Records that one relation field of one record points at."""


async def write_links(work: UnitOfWork, actor: Actor, schema: Schema, relations: LinksOf) -> None:
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
    incoming = await incoming_relations(work, schema)
    sides = {side.key: side for side in sides_of(schema.fields, {key for _, key, _ in lists})}
    facing = {key: _facing(schema, key, incoming) for key in sides}
    await _hold_targets(work, schema, lists, facing)
    links = Links(await present_links(work, actor, lists, sides, facing))
    for own, key, targets in lists:
        if links.count(sides[key], own) > MAX_LINKS:
            raise ConflictError(
                f"{key} holds more than {MAX_LINKS} records, so it is not written as a whole. "
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


def _facing(schema: Schema, key: str, incoming: Iterable[Incoming]) -> Incoming | None:
    """The field that shows the same links from the other side."""
    return next((each for each in incoming if each.faces(schema.fields[key])), None)


async def _hold_targets(
    work: UnitOfWork, schema: Schema, lists: Lists, facing: Mapping[str, Incoming | None]
) -> None:
    """Hold the records at the other end where something follows from the link.

    Records that get another link or another rollup are held alone. Records whose values are only
    read are kept from changing. Each group is taken in the order of ids.
    """
    alone, unchanged = _followed(schema, [(key, others) for _, key, others in lists], facing)
    for ids, read in ((alone, False), (unchanged, True)):
        if ids:
            await work.execute(
                select(record.c.id)
                .where(
                    record.c.workspace_id == schema.workspace_id, record.c.id == any_(id_array(ids))
                )
                .order_by(record.c.id)
                .with_for_update(read=read, key_share=not read)
            )


def _followed(
    schema: Schema,
    lists: Iterable[tuple[str, Sequence[Id]]],
    facing: Mapping[str, Incoming | None],
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
    incoming = await incoming_relations(work, schema)
    facing = {key: _facing(schema, key, incoming) for key, _ in lists}
    return set().union(*_followed(schema, lists, facing))


def _losers(
    schema: Schema,
    sides: Mapping[str, Side],
    facing: Mapping[str, Incoming | None],
    links: Links,
    relations: LinksOf,
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
    incoming = await incoming_relations(work, schema)
    restricting = [relation for relation in incoming if relation.restricts]
    if not restricting or not record_ids:
        return
    deleted = id_array(record_ids)
    links = seen_links(
        schema.workspace_id, [relation.side for relation in restricting], None, deleted
    ).subquery("link")
    end = at_the_end(links.c.own, links, record.c.id)
    pointing = await work.first(
        select(links.c.field_id, links.c.forward)
        .join(end, true())
        .where(links.c.own != all_(deleted))
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
        f'Another record points here in its field "{label}", which forbids the deletion. '
        "Take the record out of that field first."
    )


def _milliseconds(work: UnitOfWork) -> int:
    return int(work.now.timestamp() * 1000)
