"""Pairing each relation with its inverse, the field that shows it from the other database."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from models.core.base import Id
from models.core.keys import first_free, slug
from models.data.fields.rules.fields import FieldSpec, FieldSpecs
from models.data.fields.rules.kinds import FieldKind
from models.data.fields.rules.options import MakeId
from models.data.fields.shapes import MAX_FIELDS
from runtime.errors import Detail


@dataclass(slots=True)
class Pairs:
    """Relations of one database, and their inverses by the database that gets them."""

    relations: list[FieldSpec] = field(default_factory=list)
    inverses: dict[Id, list[FieldSpec]] = field(default_factory=dict)
    problems: dict[str, Detail] = field(default_factory=dict)
    """Key of a relation → what is wrong with it."""


def pair(
    database_id: Id,
    label: str,
    relations: Sequence[FieldSpec],
    targets: Mapping[Id, FieldSpecs],
    taken_keys: Mapping[Id, Collection[str]],
    make_id: MakeId,
) -> Pairs:
    """Give each relation of a database its inverse in the database it points into.

    `label` is that of the database, `targets` the fields of those it points into, `taken_keys`
    further keys that none of their new fields may have.
    """
    pairs = Pairs()
    for relation in relations:
        target_id = relation.target_id
        if relation.settings["symmetric"]:
            if target_id != database_id:
                message = "can be set only for a relation of a database to itself"
                pairs.problems[relation.key] = Detail("settings.symmetric", message)
            pairs.relations.append(_with_inverse(relation, relation.id))
            continue
        target_fields = targets[target_id]
        inverses = pairs.inverses.setdefault(target_id, [])
        if len(target_fields) + len(inverses) >= MAX_FIELDS:
            message = f"is a database that has {MAX_FIELDS} fields already"
            pairs.problems[relation.key] = Detail("settings.databaseId", message)
        keys = {*target_fields, *taken_keys.get(target_id, ()), *(spec.key for spec in inverses)}
        last = max((spec.position for spec in (*target_fields.values(), *inverses)), default=-1.0)
        inverse = _inverse(relation, database_id, label, keys, make_id())
        inverses.append(replace(inverse, position=last + 1))
        pairs.relations.append(_with_inverse(relation, inverse.id))
    return pairs


def _inverse(
    relation: FieldSpec, database_id: Id, label: str, taken_keys: Collection[str], inverse_id: Id
) -> FieldSpec:
    shown = relation.settings.get("inverseLabel") or label
    return FieldSpec(
        id=inverse_id,
        key=first_free(slug(shown, "field"), taken_keys),
        label=shown,
        kind=FieldKind.RELATION,
        settings={
            "databaseId": str(database_id),
            "cardinality": "many",
            "symmetric": False,
            "onDelete": "unlink",
            "inverseFieldId": str(relation.id),
        },
    )


def _with_inverse(relation: FieldSpec, inverse_id: Id) -> FieldSpec:
    settings = {**relation.settings, "inverseFieldId": str(inverse_id)}
    settings.pop("inverseLabel", None)
    return replace(relation, settings=settings)
