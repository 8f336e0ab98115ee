"""Inverse fields of new relations, and bindings of new buttons. Pure."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from models.core.base import Id
from models.core.expressions.rules.cel_text import names
from models.core.expressions.rules.errors import ExpressionError
from models.core.expressions.rules.expressions import compile_expression
from models.core.keys import first_free, slug
from models.data.fields.rules.fields import FieldHints, FieldKind, FieldSpec, FieldSpecs, no_field
from models.data.fields.rules.options import MakeId
from models.data.fields.shapes import MAX_FIELDS
from runtime.errors import Detail


@dataclass(slots=True)
class PairedRelations:
    """Relations of one database, and their inverses by the database that gets them."""

    relations: list[FieldSpec] = field(default_factory=list)
    inverses: dict[Id, list[FieldSpec]] = field(default_factory=dict)
    problems: dict[str, Detail] = field(default_factory=dict)
    """Key of a relation → what is wrong with it."""


def pair_relations(
    database_id: Id,
    label: str,
    relations: Sequence[FieldSpec],
    targets: Mapping[Id, FieldSpecs],
    taken_keys: Mapping[Id, Collection[str]],
    make_id: MakeId,
) -> PairedRelations:
    """Give each relation of a database its inverse in the database it points into.

    `label` is that of the database, `targets` the fields of those it points into, `taken_keys`
    further keys that none of their new fields may have.
    """
    pairs = PairedRelations()
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
            message = f"is a database that already has {MAX_FIELDS} fields"
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


RECORD_FACTS = frozenset({"id", "title", "databaseId"})


def button_problems(spec: FieldSpec, fields: FieldSpecs, hints: FieldHints) -> list[Detail]:
    """The problems of a button's bindings; `fields` are the fields of its database."""
    if spec.kind is not FieldKind.BUTTON:
        return []
    found = (
        (name, _problem(binding["type"], binding["value"], fields, hints))
        for name, binding in spec.settings["bindings"].items()
    )
    return [
        Detail(f"settings.bindings.{name}.value", problem) for name, problem in found if problem
    ]


def _problem(kind: str, value: object, fields: FieldSpecs, hints: FieldHints) -> str | None:
    match kind:
        case "field":
            if not isinstance(value, str):
                return no_field(value, fields)
            return None if value in fields else hints.no_field(value)
        case "record":
            known = isinstance(value, str) and value in RECORD_FACTS
            return None if known else f"must be one of: {', '.join(sorted(RECORD_FACTS))}"
        case "expression":
            return _expression_problem(value)
        case _:
            return None


def _expression_problem(value: object) -> str | None:
    if not isinstance(value, str):
        return "must be a CEL expression"
    try:
        compile_expression(value)
    except ExpressionError as problem:
        return problem.message
    if "trigger" in names(value):
        return (
            "reads trigger, which a button does not have: it reads record.<key>, and the action "
            "reads as trigger.<name> what these bindings pass"
        )
    return None
